"""What a browser gets at an address that is none of ours: a page. A client of the API gets the contract's error."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from guichet.server.error_handler import handle_error

_HTML: Final = "text/html"


class BrowserPages:
    """`console`: shows the page. `machines`: where addresses begin at which no browser is expected."""

    def __init__(self, console: ASGIApp, public_url: str, machines: Sequence[str]) -> None:
        self._console = console
        self._home = urlsplit(public_url).path.rstrip("/") + "/console"
        self._machines = tuple(f"{path}/" for path in machines)

    async def handle_error(self, request: Request, error: Exception) -> Response:
        path, method = request.scope["path"], request.method
        unknown = isinstance(error, HTTPException) and error.status_code == 404
        is_browser = method in ("GET", "HEAD") and _HTML in request.headers.get("accept", "")
        if not unknown or not is_browser or path.startswith(self._machines):
            return await handle_error(request, error)
        return RedirectResponse(self._home, 303) if path == "/" else _PageOf(self._console)


class _PageOf(Response):
    """The answer of another application, which knows no such address either."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__()
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)
