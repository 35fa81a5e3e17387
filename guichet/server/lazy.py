"""What a server imports and builds at the first request that needs it, or once it listens: its start is that of a first
payment.

A `LazyApplication` is the one way to do so for addresses; a function imports what few of its calls need by itself.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from importlib import import_module

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send


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
