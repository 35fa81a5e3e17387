"""One link: its address and QR code, who paid through it, its end; and the poster with its QR code."""

import re
from typing import Final

from markupsafe import Markup
from starlette.responses import Response

from guichet.console.links.sharing import sharing
from guichet.console.links.views import address_of, link_of, link_state, payment_view
from guichet.console.page_request import MerchantRequest
from guichet.domain.ids import PaymentId
from guichet.links.links import close_link
from guichet.pages import i18n
from guichet.pages.qr_codes import qr_code
from guichet.payments import repository as payments

USES_SHOWN: Final = 25
_KEY: Final = re.compile(r"[0-9]{1,18}")


async def show(request: MerchantRequest) -> Response:
    ctx = request.ctx
    link = await link_of(request)
    address = address_of(request, link)
    asked = request.query.get("after", "")
    before = PaymentId(int(asked)) if _KEY.fullmatch(asked) else None
    found = await payments.of_link(ctx.db, link.id, USES_SHOWN + 1, before)
    uses = found[:USES_SHOWN]
    modes = await ctx.catalogues.of(request.merchant.id)
    state = link_state(link, ctx.clock.now())
    older = str(uses[-1].id) if len(found) > USES_SHOWN else None
    return request.show(
        "links/link.html",
        link=link,
        state=state,
        amount_text=request.amount(link.amount, link.currency),
        starts=None if link.starts_at is None else request.date_time(link.starts_at),
        expires=None if link.expires_at is None else request.date_time(link.expires_at),
        created=request.date_time(link.created_at),
        address=address,
        qr=qr_code(address, request.text("links.qr_alt").unescape()),
        share=sharing(request, request.merchant.name, link, address),
        uses=[payment_view(request, each, modes) for each in uses],
        older=older and request.here(f"/links/{link.id}", after=older),
        first=request.here(f"/links/{link.id}") if before is not None else None,
        may_close=request.may("links.change") and state in ("active", "not_open"),
    )


async def change(request: MerchantRequest) -> Response:
    """Closes the link: nobody can begin to pay through it any more."""
    await request.fields()
    ctx = request.ctx
    request.require("links.change")
    link = await link_of(request)
    await close_link(ctx.db, ctx.clock, link, request.actor)
    return request.redirect(request.here(f"/links/{link.id}"))


async def show_poster(request: MerchantRequest) -> Response:
    """A page to print, in the reader's language and below it in the other: a shop's customers read one of them."""
    link = await link_of(request)
    address = address_of(request, link)
    modes = await request.ctx.catalogues.of(request.merchant.id)
    other = next(each for each in i18n.LANGUAGES if each != request.language)

    def translated(key: str) -> Markup:
        return request.renderer.text(other, key)

    return request.show(
        "links/poster.html",
        link=link,
        amount_text=request.amount(link.amount, link.currency),
        address=address,
        qr=qr_code(address, request.text("links.qr_alt").unescape()),
        modes=list(dict.fromkeys(mode.name for mode in modes.active())),
        other=other,
        translated=translated,
        state=link_state(link, request.now()),
    )
