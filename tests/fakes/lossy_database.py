"""A database whose connection breaks once, at a chosen write."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from sqlalchemy import Executable

from guichet.db.engine import Row, Transaction
from guichet.db.errors import ConnectionLost
from tests.fakes.recording_database import RecordingDatabase

T = TypeVar("T")


class LossyDatabase(RecordingDatabase):
    """`lose_at(n, happened=…)`: the connection breaks at the n-th write or commit from now on, counted from 0: after it
    happened, so that only its answer is lost, or before. `writes`: how many there have been since then."""

    writes = 0
    _lost: int | None = None
    _happened = False

    def lose_at(self, number: int | None, *, happened: bool = False) -> None:
        self.writes, self._lost, self._happened = 0, number, happened

    async def write_all(self, statement: Executable, **params: Any) -> list[Row]:
        return await self._lossy(lambda: self._database.write_all(statement, **params))

    async def write_many(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> list[Row]:
        return await self._lossy(lambda: self._database.write_many(statement, rows))

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Transaction]:
        breaks = self._breaks()
        async with self._database.transaction() as tx:
            yield tx
            if breaks and not self._happened:
                raise ConnectionLost
        if breaks:
            raise ConnectionLost

    async def _lossy(self, write: Callable[[], Awaitable[T]]) -> T:
        breaks = self._breaks()
        if breaks and not self._happened:
            raise ConnectionLost
        result = await write()
        if breaks:
            raise ConnectionLost
        return result

    def _breaks(self) -> bool:
        self.writes += 1
        return self.writes - 1 == self._lost
