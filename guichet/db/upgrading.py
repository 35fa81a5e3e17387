"""Alembic at work: the one place that loads it."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import asyncpg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.util import CommandError
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from guichet.db.migrate import DatabaseUnusable, SchemaUnknown
from guichet.settings import Settings

T = TypeVar("T")

_FOLDER: Final = Path(__file__).parent / "migrations"
#: Two processes that migrate the same PostgreSQL wait for each other on this number.
_ADVISORY_LOCK: Final = 4_803_271_546
#: PgBouncer lends another connection for each transaction: a statement prepared under a name would not be found again.
_NOTHING_PREPARED: Final[dict[str, Any]] = {
    "statement_cache_size": 0,
    "prepared_statement_cache_size": 0,
    "prepared_statement_name_func": lambda: "",
}


async def run(settings: Settings) -> str | None:
    """Brings the schema to the last revision; returns the one before, None for an empty database."""
    try:
        return await _with_connection(settings, _upgrade)
    except CommandError as error:
        raise SchemaUnknown(str(error)) from error
    except DBAPIError as error:
        raise DatabaseUnusable(str(error.orig)) from error


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_FOLDER))
    config.set_main_option("path_separator", "os")
    return config


def _upgrade(connection: Connection) -> str | None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
    before = MigrationContext.configure(connection).get_current_revision()
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    connection.commit()
    return before


def _with_sqlite(path: Path, work: Callable[[Connection], T]) -> T:
    path.parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool, connect_args={"timeout": 30})
    try:
        with engine.connect() as connection:
            return work(connection)
    finally:
        engine.dispose()


async def _with_connection(settings: Settings, work: Callable[[Connection], T]) -> T:
    if settings.embedded:
        return await asyncio.to_thread(_with_sqlite, settings.sqlite_path, work)
    # The driver reads the address itself, as it does for the service: several hosts and sslmode are its own words.
    arguments: dict[str, Any] = {"async_creator_fn": partial(asyncpg.connect, settings.database_url)}
    arguments |= _NOTHING_PREPARED if settings.pgbouncer else {}
    engine = create_async_engine("postgresql+asyncpg://", poolclass=NullPool, connect_args=arguments)
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(work)
    finally:
        await engine.dispose()
