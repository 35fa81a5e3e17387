-- Run once on the primary, as the user postgres, in the database postgres.
\set ON_ERROR_STOP on
CREATE ROLE guichet LOGIN PASSWORD 'change-me';
CREATE DATABASE guichet OWNER guichet;
-- Optional: the state and the lag of standbys in /metrics.
GRANT pg_monitor TO guichet;
CREATE ROLE replicator LOGIN REPLICATION PASSWORD 'change-me';
-- What pg_rewind calls on the host that it copies from. Without them only a superuser could do it.
GRANT EXECUTE ON FUNCTION pg_catalog.pg_ls_dir(text, boolean, boolean) TO replicator;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_stat_file(text, boolean) TO replicator;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_read_binary_file(text) TO replicator;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_read_binary_file(text, bigint, bigint, boolean) TO replicator;
