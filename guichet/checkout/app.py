"""The addresses of the hosted pages, and what happens when one of them cannot be shown.

GET POST /pay/<a>/<b>                 a payment link
GET      /pay/<a>/<b>/qr              its QR code, for printing
GET      /pay/<a>/<b>/<token>         a payment made through it: waiting, receipt, failure
GET      /pay/<a>/<b>/<token>/status  the same for the script
GET      /pay/assets/<name>           the script
GET POST /checkout/<token>            card payment in the test environment
"""

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from guichet.checkout import checkout, links, payments, states
from guichet.checkout.otp_codes import CodeLimiter
from guichet.checkout.page_context import Asker, Desk
from guichet.checkout.page_rate_limit import PageLimiter
from guichet.checkout.page_request import Visit
from guichet.checkout.tokens import FormTokens
from guichet.context import AppContext
from guichet.domain.errors import InvalidRequest, NotFound
from guichet.logs import log

Handler = Callable[[Desk, Visit], Awaitable[Response]]

_A_YEAR: Final = "public, max-age=31536000, immutable"
SIMULATED_PHONE: Final = "/simulator/phone"


def routes(ctx: AppContext) -> list[BaseRoute]:
    """What is mounted at the root of the server, under `edge.context.RequestContext`."""
    settings = ctx.settings
    base = urlsplit(settings.public_url).path.rstrip("/")
    desk = Desk(
        ctx=ctx,
        public_url=settings.public_url,
        base=base,
        tokens=FormTokens(settings.secret_keys, ctx.clock),
        limiter=PageLimiter(settings.page_rate_limit, settings.trusted_proxies),
        codes=CodeLimiter(ctx.shared_counters),
        asker=Asker(ctx),
        simulator=base + SIMULATED_PHONE if settings.development else None,
    )
    on_link = _page(desk, get=links.show, post=links.pay)
    on_checkout = _page(desk, get=checkout.show, post=checkout.choose)
    inside_pay = [
        Route("/assets/{name}", _asset(desk), methods=["GET"]),
        Route("/{a}/{b}", on_link, methods=["GET", "POST"]),
        Route("/{a}/{b}/qr", _page(desk, get=links.poster), methods=["GET"]),
        Route("/{a}/{b}/{token}", _page(desk, get=payments.show), methods=["GET"]),
        Route("/{a}/{b}/{token}/status", _page(desk, get=payments.status), methods=["GET"]),
    ]
    inside_checkout = [Route("/{token}", on_checkout, methods=["GET", "POST"])]
    return [
        Route("/pay", _page(desk, get=_nothing)),
        Route("/checkout", _page(desk, get=_nothing)),
        Mount("/pay", _application(desk, inside_pay)),
        Mount("/checkout", _application(desk, inside_checkout)),
    ]


def _application(desk: Desk, inside: list[Route]) -> Starlette:
    async def not_here(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        visit = desk.visit(request)
        if error.status_code != 404:
            answer = states.message(visit, "method")
            answer.headers.update(error.headers or {})
            return answer
        address = desk.limiter.address(request)
        allowed = desk.limiter.allows(address)
        desk.limiter.missed(address)
        return states.message(visit, "unknown" if allowed else "too_many")

    return Starlette(routes=inside, exception_handlers={404: not_here, 405: not_here})


def _page(desk: Desk, *, get: Handler, post: Handler | None = None) -> Callable[[Request], Awaitable[Response]]:
    async def run(request: Request) -> Response:
        visit, address = desk.visit(request), desk.limiter.address(request)
        if not desk.limiter.allows(address):
            return states.message(visit, "too_many")
        handler = post if post is not None and request.method == "POST" else get
        try:
            return await handler(desk, visit)
        except NotFound:
            desk.limiter.missed(address)
            return states.message(visit, "unknown")
        except InvalidRequest:
            return states.message(visit, "unreadable")
        except Exception:
            log.exception("page.failed", route=handler.__module__)
            return states.message(visit, "server_error")

    return run


async def _nothing(desk: Desk, visit: Visit) -> Response:
    raise NotFound


def _asset(desk: Desk) -> Callable[[Request], Awaitable[Response]]:
    async def asset(request: Request) -> Response:
        found = desk.renderer.assets.get(request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        kept = {"Cache-Control": _A_YEAR, "Vary": "Accept-Encoding"}
        return desk.visit(request).answer(found.content, found.media_type, headers=kept)

    return asset
