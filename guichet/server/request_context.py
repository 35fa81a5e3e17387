"""The outermost layer of every HTTP request: an id, one log line, the path as it was sent, and no traceback ever."""

import asyncio
import re
import time
from collections.abc import Awaitable
from secrets import token_hex
from typing import Final

import structlog
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guichet import metrics
from guichet.domain.errors import ServerError
from guichet.logs import log
from guichet.schemas.json_output import failure

_SANE_ID: Final = re.compile(r"[A-Za-z0-9._-]{8,64}")
_INCIDENT: Final = failure(ServerError())


class RequestContext:
    """Gives the request an id (the caller's own, if sane), returned as `X-Request-Id` and put on every log line.

    Routing sees the path percent-encoded as it was sent, so that an `external_id` may hold a slash (D10).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._log = log.bind()  # Made once; the name for all is looked up and configured anew at each line.

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["path"] = scope["raw_path"].decode("ascii", "replace")
        started = time.perf_counter()
        request_id = _sane_id(scope) or token_hex(16)
        bound = structlog.contextvars.bind_contextvars(request_id=request_id)
        status = 0

        def send_with_id(message: Message) -> Awaitable[None]:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            return send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except asyncio.CancelledError:  # The service stops, and this request had its time.
            if status:
                raise
            await _incident(send_with_id)
        except Exception as error:  # Whatever it is, the caller gets the envelope and the log gets the reason.
            log.error("request.crashed", error=repr(error), exc_info=True)
            if status:
                raise
            await _incident(send_with_id)
        finally:
            seconds = time.perf_counter() - started
            method, route = scope["method"], template(scope)
            metrics.request(method, route, status, seconds)
            self._log.info(
                "request", method=method, path=route or scope["path"][:200], status=status, ms=round(seconds * 1000, 1)
            )
            structlog.contextvars.reset_contextvars(**bound)


def _sane_id(scope: Scope) -> str | None:
    asked = header(scope, b"x-request-id")
    return asked if asked and _SANE_ID.fullmatch(asked) else None


def header(scope: Scope, name: bytes) -> str | None:
    """The first header of that name (in lower case): one walk over a few pairs, and nothing made of the others."""
    for known, value in scope["headers"]:
        if known == name:
            text: str = value.decode("latin-1")
            return text
    return None


async def _incident(send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(_INCIDENT)).encode())]
    await send({"type": "http.response.start", "status": ServerError.status, "headers": headers})
    await send({"type": "http.response.body", "body": _INCIDENT})


def template(scope: Scope) -> str | None:
    """The route rather than the path: a hosted page's token opens it, and belongs in no log. None without a route."""
    route = scope.get("route")
    if isinstance(route, Mount):  # A room was found, and no route in it.
        return f"{scope['root_path']}/*"
    path = getattr(route, "path", None)
    return f"{scope['root_path']}{path}" if path else None
