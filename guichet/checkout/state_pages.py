"""The pages that say why nothing can be paid here: their HTTP status, icon and the action offered to the customer; the
API's errors are shown as such pages.

The texts stand in the catalogues under `state.<name>.title` and `state.<name>.text`.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from guichet.checkout.page_context import PageContext
from guichet.clock import Instant
from guichet.domain.errors import GuichetError, InvalidRequest, MethodNotAllowed, NotFound, RateLimited
from guichet.domain.merchants import Merchant
from guichet.domain.payment_links import PaymentLink
from guichet.domain.posting_rules import ACTIVE, WalletStatus
from guichet.domain.records import Record
from guichet.logs import log
from guichet.pages.page_request import PageRequest
from guichet.server.error_handler import CLIENT_CLOSED_REQUEST, contract_error, error_headers, log_storage_error

#: Why nothing can be paid on a page.
StateName = Literal[
    "not_open",
    "expired",
    "used_up",
    "busy",
    "last_taken",
    "last_done",
    "suspended",
    "frozen",
    "unknown",
    "method",
    "unreadable",
    "elsewhere",
    "too_many",
    "server_error",
]


class State(Record, frozen=True):
    """`action`: a key under `state.action`; `nothing_charged`: the page says that nothing was charged."""

    status: int
    icon: str
    tone: str = "warn"
    action: str | None = None
    nothing_charged: bool = True


STATES: Final[Mapping[StateName, State]] = {
    "not_open": State(403, "clock", nothing_charged=False),
    "expired": State(410, "clock", nothing_charged=False),
    "used_up": State(410, "check", tone="", nothing_charged=False),
    "busy": State(409, "clock", action="retry", nothing_charged=False),
    "last_taken": State(409, "clock", action="retry", nothing_charged=False),
    "last_done": State(409, "check", nothing_charged=False),
    "suspended": State(403, "warn"),
    "frozen": State(409, "warn", action="retry"),
    "unknown": State(404, "search", nothing_charged=False),
    "method": State(405, "search", nothing_charged=False),
    "unreadable": State(422, "warn", nothing_charged=False),
    "elsewhere": State(403, "warn", action="link"),
    "too_many": State(429, "clock", nothing_charged=False),
    "server_error": State(500, "warn", tone="bad", nothing_charged=False),
}


def state_page(page: PageRequest, name: StateName, action_href: str | None = None, **values: Any) -> Response:
    """The page of one state; `values` fill its texts."""
    state = STATES[name]
    title, text = (page.text(f"state.{name}.{part}", **values) for part in ("title", "text"))
    response = page.render(
        "message.html", status=state.status, state=state, title=title, text=text, action_href=action_href
    )
    if state.status == 429:
        response.headers["Retry-After"] = "60"
    return response


def closed_state(
    link: PaymentLink, merchant: Merchant, wallet_status: WalletStatus, now: Instant, *, has_room: bool
) -> StateName | None:
    """The state that keeps this link from being paid now, the first that holds; None when it can be paid.

    `has_room`: another payment could have a use of it (`link_repository.has_room`).
    """
    reasons: tuple[tuple[StateName, bool], ...] = (
        ("suspended", link.env == "live" and merchant.status != "active"),
        ("expired", link.expires_at is not None and link.expires_at <= now),
        ("used_up", link.uses_left == 0),
        ("not_open", link.starts_at is not None and now < link.starts_at),
        ("frozen", wallet_status != ACTIVE),
        ("busy", not has_room),
    )
    return next((name for name, holds in reasons if holds), None)


def link_state_page(page: PageRequest, name: StateName, link: PaymentLink, merchant: Merchant) -> Response:
    """The page of a link that cannot be paid."""
    instant = link.starts_at if name == "not_open" else link.expires_at
    moment = page.date_time(instant) if instant is not None else ""
    return state_page(page, name, page.href(f"/pay/{link.path}"), merchant=merchant.name, moment=moment)


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
