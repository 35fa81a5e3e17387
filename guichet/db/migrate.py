"""Brings a database's schema up to date with Alembic, forward only. The migrations stand in `migrations/versions`.

Importing this module loads Alembic. Whoever only asks for the revision uses `schema_version.py`.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.util import CommandError
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from guichet.db.errors import DatabaseUnusable, StorageUnavailable, UnknownSchema
from guichet.db.migration_locks import TableInUse, lock_tables
from guichet.db.postgres_dialect import SCHEMA
from guichet.db.postgres_hosts import PostgresHosts
from guichet.db.schema_check import is_usable, refuse_newer
from guichet.db.schema_version import REQUIRED_REVISION, current_revision
from guichet.private_files import make_private_file, make_private_folder
from guichet.settings import Settings

T = TypeVar("T")

MIGRATIONS: Final = Path(__file__).parent / "migrations"
#: Two processes that migrate the same PostgreSQL database wait for each other on this number.
_ADVISORY_LOCK: Final = 4_803_271_546
#: How often all tables are asked for, and seconds between: about a minute.
_ATTEMPTS: Final = 80
_PAUSE: Final = 0.25
#: A schema that an older version of Guichet made its tables in, because the role's `search_path` led there.
_ANOTHER_SCHEMA: Final = text(
    "SELECT nspname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
    "WHERE pg_class.oid = to_regclass('list_count_changes') AND nspname <> :schema"
)
#: PgBouncer may use another connection for each transaction, where a statement prepared under a name does not exist.
_WITHOUT_PREPARED_STATEMENTS: Final[dict[str, Any]] = {
    "statement_cache_size": 0,
    "prepared_statement_cache_size": 0,
    "prepared_statement_name_func": lambda: "",
}


async def plan(settings: Settings) -> tuple[str | None, str]:
    """The revisions before (None: the database is empty) and after `upgrade`. They are the same when it would do
    nothing: the schema is at `REQUIRED_REVISION`, or newer and admits this code.

    Raises DevelopmentSchema, SchemaTooNew, UnknownSchema, DatabaseUnusable.
    """
    before = await current_revision(settings)
    if before is None:
        return None, REQUIRED_REVISION
    refuse_newer(before, settings)
    return before, before if is_usable(before) else REQUIRED_REVISION


async def upgrade(settings: Settings) -> tuple[str | None, str]:
    """Brings the schema to `REQUIRED_REVISION`. Returns and raises what `plan` does; StorageUnavailable when others
    keep using a table.

    Behind PgBouncer the direct address is used if there is one.
    """
    settings = settings.direct
    before, after = await plan(settings)
    if before == after:
        return before, after
    try:
        return await _upgrade_when_free(settings), REQUIRED_REVISION
    except CommandError as error:
        raise UnknownSchema(str(error)) from error
    except DBAPIError as error:
        raise DatabaseUnusable(str(error.orig)) from error


def alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    return config


async def _upgrade_when_free(settings: Settings) -> str | None:
    """`_upgrade`, again and again while a backup or somebody's query uses a table. Raises StorageUnavailable."""
    met: list[str] = []
    for _ in range(_ATTEMPTS):
        try:
            return await _with_connection(settings, partial(_upgrade, first=met))
        except TableInUse as error:
            met = [error.table, *(table for table in met if table != error.table)]
            await asyncio.sleep(_PAUSE)
    raise StorageUnavailable(
        f'the table "{met[0]}" stayed in use, by a backup or a long query perhaps. Nothing was changed; migrate again '
        "later"
    )


def _upgrade(connection: Connection, first: list[str]) -> str | None:
    """The revision before; another process may have migrated the schema since it was asked for. Raises TableInUse."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        _enter_schema(connection)
        lock_tables(connection, first)
    before = MigrationContext.configure(connection).get_current_revision()
    config = alembic_config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    connection.commit()
    return before


def _enter_schema(connection: Connection) -> None:
    """Until the end of the transaction, names without a schema are those of ours. Raises UnknownSchema if Guichet's
    tables are in another one: new ones beside them would hide every payment."""
    found = connection.scalar(_ANOTHER_SCHEMA, {"schema": SCHEMA})
    if found is not None:
        raise UnknownSchema(f'its tables are in the schema "{found}"; move them to "{SCHEMA}"')
    connection.execute(text(f"SET LOCAL search_path TO {SCHEMA}"))


async def _with_connection(settings: Settings, work: Callable[[Connection], T]) -> T:
    if settings.embedded:
        return await asyncio.to_thread(_with_sqlite, settings.sqlite_path, work)
    # Not by an address: SQLAlchemy would not understand several hosts.
    arguments: dict[str, Any] = {"async_creator_fn": PostgresHosts.of(settings).connect}
    arguments |= _WITHOUT_PREPARED_STATEMENTS if settings.pgbouncer else {}
    engine = create_async_engine("postgresql+asyncpg://", poolclass=NullPool, connect_args=arguments)
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(work)
    finally:
        await engine.dispose()


def _with_sqlite(path: Path, work: Callable[[Connection], T]) -> T:
    make_private_folder(path.parent)
    make_private_file(path)
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool, connect_args={"timeout": 30})
    try:
        with engine.connect() as connection:
            return work(connection)
    finally:
        engine.dispose()
