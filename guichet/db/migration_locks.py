"""A migration has all tables to itself before it changes the first one, and never waits for a table afterwards.

Servers go on while the schema is migrated. A migration that locks table after table as it changes them meets
transactions that lock them in another order, and PostgreSQL ends one of the two with `deadlock detected`: a payment.
So all tables are locked first, within half the time after which PostgreSQL looks for deadlocks (`deadlock_timeout`).
Whoever has waited for us by then has not looked yet, and goes on when we let go and try again.
"""

import re
from typing import Final

import asyncpg
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from guichet.db.postgres_dialect import SCHEMA

#: Those that the role may change. Nobody uses Alembic's own table while servers run.
_TABLES: Final = text(
    "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(:schema) AND relkind = 'r' "
    "AND relname <> 'alembic_version' AND pg_has_role(relowner, 'USAGE') ORDER BY relname"
)
_LIMIT: Final = text(
    "SELECT set_config('statement_timeout', (setting::integer / 2)::text, true) "
    "FROM pg_settings WHERE name = 'deadlock_timeout'"
)
_NO_LIMIT: Final = text("SET LOCAL statement_timeout TO DEFAULT")
#: PostgreSQL's own word about where the time ran out.
_LOCKING: Final = re.compile(r'LOCK TABLE "([^"]+)"\."([^"]+)"')


class TableInUse(Exception):
    """Another transaction kept `table` for too long. Ours is over, and nothing was changed."""

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(table)


def lock_tables(connection: Connection, first: list[str]) -> None:
    """Locks all tables until the end of the transaction, and those named by `first` before the others.

    A caller that tries again names the tables that it could not get: what most transactions begin with is then locked
    first, so that new ones wait there with no lock of their own. Raises TableInUse.
    """
    names = list(connection.scalars(_TABLES, {"schema": SCHEMA}))
    names.sort(key=lambda name: first.index(name) if name in first else len(first))
    if not names:
        return
    # Names of tables cannot be parameters; these are the database's own, as PostgreSQL quotes them.
    statements = (f"""EXECUTE 'LOCK TABLE "{SCHEMA}"."{name}" IN ACCESS EXCLUSIVE MODE';""" for name in names)
    connection.execute(_LIMIT)
    try:
        connection.exec_driver_sql(f"DO $$ BEGIN {' '.join(statements)} END $$")
    except DBAPIError as error:
        raise TableInUse(_table_of(error)) from error
    connection.execute(_NO_LIMIT)


def _table_of(error: DBAPIError) -> str:
    """The table for which a lock was awaited in vain. Raises the error if it is another one."""
    cause = error.orig.__cause__ if error.orig is not None else None
    if not isinstance(
        cause, asyncpg.QueryCanceledError | asyncpg.LockNotAvailableError | asyncpg.DeadlockDetectedError
    ):
        raise error
    found = _LOCKING.search(getattr(cause, "context", None) or "")
    return found[2] if found else ""
