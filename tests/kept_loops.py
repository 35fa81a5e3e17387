"""Event loops that outlast a test, with the connections to PostgreSQL that belong to them (`kept_connections.py`)."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, ClassVar, TypeVarTuple
from weakref import WeakSet

import uvloop

Args = TypeVarTuple("Args")
#: Waits for the threads of those that are closed.
_ENDING = ThreadPoolExecutor(max_workers=1)


class KeptLoop(uvloop.Loop):
    """Closed, it is free for the next test. Who closes it has cancelled every task before (`asyncio.Runner`)."""

    _free: ClassVar[list["KeptLoop"]] = []

    def __init__(self) -> None:
        super().__init__()
        self._generators: WeakSet[AsyncGenerator[Any, Any]] = WeakSet()
        self._threads: ThreadPoolExecutor | None = None

    @classmethod
    def new(cls) -> "KeptLoop":
        return cls._free.pop() if cls._free else cls()

    @classmethod
    def end_all(cls) -> None:
        while cls._free:
            super().close(cls._free.pop())

    def close(self) -> None:
        self.set_exception_handler(None)
        self.set_task_factory(None)
        self._free.append(self)

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Args], Any], *args: *Args) -> Any:
        if executor is None and self._threads is None:
            self._threads = ThreadPoolExecutor()
            self.set_default_executor(self._threads)
        return super().run_in_executor(executor, func, *args)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """As uvloop's, after which there can be no other."""
        threads, self._threads = self._threads, None
        if threads is not None:
            await super().run_in_executor(_ENDING, threads.shutdown)

    async def shutdown_asyncgens(self) -> None:
        """As uvloop's, which takes no generator any more afterwards."""
        left = list(self._generators)
        self._generators.clear()
        await asyncio.gather(*(generator.aclose() for generator in left), return_exceptions=True)

    def _asyncgen_firstiter_hook(self, generator: AsyncGenerator[Any, Any]) -> None:
        self._generators.add(generator)
