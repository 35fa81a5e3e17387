"""Writes single items that come at the same time as one batch: a transaction costs the same round trips and the same
flush to disk whatever is in it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")
R = TypeVar("R")

#: What became of one item of a batch: its result, or the error that concerns it alone.
Result: TypeAlias = R | Exception


class Batching(Generic[T, R]):
    """Items that come while a batch is being written go together in the next batch. An item that comes alone is written
    at once."""

    def __init__(self, write: Callable[[list[T]], Awaitable[Sequence[Result[R]]]], most: int) -> None:
        """`write` takes up to `most` items and returns one result for each, in their order; or raises for all."""
        self._write = write
        self._most = most
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def add(self, item: T) -> R:
        """The item's result, once its batch is written. Raises the item's error, or that of its batch."""
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_batches())
        return await future

    async def _write_batches(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                await self._write_batch(batch)
        finally:
            self._writer = None

    async def _write_batch(self, batch: list[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            results = await self._write([item for item, _ in batch])
        except BaseException as error:  # Any error goes to those who wait for this batch.
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            for (_, future), result in zip(batch, results, strict=True):
                if future.done():  # The caller was cancelled meanwhile; its item was written all the same.
                    continue
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)
