"""A span for every request, outside everything else; bootstrap puts it there only where traces are wanted."""

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guichet.server.request_context import route_template
from guichet.tracing import Tracer

#: Asked every few seconds by machines: nobody follows them.
_PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})


class TracedRequests:
    """Says the route and not the path, which may hold a merchant's `external_id` or open a hosted page."""

    def __init__(self, app: ASGIApp, tracer: Tracer) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _PROBES:
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        method: str = scope["method"]
        said: dict[str, str | int] = {"http.request.method": method}

        async def overhearing(message: Message) -> None:
            if message["type"] == "http.response.start":
                said["http.response.status_code"] = message["status"]
                request_id = dict(message["headers"]).get(b"x-request-id", b"")
                said["guichet.request_id"] = request_id.decode("latin-1")
            await send(message)

        with self._tracer.request(headers.get(b"traceparent", b"").decode("latin-1") or None) as end:
            try:
                await self._app(scope, receive, overhearing)
            finally:
                route = route_template(scope)
                if route:
                    said["http.route"] = route
                status = said.get("http.response.status_code", 0)
                end(f"{method} {route}" if route else method, said, not status or int(status) >= 500)
