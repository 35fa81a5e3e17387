"""The routes of the contract and the order of checks: rate limit, route and verb, key, account state, handler (D15)."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guichet.api.auth import Authenticator
from guichet.api.endpoints import ENDPOINTS, Handler
from guichet.api.http import Call
from guichet.context import AppContext
from guichet.db.errors import StorageError
from guichet.domain.errors import GuichetError, MethodNotAllowed, NotFound, RateLimited, ServerError
from guichet.logs import log
from guichet.server.json_response import NO_SUCH_ADDRESS, error_response
from guichet.server.rate_limit import Allowance, RateLimiter
from guichet.server.request_context import header

_ROOT: Final = "/v1"
_BELOW: Final = "/v1/"


class Api:
    """The API at /v1 as one ASGI application; `others` serves every other path.

    In front of the others' router rather than mounted in it: most requests are the API's, and no pattern is tried on
    them.
    """

    def __init__(self, ctx: AppContext, others: ASGIApp) -> None:
        self._others = others
        self._mount = Mount(_ROOT, self._serve)
        self._core = ctx
        self._authenticator = Authenticator(ctx.db, ctx.clock)
        settings = ctx.settings
        self._limiter = RateLimiter(settings.rate_limit, settings.trusted_proxies, "api", ctx.shared_counters)
        routes = self._routes()
        #: Most requests name one of these: found without trying a pattern after the other.
        self._fixed = {route.path: route for route in routes if "{" not in route.path}
        self._router = Router(routes=routes, redirect_slashes=False, default=_no_such_route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(_BELOW):
            scope["root_path"] = _ROOT
            scope["route"] = self._mount  # Until a route is found below it.
            await self._serve(scope, receive, send)
        else:
            await self._others(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        allowance = await self._limiter.take(scope)
        if allowance is not None:
            send = _announcing(allowance, send)
        try:
            if allowance is not None and not allowance.allowed:
                raise RateLimited
            if route := self._fixed.get(scope["path"][len(_ROOT) :]):
                scope["route"] = route
                await route.app(scope, receive, send)
            else:
                await self._router(scope, receive, send)
        except GuichetError as error:
            await error_response(error)(scope, receive, send)

    def _routes(self) -> list[Route]:
        by_path: dict[str, dict[str, Handler]] = defaultdict(dict)
        for endpoint in ENDPOINTS:
            by_path[endpoint.path][endpoint.method] = endpoint.handler
        return [Route(path, _Verbs(self._core, self._authenticator, verbs)) for path, verbs in by_path.items()]


class _Verbs:
    """One path of the API: its handlers by verb."""

    def __init__(self, ctx: AppContext, authenticator: Authenticator, handlers: Mapping[str, Handler]) -> None:
        self._core = ctx
        self._authenticator = authenticator
        self._handlers = handlers
        self._allowed: Final = ", ".join(sorted(handlers))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if handler := self._handlers.get(scope["method"]):
            response = await self._serve(handler, scope, receive)
        else:
            response = error_response(MethodNotAllowed())
            response.headers["Allow"] = self._allowed
        await response(scope, receive, send)

    async def _serve(self, handler: Handler, scope: Scope, receive: Receive) -> Response:
        try:
            caller = await self._authenticator.caller(header(scope, b"authorization"))
            return await handler(Call(self._core, Request(scope, receive), caller))
        except GuichetError as error:
            return error_response(error)
        except StorageError as error:
            log.error("request.storage", error=repr(error))
            return error_response(ServerError())
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:  # A bug: the caller gets the envelope, the log gets the reason.
            log.error("request.crashed", error=repr(error), exc_info=True)
            return error_response(ServerError())


def _announcing(allowance: Allowance, send: Send) -> Send:
    """Puts what is left of the limit on the answer's head."""

    async def announce(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-RateLimit-Remaining"] = str(allowance.remaining)
            if not allowance.allowed:
                headers["Retry-After"] = str(allowance.retry_after)
        await send(message)

    return announce


async def _no_such_route(scope: Scope, receive: Receive, send: Send) -> None:
    raise NotFound(NO_SUCH_ADDRESS)
