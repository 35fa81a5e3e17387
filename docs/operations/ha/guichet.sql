-- Run once on the primary, as the user postgres.
CREATE ROLE guichet LOGIN PASSWORD 'change-me';
CREATE DATABASE guichet OWNER guichet;
-- Optional: the state and the lag of standbys in /metrics (metrics.md).
GRANT pg_monitor TO guichet;
-- Guichet sets these on each connection, but cannot through PgBouncer (docs/decisions.md, "Index scans only").
ALTER ROLE guichet SET enable_bitmapscan = off;
ALTER ROLE guichet SET enable_seqscan = off;
ALTER ROLE guichet SET jit = off;
