"""Brings a database's schema up to date with Alembic, forward only. The migrations stand in `migrations/versions`.

Importing this module loads Alembic. Whoever only asks for the revision uses `schema.py`.

A migration has all tables of PostgreSQL to itself before it changes the first one, and never waits for a table
afterwards. Servers go on while the schema is migrated. A migration that locks table after table as it changes
them meets transactions that lock them in another order, and PostgreSQL ends one of the two with `deadlock detected`: a
payment. So all tables are locked first, within half the time after which PostgreSQL looks for deadlocks
(`deadlock_timeout`). Whoever has waited for us by then has not looked yet, and goes on when we let go and try again.
"""

import asyncio
import re
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

from guichet.db.errors import DatabaseUnusable, StorageUnavailable, UnknownSchema
from guichet.db.postgres.hosts import PostgresHosts
from guichet.db.postgres.statements import SCHEMA
from guichet.db.schema import REQUIRED_REVISION, current_revision, is_usable
from guichet.private_files import make_private_file, make_private_folder
from guichet.settings import Settings

T = TypeVar("T")

MIGRATIONS: Final = Path(__file__).parent / "migrations"
#: Two processes that migrate the same PostgreSQL database wait for each other on this number.
_ADVISORY_LOCK: Final = 4_803_271_546
#: How often all tables are asked for, and seconds between: about a minute.
_ATTEMPTS: Final = 80
_PAUSE: Final = 0.25
#: Another schema with tables of Guichet, to which the role's `search_path` leads.
_ANOTHER_SCHEMA: Final = text(
    "SELECT nspname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
    "WHERE pg_class.oid = to_regclass('list_count_changes') AND nspname <> :schema"
)
#: Those that the role may change. Nobody uses Alembic's own table while servers run.
_OUR_TABLES: Final = text(
    "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(:schema) AND relkind = 'r' "
    "AND relname <> 'alembic_version' AND pg_has_role(relowner, 'USAGE') ORDER BY relname"
)
#: An event of a transaction that is not of this cluster, because its number has not been given yet.
_HAS_FOREIGN_EVENTS: Final = text(
    "SELECT EXISTS (SELECT FROM public.merchants CROSS JOIN unnest(ARRAY['test', 'live']) AS envs (env) "
    "CROSS JOIN LATERAL (SELECT transaction_id FROM public.events WHERE merchant_id = merchants.id "
    "AND events.env = envs.env ORDER BY transaction_id DESC LIMIT 1) AS newest "
    "WHERE transaction_id >= CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint))"
)
_FORGET_TRANSACTIONS: Final = text("UPDATE public.events SET transaction_id = 0")
_LOCK_LIMIT: Final = text(
    "SELECT set_config('statement_timeout', (setting::integer / 2)::text, true) "
    "FROM pg_settings WHERE name = 'deadlock_timeout'"
)
_NO_LIMIT: Final = text("SET LOCAL statement_timeout TO DEFAULT")
#: PostgreSQL's own word about where the time ran out.
_LOCKING: Final = re.compile(r'LOCK TABLE "([^"]+)"\."([^"]+)"')
#: PgBouncer may use another connection for each transaction, where a statement prepared under a name does not exist.
_WITHOUT_PREPARED_STATEMENTS: Final[dict[str, Any]] = {
    "statement_cache_size": 0,
    "prepared_statement_cache_size": 0,
    "prepared_statement_name_func": lambda: "",
}


class _TableInUse(Exception):
    """Another transaction kept `table` for too long. Ours is over, and nothing was changed."""

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(table)


async def plan(settings: Settings) -> tuple[str | None, str]:
    """The revisions before (None: the database is empty) and after `upgrade`. They are the same when it would do
    nothing: the schema is at `REQUIRED_REVISION`, or newer and admits this code.

    Raises what `current_revision` does.
    """
    before = await current_revision(settings)
    return before, before if before and is_usable(before) else REQUIRED_REVISION


async def upgrade(settings: Settings) -> tuple[str | None, str]:
    """Brings the schema to `REQUIRED_REVISION`. Returns and raises what `plan` does; StorageUnavailable when others
    keep using a table.

    Behind PgBouncer the direct address is used if there is one.
    """
    settings = settings.direct
    before, after = await plan(settings)
    if before != after:
        before, after = await run_migrations(settings, alembic_config()), REQUIRED_REVISION
    if not settings.embedded:
        await _with_connection(settings, _number_restored_events)
    return before, after


def _number_restored_events(connection: Connection) -> None:
    """Events of a restored dump have the numbers of another cluster's transactions (docs/decisions.md, "Events in
    order"). Cost: two index probes for each merchant, unless it was restored."""
    if connection.scalar(_HAS_FOREIGN_EVENTS):
        connection.execute(_FORGET_TRANSACTIONS)
        connection.commit()


def alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    return config


async def run_migrations(settings: Settings, config: Config) -> str | None:
    """Brings the schema to the last revision of `config`, and returns the one before. Tries again while a backup or
    somebody's query uses a table. Raises StorageUnavailable when they keep doing so, UnknownSchema, DatabaseUnusable.
    """
    try:
        return await _upgrade_when_free(settings, config)
    except CommandError as error:
        raise UnknownSchema(str(error)) from error
    except DBAPIError as error:
        raise DatabaseUnusable(str(error.orig)) from error


async def _upgrade_when_free(settings: Settings, config: Config) -> str | None:
    in_use: list[str] = []
    for _ in range(_ATTEMPTS):
        try:
            return await _with_connection(settings, partial(_upgrade, config=config, first=in_use))
        except _TableInUse as error:
            in_use = [error.table, *(table for table in in_use if table != error.table)]
            await asyncio.sleep(_PAUSE)
    raise StorageUnavailable(
        f'the table "{in_use[0]}" stayed in use, by a backup or a long query perhaps. Nothing was changed; migrate '
        "again later"
    )


def _upgrade(connection: Connection, config: Config, first: list[str]) -> str | None:
    """The revision before; another process may have migrated the schema since it was asked for. Raises _TableInUse."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        _enter_schema(connection)
        _lock_tables(connection, first)
    before = MigrationContext.configure(connection).get_current_revision()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    connection.commit()
    return before


def _enter_schema(connection: Connection) -> None:
    """Until the end of the transaction, names without a schema are those of ours. Raises UnknownSchema if Guichet's
    tables are in another one: new ones beside them would hide every payment."""
    schema = connection.scalar(_ANOTHER_SCHEMA, {"schema": SCHEMA})
    if schema is not None:
        raise UnknownSchema(f'its tables are in the schema "{schema}"; move them to "{SCHEMA}"')
    connection.execute(text(f"SET LOCAL search_path TO {SCHEMA}"))


def _lock_tables(connection: Connection, first: list[str]) -> None:
    """Locks all tables until the end of the transaction, and those named by `first` before the others.

    A caller that tries again names the tables that it could not get: what most transactions begin with is then locked
    first, so that new ones wait there with no lock of their own. Raises _TableInUse.
    """
    names = list(connection.scalars(_OUR_TABLES, {"schema": SCHEMA}))
    names.sort(key=lambda name: first.index(name) if name in first else len(first))
    if not names:
        return
    # Names of tables cannot be parameters; these are the database's own, as PostgreSQL quotes them.
    statements = (f"""EXECUTE 'LOCK TABLE "{SCHEMA}"."{name}" IN ACCESS EXCLUSIVE MODE';""" for name in names)
    connection.execute(_LOCK_LIMIT)
    try:
        connection.exec_driver_sql(f"DO $$ BEGIN {' '.join(statements)} END $$")
    except DBAPIError as error:
        raise _TableInUse(_table_of(error)) from error
    connection.execute(_NO_LIMIT)


def _table_of(error: DBAPIError) -> str:
    """The table for which a lock was awaited in vain. Raises the error if it is another one."""
    cause = error.orig.__cause__ if error.orig is not None else None
    if not isinstance(
        cause, asyncpg.QueryCanceledError | asyncpg.LockNotAvailableError | asyncpg.DeadlockDetectedError
    ):
        raise error
    locking = _LOCKING.search(getattr(cause, "context", None) or "")
    return locking[2] if locking else ""


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
