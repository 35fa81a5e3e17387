"""Bringing the schema up to date, forward only (Alembic). Statements themselves are in `migrations/`.

Every process asks on its way up whether there is anything to do: that reads one row, and Alembic is loaded only where
something is.
"""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import asyncpg

from guichet.db.engine import StorageError
from guichet.settings import Settings

#: The schemas of development versions, made before the first release: their tables and columns have other names.
_DEVELOPMENT_REVISIONS: Final = frozenset({"0001", "0002", "0003", "0004"})
_REVISION: Final = "SELECT version_num FROM alembic_version"


class SchemaUnknown(StorageError):
    """Alembic cannot migrate what it found: most likely a newer version of Guichet was here."""


class DevelopmentDatabase(StorageError):
    """The schema is one of a development version, which no migration leads away from."""

    def __init__(self) -> None:
        super().__init__(
            "This database was made by a development version of Guichet, before the first release, and cannot be "
            "migrated: it must be recreated."
        )


class DatabaseUnusable(StorageError):
    """The database answered, and not as one that can be used."""


def head() -> str:
    """The revision that this code needs; a test holds it to be Alembic's."""
    return "v0001"


async def upgrade(settings: Settings) -> tuple[str | None, str]:
    """Brings the schema to `head()`; returns the revisions before and after. Harmless when nothing is to do."""
    if await current(settings) == head():
        return head(), head()
    from guichet.db.upgrading import run  # noqa: PLC0415 - a tenth of a second that most starts spare

    return await run(settings), head()


async def current(settings: Settings) -> str | None:
    """The schema's revision; None for an empty database. One row is read. Raises DevelopmentDatabase."""
    revision = await _current(settings)
    if revision in _DEVELOPMENT_REVISIONS:
        raise DevelopmentDatabase
    return revision


async def _current(settings: Settings) -> str | None:
    if settings.embedded:
        return await asyncio.to_thread(_current_sqlite, settings.sqlite_path)
    try:
        return await _current_postgresql(settings.database_url)
    except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise DatabaseUnusable(str(error)) from error


async def _current_postgresql(url: str) -> str | None:
    connection = await asyncpg.connect(url, statement_cache_size=0)
    try:
        async with connection.transaction():  # Behind PgBouncer, one connection for all of it.
            revision: str | None = await connection.fetchval(_REVISION)
    except asyncpg.UndefinedTableError:
        return None
    else:
        return revision
    finally:
        await connection.close()


def _current_sqlite(path: Path) -> str | None:
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            named = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
            row = connection.execute(_REVISION).fetchone() if named else None
    except sqlite3.Error as error:
        raise DatabaseUnusable(str(error)) from error
    return row[0] if row else None
