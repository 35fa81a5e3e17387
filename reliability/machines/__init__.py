"""Three machines: Guichet on one, PostgreSQL on two. They are set up, failed over, rejoined and switched over by the
commands that docs/operations shows, under load. `make machines` runs it."""
