"""What a server imports and builds at the first request that needs it, or once it listens: its start is that of a first
payment.

A `LazyApplication` is the one way to do so for addresses, the worker of a process that serves is a `DeferredWorker`; a
function imports what few of its calls need by itself.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from importlib import import_module
from typing import Final, Protocol

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

#: Seconds that `/readyz` waits for the start of the worker's loops.
_PATIENCE: Final = 2.0


async def import_in_thread(modules: Sequence[str]) -> None:
    """Requests are answered meanwhile."""
    for module in modules:
        await asyncio.to_thread(import_module, module)


class LazyApplication:
    """What is built runs until `aclose`."""

    def __init__(self, build: Callable[[], ASGIApp]) -> None:
        self._build = build
        self._building = asyncio.Lock()
        self._app: ASGIApp | None = None
        self._running = AsyncExitStack()
        self.aclose = self._running.aclose

    def at(self, *paths: str) -> list[Route]:
        """Its routes: these paths, and all below them, which a mount would cut off."""
        return [Route(path, self) for root in paths for path in (root, f"{root}/{{page:path}}")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._app or await self.start())(scope, receive, send)

    async def start(self) -> ASGIApp:
        """The application, built and running."""
        async with self._building:
            if self._app is None:
                self._app = await self._start()
            return self._app

    async def _start(self) -> ASGIApp:
        app = await asyncio.to_thread(self._build)  # It takes long enough to delay payments.
        if isinstance(app, Starlette):
            await self._running.enter_async_context(app.router.lifespan_context(app))
        return app


class Loops(Protocol):
    """A worker (`worker/worker.py`)."""

    def start(self) -> None: ...

    async def stop(self, grace: float) -> None: ...

    async def is_alive(self) -> bool: ...


class DeferredWorker:
    """Its modules are imported in a thread once the port listens. Runs from `start` on."""

    def __init__(self, modules: Sequence[str], make: Callable[[], Loops]) -> None:
        """`modules`: what `make` imports."""
        self._modules = modules
        self._make = make
        self._loops: Loops | None = None
        self._started = asyncio.Event()
        self._stopping = False

    async def start(self) -> None:
        await import_in_thread(self._modules)
        if not self._stopping:
            self._loops = self._make()
            self._loops.start()
        self._started.set()

    async def is_alive(self) -> bool:
        """Whether every loop is running. The start is waited for: nobody shall see a server that is not ready yet."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._started.wait()
        return self._loops is not None and await self._loops.is_alive()

    async def stop(self, grace: float) -> None:
        self._stopping = True
        if self._loops is not None:
            await self._loops.stop(grace)
