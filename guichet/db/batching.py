"""Writes single items that come at the same time as one batch: a transaction costs the same round trips and the same
flush to disk whatever is in it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, Self, TypeAlias, TypeVar

from guichet.db.engine import require
from guichet.db.errors import StorageUnavailable

#: Seconds in which what nobody waits for is gathered before it is claimed or written: a statement and its commit cost
#: more than a dozen of their rows.
GATHERED_WITHIN: Final = 0.02

T = TypeVar("T")
R = TypeVar("R")

#: What became of one item of a batch: its result, or the error that concerns it alone.
Result: TypeAlias = R | Exception


class Batching(Generic[T, R]):
    """Items that come while as many batches as may are being written go together in the next batch. An item that comes
    alone is written at once, with those of the same iteration of the event loop; or after `gathers` seconds, with those
    that came meanwhile."""

    def __init__(
        self,
        write: Callable[[list[T]], Awaitable[Sequence[Result[R]]]],
        most: int,
        *,
        at_once: int = 1,
        patience: float | None = None,
        gathers: float = 0.0,
    ) -> None:
        """`write` takes up to `most` items and returns one result for each, in their order; or raises for all.
        `at_once`: batches that are written at the same time. `patience`: seconds after which items whose batch has not
        begun fail with StorageUnavailable; None: they wait."""
        self._write = write
        self._most = most
        self._at_once = at_once
        self._patience = patience
        self._gathers = gathers
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._writers: set[asyncio.Task[None]] = set()
        #: A writer was made and has not taken a batch yet.
        self._is_starting = False
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    def written_by(
        cls, make: Callable[[], Callable[[list[T]], Awaitable[Sequence[Result[R]]]]], most: int, gathers: float
    ) -> Self:
        """With a `write` that `make` imports when the first item comes."""

        async def first(items: list[T]) -> Sequence[Result[R]]:
            batching._write = make()
            return await batching._write(items)

        batching = cls(first, most, gathers=gathers)
        return batching

    async def add(self, item: T) -> R:
        """The item's result, once its batch is written. Raises the item's error, or that of its batch."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._waiting.append((item, future))
        if self._is_starting:
            pass
        elif len(self._writers) < self._at_once:
            self._is_starting = True
            self._writers.add(loop.create_task(self._write_batches()))
        elif self._timer is None:
            self._start_timer()
        return await future

    async def _write_batches(self) -> None:
        self._is_starting = False
        try:
            while self._waiting:
                if self._gathers and len(self._waiting) < self._most:
                    await self._gather()
                batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                if self._timer is not None:
                    self._timer.cancel()
                    self._timer = None
                if self._waiting:
                    self._start_timer()
                if batch:  # Another writer may have taken what this one has gathered.
                    await self._write_batch(batch)
        finally:  # Now, and not in a callback: an item may come before that runs.
            self._writers.discard(require(asyncio.current_task()))

    async def _gather(self) -> None:
        """What comes meanwhile needs no other writer."""
        self._is_starting = True
        try:
            await asyncio.sleep(self._gathers)
        finally:
            self._is_starting = False

    def _start_timer(self) -> None:
        if self._patience is not None:
            self._timer = asyncio.get_running_loop().call_later(self._patience, self._give_up)

    def _give_up(self) -> None:
        """No batch was begun for as long as the first of those who wait may wait."""
        self._timer = None
        waiting, self._waiting = self._waiting, []
        for _, future in waiting:
            if not future.done():
                future.set_exception(StorageUnavailable(f"not written within {self._patience:g} s"))

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
