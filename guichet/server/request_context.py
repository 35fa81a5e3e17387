"""The outermost middleware of every HTTP request: its id, its log line and its metrics."""

import asyncio
import random
import re
import time
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guichet import metrics
from guichet.domain.errors import ServerError
from guichet.domain.token_buckets import TokenBuckets
from guichet.logs import log, request_id_of_line
from guichet.server.json_response import error_response

#: How the route of a provider's callback begins.
_CALLBACKS: Final = "/providers/"
_ACCEPTED_ID: Final = re.compile(r"[A-Za-z0-9._-]{8,64}")


class RequestContext:
    """Gives the request an id (the caller's own if it is well formed), returned as `X-Request-Id`, on every log line.

    Routing sees the path percent-encoded as it was sent, so that an `external_id` may hold a slash (D10).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        #: The lines of requests that anybody can send without a key, of all addresses together.
        self._strangers_lines = TokenBuckets(burst=200, per_second=10)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["path"] = scope["raw_path"].decode("ascii", "replace")
        started_at = time.perf_counter()
        request_id = _request_id(scope)
        token = request_id_of_line.set(request_id)
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except asyncio.CancelledError:  # The service stops and does not wait any longer for this request.
            if status:
                raise
            await error_response(ServerError())(scope, receive, send_with_id)
        except Exception as error:  # A bug. The error handler has answered it already, and Starlette raises it again.
            log.error("request.crashed", error=repr(error), exc_info=True)
        finally:
            self._record(scope, status, time.perf_counter() - started_at)
            request_id_of_line.reset(token)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        """Counts the request and logs it. Not all requests without a key are logged (those that match no route or were
        refused by the rate limit, and callbacks): anybody could fill the disk with them (D101)."""
        method, route = scope["method"], route_template(scope)
        metrics.request(method, route, status, seconds)
        strangers = status < 500 and (route is None or route.startswith(_CALLBACKS))
        if strangers and not self._strangers_lines.take("all", time.monotonic_ns() // 1000):
            return
        path = route or _first_segment(scope["path"])
        log.info("request", method=method, path=path, status=status, ms=round(seconds * 1000, 1))


def _request_id(scope: Scope) -> str:
    """The caller's own, or a new one, which is unique but no secret."""
    given = Headers(scope=scope).get("x-request-id")
    return given if given and _ACCEPTED_ID.fullmatch(given) else f"{random.getrandbits(128):032x}"


def _first_segment(path: str) -> str:
    """`/v1/*` of a path that no route serves: the rest may hold what no log may, such as a phone number."""
    first, slash, _ = path[1:].partition("/")
    return f"/{first[:200]}{slash and '/*'}"


def route_template(scope: Scope) -> str | None:
    """`/v1/payments/{reference}` rather than the path, which may open a hosted page and belongs in no log.

    `/pay/*` when a mount matched and no route in it; None when nothing matched.
    """
    route = scope.get("route")
    if isinstance(route, Mount):
        return f"{scope['root_path']}/*"
    path = getattr(route, "path", None)
    return f"{scope['root_path']}{path}" if path else None
