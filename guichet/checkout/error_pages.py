"""The exception handler of the hosted pages: shows the API's errors as pages that a customer understands."""

from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from guichet.checkout.page_context import PageContext
from guichet.checkout.state_pages import StateName, state_page
from guichet.domain.errors import GuichetError, InvalidRequest, MethodNotAllowed, NotFound, RateLimited
from guichet.logs import log
from guichet.server.error_handler import CLIENT_CLOSED_REQUEST, contract_error, error_headers, log_storage_error

#: The page of each error; all others have that of `server_error`.
_STATES: Final[dict[type[GuichetError], StateName]] = {
    NotFound: "unknown",
    MethodNotAllowed: "method",
    InvalidRequest: "unreadable",
    RateLimited: "too_many",
}


async def error_page(pages: PageContext, request: Request, error: Exception) -> Response:
    """The page for an error. Requests for pages that do not exist are counted for the rate limit."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    state = _STATES.get(type(contract_error(error)))
    if state == "unknown":
        await pages.limits.count_unknown(request)
    if state is None and isinstance(error, GuichetError):
        log.error("page.unexpected_error", code=error.code, error=repr(error))
    log_storage_error(error)
    response = state_page(pages.request(request), state or "server_error")
    response.headers.update(error_headers(error))
    return response


class PageLimitMiddleware:
    """Refuses a request over the rate limit, before anything is read from the database."""

    def __init__(self, app: ASGIApp, pages: PageContext) -> None:
        self._app = app
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        if scope["type"] != "http" or await self._pages.limits.allows(request):
            await self._app(scope, receive, send)
        else:
            refusal = await error_page(self._pages, request, RateLimited())
            await refusal(scope, receive, send)
