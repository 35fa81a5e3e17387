"""Single writes that come at the same time become one: a transaction costs round trips and a flush to disk, whatever is
in it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")
R = TypeVar("R")

#: What became of one item of a batch.
Result: TypeAlias = R | Exception


class Batching(Generic[T, R]):
    """What comes while a batch is being written goes together in the next; what comes alone waits for nobody."""

    def __init__(self, write: Callable[[list[T]], Awaitable[Sequence[Result[R]]]], most: int) -> None:
        """`write` takes up to `most` items and answers one result for each, in their order; or raises for all."""
        self._write = write
        self._most = most
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def add(self, item: T) -> R:
        """Its own result, or the error of its batch."""
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        return await future

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                await self._write_one(batch)
        finally:
            self._writing = None

    async def _write_one(self, batch: list[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            results = await self._write([item for item, _ in batch])
        except BaseException as error:  # Whatever it is, it is told to those who wait, and to nobody else.
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            for (_, future), result in zip(batch, results, strict=True):
                if future.done():  # Who asked may have gone meanwhile; what it asked happened all the same.
                    continue
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)
