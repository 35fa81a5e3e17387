"""The exception handler of the console: errors as pages that a person understands."""

from contextlib import suppress
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from guichet import metrics
from guichet.accounts.errors import Forbidden, SecondFactorNeeded
from guichet.console.console import Console
from guichet.console.page_request import PAGE_REQUEST, ConsoleRequest, FormRefused
from guichet.db.errors import StorageError
from guichet.domain.errors import GuichetError, InvalidRequest, MethodNotAllowed, NotFound, RateLimited
from guichet.logs import log
from guichet.server.error_handler import CLIENT_CLOSED_REQUEST, contract_error, error_headers, log_storage_error
from guichet.server.rate_limit import RateLimiter
from guichet.server.rate_limits import RateLimit

#: The page and the status of each error; all others are a fault of ours.
_STATES: Final[dict[type[Exception], tuple[str, int]]] = {
    NotFound: ("unknown", 404),
    # Whether a merchant of somebody else exists is not said.
    Forbidden: ("forbidden", 403),
    MethodNotAllowed: ("unknown", 405),
    InvalidRequest: ("form_refused", 422),
    FormRefused: ("form_refused", 403),
    RateLimited: ("too_many", 429),
}


class ConsoleLimitMiddleware:
    """Refuses a request over the rate limit, before anything is read from the database."""

    def __init__(self, app: ASGIApp, console: Console, limiter: RateLimiter, limit: RateLimit) -> None:
        self._app = app
        self._console = console
        self._limiter = limiter
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or await self._limiter.hit(self._limit, self._console.addresses.counted(scope)):
            await self._app(scope, receive, send)
            return
        metrics.RATE_LIMITED.labels(self._limit.name).inc()
        refusal = await error_page(self._console, Request(scope), RateLimited())
        refusal.headers["Retry-After"] = "60"
        await refusal(scope, receive, send)


async def _page_request(console: Console, request: Request, error: Exception) -> ConsoleRequest:
    """With the menu, where the page knew it. An unknown address has no page: who is signed in is read for it, as
    for any page. Nothing is read for a request over the rate limit, nor when the database has failed."""
    page: ConsoleRequest | None = request.scope.get(PAGE_REQUEST)
    if page is None and isinstance(error, HTTPException):
        with suppress(StorageError):
            page = await ConsoleRequest.begin(console, request)
    return page if page is not None else ConsoleRequest(console, request)


async def error_page(console: Console, request: Request, error: Exception) -> Response:
    if isinstance(error, ClientDisconnect):
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    page = await _page_request(console, request, error)
    if isinstance(error, SecondFactorNeeded):
        # What was typed into a form is gone afterwards: its page says so.
        path = request.url.path if request.method == "GET" else f"{request.url.path}?repeat=yes"
        return page.redirect(page.console_url("/factor", next=path))
    known = error if isinstance(error, Forbidden | FormRefused) else contract_error(error)
    name, status = _STATES.get(type(known), ("server_error", 500))
    if name == "server_error" and isinstance(error, GuichetError):
        log.error("page.unexpected_error", code=error.code, error=repr(error))
    log_storage_error(error)
    response = page.page("message.html", status=status, name=name, action=page.console_url(""))
    response.headers.update(error_headers(error))
    return response
