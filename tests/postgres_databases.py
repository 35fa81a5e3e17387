"""The databases that a runner's tests get on its PostgreSQL, one after the other.

Copying the template's thousand files takes 65 ms of processor, emptying a database 5. So a database is used again, as
long as a test has changed nothing of it but rows.
"""

import asyncio
from itertools import count
from typing import Any, Final

import asyncpg

_SERVER_CLOSES: Final = 100
#: Rows that were deleted stay in the files, since nothing vacuums them.
_MOST_DELETED: Final = 5_000

_CATALOGS: Final = (
    "pg_attrdef",
    "pg_attribute",
    "pg_class",
    "pg_constraint",
    "pg_db_role_setting",
    "pg_index",
    "pg_namespace",
    "pg_policy",
    "pg_proc",
    "pg_sequence",
    "pg_statistic",
    "pg_trigger",
)
#: Changes with every definition and with every statistic.
_FINGERPRINT: Final = (
    " UNION ALL ".join(f"SELECT '{name}' AS name, count(*), max(xmin::text::bigint) FROM {name}" for name in _CATALOGS)
    + " UNION ALL SELECT 'pages', sum(relpages), sum(reltuples)::bigint FROM pg_class"
    + " UNION ALL SELECT 'database', datallowconn::int, xmin::text::bigint FROM pg_database"
    " WHERE datname = current_database() ORDER BY name"
)
_OTHERS: Final = """SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"""


class PostgresDatabases:
    """Used outside of any event loop, by fixtures that are not coroutines."""

    def __init__(self, server: str, template: str) -> None:
        self._server = server
        self._template = template
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._numbers = count(1)
        self._clean: _Database | None = None

    def take(self) -> str:
        """The name of a database that is as the template."""
        if self._clean is None:
            self._clean = self._runner.run(self._create(f"test_{next(self._numbers)}"))
        return self._clean.name

    def give_back(self) -> None:
        """The one that was taken last; nobody uses it any more."""
        database = self._clean
        if database is not None and not self._runner.run(database.is_emptied()):
            self._clean = None
            self._runner.run(self._drop(database))

    def close(self) -> None:
        if self._clean is not None:
            self._runner.run(self._drop(self._clean))
        self._runner.close()

    async def _create(self, name: str) -> "_Database":
        # Copying the files takes a third of the time of the default, which writes every page to the log.
        await run_sql(self._server, f"CREATE DATABASE {name} TEMPLATE {self._template} STRATEGY FILE_COPY")
        database = _Database(name, await asyncpg.connect(named(self._server, name)))
        await database.prepare()
        return database

    async def _drop(self, database: "_Database") -> None:
        database.connection.terminate()
        await run_sql(self._server, f"DROP DATABASE {database.name} WITH (FORCE)")


class _Database:
    """One of them, with a connection that empties it."""

    def __init__(self, name: str, connection: Any) -> None:
        self.name = name
        self.connection = connection
        self._deleted = 0

    async def prepare(self) -> None:
        """Notes the rows and definitions that there are now."""
        await self.connection.execute("SET session_replication_role = replica")  # No trigger: rows are only deleted.
        tables = await self._column("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        statements = []
        for table in tables:
            statements.append(f"DELETE FROM {table}; GET DIAGNOSTICS n = ROW_COUNT; total := total + n;")
            if await self.connection.fetchval(f"SELECT EXISTS (SELECT 1 FROM {table})"):
                await self.connection.execute(f"CREATE TEMP TABLE first_{table} AS TABLE {table}")
                statements.append(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM first_{table};")
        for sequence in await self._column("SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'"):
            first, used = await self.connection.fetchrow(f"SELECT last_value, is_called FROM {sequence}")
            statements.append(f"PERFORM setval('{sequence}', {first}, {used});")
        await self.connection.execute(
            "CREATE FUNCTION pg_temp.empty_tables() RETURNS bigint LANGUAGE plpgsql AS $$"
            f" DECLARE n bigint; total bigint := 0; BEGIN {' '.join(statements)} RETURN total; END $$"
        )
        self._fingerprint = await self.connection.fetch(_FINGERPRINT)

    async def is_emptied(self) -> bool:
        """False if it cannot be used again."""
        try:
            return await self._is_unchanged() and await self._empty()
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            return False  # A test may have cut every connection.

    async def _empty(self) -> bool:
        self._deleted += await self.connection.fetchval("SELECT pg_temp.empty_tables()")
        return self._deleted < _MOST_DELETED

    async def _is_unchanged(self) -> bool:
        for _ in range(_SERVER_CLOSES):
            if not await self.connection.fetchval(_OTHERS):
                break
            await asyncio.sleep(0.002)  # A connection that was closed ends a little later.
        else:
            return False
        return bool(await self.connection.fetch(_FINGERPRINT) == self._fingerprint)

    async def _column(self, query: str) -> list[str]:
        return [row[0] for row in await self.connection.fetch(query)]


async def run_sql(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


def named(server: str, database: str) -> str:
    """The address of another database of the server."""
    return server.replace("/postgres?", f"/{database}?")
