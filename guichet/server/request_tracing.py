"""A middleware that makes a span of every request; it is there only if `GUICHET_OTLP_ENDPOINT` is set."""

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guichet.server.request_context import route_template
from guichet.tracing import Tracer

#: Machines request these every few seconds, and nobody looks at their traces.
_PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})


class TracedRequests:
    """The outermost middleware. A span names the route, not the path, which may hold an `external_id` or a token."""

    def __init__(self, app: ASGIApp, tracer: Tracer) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _PROBES:
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        method: str = scope["method"]
        attributes: dict[str, str | int] = {"http.request.method": method}

        async def send_and_note(message: Message) -> None:
            if message["type"] == "http.response.start":
                attributes["http.response.status_code"] = message["status"]
                request_id = dict(message["headers"]).get(b"x-request-id", b"")
                attributes["guichet.request_id"] = request_id.decode("latin-1")
            await send(message)

        with self._tracer.request(headers.get(b"traceparent", b"").decode("latin-1") or None) as end:
            try:
                await self._app(scope, receive, send_and_note)
            finally:
                route = route_template(scope)
                if route:
                    attributes["http.route"] = route
                status = attributes.get("http.response.status_code", 0)
                end(f"{method} {route}" if route else method, attributes, not status or int(status) >= 500)
