"""The revision of a database's schema, and the one that this code needs.

Every process asks for it when it starts. That reads one row and does not load Alembic, which takes a tenth of a second
(`migrate.py`).
"""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import asyncpg

from guichet.db.errors import DatabaseDamaged, DatabaseUnusable, DevelopmentSchema
from guichet.db.postgres_connection import Connection
from guichet.db.postgres_hosts import PostgresHosts
from guichet.db.sqlite_errors import is_damage
from guichet.settings import Settings

#: The last revision of `migrations/versions` (a test compares them).
REQUIRED_REVISION: Final = "v0032_admits_v0016"
#: Revisions of development versions, made before the first release: their tables and columns have other names.
_DEVELOPMENT_REVISIONS: Final = frozenset({"0001", "0002", "0003", "0004"})
_REVISION: Final = "SELECT version_num FROM alembic_version"
#: Whatever `search_path` the connection has (D112).
_REVISION_IN_SCHEMA: Final = "SELECT version_num FROM public.alembic_version"


async def current_revision(settings: Settings) -> str | None:
    """The revision of the schema; None when the database is empty. Raises DevelopmentSchema, DatabaseUnusable,
    DatabaseDamaged, and NoPrimary when no PostgreSQL server can be used."""
    if settings.embedded:
        revision = await asyncio.to_thread(_sqlite_revision, settings.sqlite_path)
    else:
        revision = await _postgresql_revision(PostgresHosts.of(settings))
    if revision in _DEVELOPMENT_REVISIONS:
        raise DevelopmentSchema
    return revision


async def _postgresql_revision(hosts: PostgresHosts) -> str | None:
    try:
        connection: Connection = await hosts.connect(statement_cache_size=0)
        try:
            async with connection.transaction():  # PgBouncer gives a transaction one connection for all of it.
                revision: str | None = await connection.fetchval(_REVISION_IN_SCHEMA)
        except asyncpg.UndefinedTableError:
            return None
        else:
            return revision
        finally:
            await connection.close()
    except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise DatabaseUnusable(str(error)) from error


def _sqlite_revision(path: Path) -> str | None:
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            migrated = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
            row = connection.execute(_REVISION).fetchone() if migrated else None
    except sqlite3.Error as error:
        if is_damage(error):
            raise DatabaseDamaged(str(path), str(error)) from error
        raise DatabaseUnusable(str(error)) from error
    return row[0] if row else None
