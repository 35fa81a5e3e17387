"""A database seen from outside: the statements that it receives, and a process that dies at a chosen moment."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from sqlalchemy import Executable

from guichet.db.engine import Database, PoolUse, Row, Transaction


class ProcessDied(BaseException):
    """The process is gone: nothing of it runs any more."""


class _Recording(Transaction):
    """Passes every question on, and calls `at` before and after it."""

    def __init__(self, inner: Database | Transaction, at: Callable[[], None], seen: list[Any]) -> None:
        self._inner = inner
        self._at = at
        self.seen = seen

    async def all(self, statement: Executable, **params: Any) -> list[Row]:
        rows: list[Row] = await self._ask("all", statement, params)
        return rows

    async def write_all(self, statement: Executable, **params: Any) -> list[Row]:
        rows: list[Row] = await self._ask("write_all", statement, params)
        return rows

    async def write_many(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> list[Row]:
        self._at()
        self.seen += [(statement, params) for params in rows[:1]]
        returned = await self._inner.write_many(statement, rows)
        self._at()
        return returned

    async def _ask(self, how: str, statement: Executable, params: dict[str, Any]) -> Any:
        self._at()
        self.seen.append((statement, params))
        answer = await getattr(self._inner, how)(statement, **params)
        self._at()
        return answer


class RecordingDatabase(_Recording, Database):
    """`seen`: every (statement, parameters), in order. `at`: called at every point between two of them."""

    def __init__(self, inner: Database, at: Callable[[], None] = lambda: None) -> None:
        super().__init__(inner, at, [])
        self._database = inner

    async def open(self) -> None:
        await self._database.open()

    async def close(self) -> None:
        await self._database.close()

    async def wait_for_replication(self) -> None:
        await self._database.wait_for_replication()

    def pool_use(self) -> dict[str, PoolUse]:
        return self._database.pool_use()

    async def scan(self, statement: Executable, **params: Any) -> list[Row]:
        rows: list[Row] = await self._ask("scan", statement, params)
        return rows

    async def write_locally(self, statement: Executable, **params: Any) -> Row | None:
        return await self._ask("write_locally", statement, params)

    async def announce(self, topic: str) -> None:
        await self._database.announce(topic)

    async def listen(self, connected: Callable[[], None], heard: Callable[[str], None]) -> None:
        await self._database.listen(connected, heard)

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        return self._transaction()

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Transaction]:
        self._at()
        async with self._database.transaction() as tx:
            yield _Recording(tx, self._at, self.seen)
        self._at()


class CrashPoint:
    """Dies at its `last` point, counted from 0, and stays dead; None lives on and counts."""

    def __init__(self, last: int | None = None) -> None:
        self.last = last
        self.points = 0

    def __call__(self) -> None:
        if self.last is not None and self.points >= self.last:
            raise ProcessDied
        self.points += 1

    @property
    def dead(self) -> bool:
        return self.last is not None and self.points >= self.last
