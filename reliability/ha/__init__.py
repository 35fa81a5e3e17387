"""Dead machines: Patroni, etcd, HAProxy, PgBouncer, Redis and Guichet as in docs/operations/high-availability.md, under
load, while one part after the other is killed, stopped or cut off. `make ha` runs it."""
