"""SQLAlchemy's dialect for PostgreSQL, with the schema of every table in the text of every statement.

What a statement means may not depend on `search_path`. Behind PgBouncer a connection keeps what an earlier client set
on it: after a `pg_dump` the path is empty, and every statement of Guichet that came to this connection failed
(docs/decisions.md, "Schema named").
"""

from typing import Any, Final

from sqlalchemy import TableClause
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg, PGIdentifierPreparer_asyncpg

#: The schema of Guichet's tables and functions.
SCHEMA: Final = "public"


class _NamingTheSchema(PGIdentifierPreparer_asyncpg):
    def schema_for_object(self, named: Any) -> str | None:  # type: ignore[override]
        """Only tables have a schema: subqueries, aliases and rows of a function do not."""
        return SCHEMA if isinstance(named, TableClause) else named.schema


class PostgresDialect(PGDialect_asyncpg):
    """Compiles a statement for asyncpg."""

    preparer = _NamingTheSchema
    supports_statement_cache = True
