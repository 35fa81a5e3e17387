"""The addresses of the hosted pages.

GET POST /pay/<a>/<b>                 a payment link
GET      /pay/<a>/<b>/qr              its QR code, for printing
GET      /pay/<a>/<b>/<token>         a payment made through it: waiting, receipt, failure
GET      /pay/<a>/<b>/<token>/status  the same for the script
GET POST /pay/<a>/<b>/<token>/other   another attempt in its place, when it can be confirmed no more
GET      /pay/assets/<name>           the script
GET POST /checkout/<token>            card payment in the test environment
GET      /checkout/<token>/return     back from a provider's page, on to the merchant's
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, Router

from guichet.checkout import card, link_payment, links, payments
from guichet.checkout.page_context import PageContext, PageLimits
from guichet.checkout.state_pages import PageLimitMiddleware, error_page
from guichet.checkout.tokens import FormTokens, PaymentCookie
from guichet.context import AppContext
from guichet.pages.page_request import PageRequest
from guichet.server.error_handler import Application, application
from guichet.server.rate_limit import RateLimiter

Handler = Callable[[PageContext, PageRequest], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]

SIMULATED_PHONE: Final = "/simulator/phone"


def checkout(ctx: AppContext, limiter: RateLimiter) -> Router:
    """For the root of the server, below `server.request_context.RequestContext`."""
    pages = _page_context(ctx, limiter)
    limited = [Middleware(PageLimitMiddleware, pages)]
    pay = _application(
        pages,
        [
            Route("/{a}/{b}", _endpoint(pages, get=links.show, post=link_payment.pay), methods=["GET", "POST"]),
            Route("/{a}/{b}/qr", _endpoint(pages, get=links.show_qr_code)),
            Route("/{a}/{b}/{token}", _endpoint(pages, get=payments.show)),
            Route("/{a}/{b}/{token}/status", _endpoint(pages, get=payments.status)),
            Route(
                "/{a}/{b}/{token}/other",
                _endpoint(pages, get=link_payment.show_other, post=link_payment.pay_other),
                methods=["GET", "POST"],
            ),
        ],
        limited,
    )
    cards = [
        Route("/{token}", _endpoint(pages, get=card.show, post=card.choose), methods=["GET", "POST"]),
        Route("/{token}/return", _endpoint(pages, get=payments.redirect)),
    ]
    routes: list[BaseRoute] = [
        # Not counted: a browser keeps it for a year.
        Mount("/pay/assets", _application(pages, [Route("/{name}", _asset_endpoint(pages))])),
        Mount("/pay", pay),
        Mount("/checkout", _application(pages, cards, limited)),
        # A mount does not match its own address. Nothing is there, and the customer gets a page that says so.
        Route("/pay", pay),
        Route("/checkout", pay),
    ]
    return Router(routes, redirect_slashes=False)


def _page_context(ctx: AppContext, limiter: RateLimiter) -> PageContext:
    settings = ctx.settings
    base_path = urlsplit(settings.public_url).path.rstrip("/")
    return PageContext(
        ctx=ctx,
        public_url=settings.public_url,
        base_path=base_path,
        tokens=FormTokens(settings.secret_keys, ctx.clock),
        cookie=PaymentCookie(settings.secret_keys, ctx.clock, secure=urlsplit(settings.public_url).scheme == "https"),
        limits=PageLimits(settings, limiter),
        simulator_path=base_path + SIMULATED_PHONE if settings.development else None,
    )


def _application(pages: PageContext, routes: Sequence[Route], middleware: Sequence[Middleware] = ()) -> Application:
    return application(routes, middleware, partial(error_page, pages))


def _endpoint(pages: PageContext, *, get: Handler, post: Handler | None = None) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        handler = post if post is not None and request.method == "POST" else get
        return await handler(pages, pages.request(request))

    return endpoint


def _asset_endpoint(pages: PageContext) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return pages.request(request).asset()

    return endpoint
