"""The one place that turns an exception into an answer, the application that uses it, and answers in JSON with the
contract's error envelope (docs/contract.md, "Errors").

Handlers raise `GuichetError` and let `StorageError` pass. Nothing else builds an error answer, except the rate limit,
which stands in front of the handlers, and the hosted pages, which say the same errors as HTML
(`checkout/state_pages.py`).
"""

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from guichet.db.errors import StorageError
from guichet.domain.errors import GuichetError, MethodNotAllowed, NotFound, RateLimited, ServerError, Unauthorized
from guichet.logs import log
from guichet.schemas.envelope import failure

ErrorHandler = Callable[[Request, Exception], Awaitable[Response]]

#: Where the scope of a request has the stable code of the error that it was answered with.
ERROR_CODE: Final = "guichet.error_code"
#: The same for the status of the response; 0 until it begins.
STATUS: Final = "guichet.status"
#: What nginx logs for a client that went away before it was answered. Nobody receives it; logs and metrics show it.
CLIENT_CLOSED_REQUEST: Final = 499
_NO_SUCH_ADDRESS: Final = "Cette adresse n'existe pas."


class JsonResponse(Response):
    """A response whose content is JSON text already: bytes from `schemas/`, where amounts are written exactly."""

    media_type = "application/json"


def error_response(error: GuichetError) -> Response:
    """`error` in the envelope, with its status; a 401 also says how to authenticate, a 429 when to try again."""
    response = JsonResponse(failure(error), error.status)
    if isinstance(error, Unauthorized):
        response.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, RateLimited):  # The least that it can be; the limit in front of the routes knows better.
        response.headers["Retry-After"] = "1"
    return response


def contract_error(error: Exception) -> GuichetError:
    """The contract's error that stands for `error`; a failure of the database or a bug is a ServerError."""
    match error:
        case GuichetError():
            return error
        case HTTPException(status_code=404):
            return NotFound(_NO_SUCH_ADDRESS)
        case HTTPException(status_code=405):
            return MethodNotAllowed()
        case _:
            return ServerError()


def error_headers(error: Exception) -> Mapping[str, str]:
    """The headers that `error` brings: `Allow`, sorted, with a 405."""
    allowed = error.headers.get("Allow") if isinstance(error, HTTPException) and error.headers else None
    return {"Allow": ", ".join(sorted(allowed.split(", ")))} if allowed else {}


def log_storage_error(error: Exception) -> None:
    """Bugs are logged by `RequestContext`, once they were answered."""
    if isinstance(error, StorageError):
        log.error("request.storage", error=repr(error))


async def handle_error(request: Request, error: Exception) -> Response:
    """Starlette's exception handler for everything outside the hosted pages."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    if isinstance(error, HTTPException) and error.status_code not in (404, 405):
        return Response(status_code=error.status_code, headers=error.headers)
    log_storage_error(error)
    public_error = contract_error(error)
    request.scope[ERROR_CODE] = public_error.code
    response = error_response(public_error)
    response.headers.update(error_headers(error))
    return response


class Application:
    """Routes behind middleware. What the routes raise is answered by `handler`; what is not `expected` is a bug and is
    raised again for the log. A slash too many is a 404, never a redirect.

    Starlette's own application has two layers for that, and its router a third one, each around every message. The
    routes before the first mount are found without the router: it takes 40,000 instructions for the first of them.
    """

    def __init__(
        self,
        routes: Sequence[BaseRoute],
        middleware: Sequence[Middleware],
        handler: ErrorHandler,
        expected: tuple[type[Exception], ...],
    ) -> None:
        self._router = Router(routes, redirect_slashes=False)
        #: The routes before the first mount: by their paths, and those with parameters by the first part of their
        #: paths, so that a page is not compared with all routes of the API.
        self._by_path: dict[str, Route] = {}
        self._by_pattern: defaultdict[str, list[tuple[re.Pattern[str], Route]]] = defaultdict(list)
        for route in routes:
            if not isinstance(route, Route) or "{" in _first_part(route.path):
                break
            if route.param_convertors:
                self._by_pattern[_first_part(route.path)].append((route.path_regex, route))
            else:
                self._by_path.setdefault(route.path, route)
        self._handler = handler
        self._expected = expected
        self._app: ASGIApp = self._route
        for layer in reversed(middleware):
            self._app = layer.cls(self._app, *layer.args, **layer.kwargs)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        scope["app"] = self  # A router then raises what it would answer in plain text.
        return self._app(scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._find(scope)(scope, receive, send)
        except Exception as error:
            is_answered = bool(scope.get(STATUS))
            if not is_answered:
                response = await self._handler(Request(scope, receive, send), error)
                await response(scope, receive, send)
            if is_answered or not isinstance(error, self._expected):
                raise

    def _find(self, scope: Scope) -> ASGIApp:
        """What serves the request: a route, or the router for all that is not as simple."""
        path, method = scope["path"], scope["method"]
        if scope["root_path"]:
            return self._router
        route = self._by_path.get(path)
        scope["path_params"] = {}
        if route is None:
            for pattern, candidate in self._by_pattern.get(_first_part(path), ()):
                if (match := pattern.match(path)) and (not candidate.methods or method in candidate.methods):
                    route, convertors = candidate, candidate.param_convertors
                    scope["path_params"] = {
                        name: convertors[name].convert(text) for name, text in match.groupdict().items()
                    }
                    break
        if route is None or (route.methods and method not in route.methods):
            return self._router
        scope["route"] = route
        app: ASGIApp = route.app
        return app


def _first_part(path: str) -> str:
    """`v1` of `/v1/payments`."""
    return path[1:].partition("/")[0]


def application(
    routes: Sequence[BaseRoute],
    middleware: Sequence[Middleware] = (),
    handler: ErrorHandler = handle_error,
    own_errors: Sequence[type[Exception]] = (),
) -> Application:
    """`own_errors`: what the handlers of the routes raise besides the contract's errors."""
    expected = (GuichetError, StorageError, HTTPException, ClientDisconnect, *own_errors)
    return Application(routes, middleware, handler, expected)
