"""The functions behind the addresses of the console. The tables of pages name them, and the module of one is imported
when it is first called: the memory of a server at rest is that of its API.

`tests/console/test_page_tables.py` finds a name that is wrong."""

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Generic, TypeVar

from starlette.responses import Response

from guichet.console.page_request import ConsoleRequest, FormFault

AnyRequest = TypeVar("AnyRequest", bound=ConsoleRequest)


class Handler(Generic[AnyRequest]):
    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name
        self._function: Callable[..., Awaitable[Response]] | None = None

    async def __call__(self, request: AnyRequest, *fault: FormFault) -> Response:
        if self._function is None:  # In a thread, which takes turns with the event loop: payments go on.
            self._function = await asyncio.to_thread(self.load)
        return await self._function(request, *fault)

    def load(self) -> Callable[..., Awaitable[Response]]:
        function: Callable[..., Awaitable[Response]] = getattr(import_module(self._module), self._name)
        return function
