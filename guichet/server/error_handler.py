"""The one place that turns an exception into an answer, and the application that uses it.

Handlers raise `GuichetError` and let `StorageError` pass. Nothing else builds an error answer, except the rate limit,
which stands in front of the handlers, and the hosted pages, which say the same errors as HTML
(`checkout/error_pages.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ExceptionHandler

from guichet.db.errors import StorageError
from guichet.domain.errors import GuichetError, MethodNotAllowed, NotFound, ServerError
from guichet.logs import log
from guichet.server.json_response import error_response
from guichet.server.request_context import ERROR_CODE

#: What nginx logs for a client that went away before it was answered. Nobody receives it; logs and metrics show it.
CLIENT_CLOSED_REQUEST: Final = 499
_NO_SUCH_ADDRESS: Final = "Cette adresse n'existe pas."


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
    stated = contract_error(error)
    request.scope[ERROR_CODE] = stated.code
    response = error_response(stated)
    response.headers.update(error_headers(error))
    return response


def application(
    routes: Sequence[BaseRoute],
    middleware: Sequence[Middleware] = (),
    handler: ExceptionHandler = handle_error,
    own_errors: Sequence[type[Exception]] = (),
) -> Starlette:
    """A Starlette application that answers errors with `handler`; a slash too many is a 404, never a redirect.

    `own_errors`: what its handlers raise besides the contract's errors. Anything else is a bug, and is logged as one.
    """
    expected = (GuichetError, StorageError, HTTPException, *own_errors)
    handlers: dict[Any, ExceptionHandler] = dict.fromkeys(expected, handler)
    app = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={**handlers, ClientDisconnect: handler, Exception: handler},
    )
    app.router.redirect_slashes = False
    return app
