"""One link: its address and QR code, who paid through it, its end; and the poster with its QR code."""

import re
from typing import Final

from markupsafe import Markup
from starlette.responses import Response

from guichet.accounts.rights import Member
from guichet.console.links.sharing import sharing
from guichet.console.links.views import address_of, link_of, link_state, payment_view
from guichet.console.visit import Visit
from guichet.domain.ids import PaymentId
from guichet.links.links import close_link
from guichet.pages import i18n
from guichet.pages.qr_codes import qr_code
from guichet.payments import repository as payments

USES_SHOWN: Final = 25
_KEY: Final = re.compile(r"[0-9]{1,18}")


async def show(visit: Visit, acting: Member) -> Response:
    ctx = visit.console.ctx
    link = await link_of(visit, acting)
    address = address_of(visit, link)
    asked = visit.request.query_params.get("after", "")
    before = PaymentId(int(asked)) if _KEY.fullmatch(asked) else None
    found = await payments.of_link(ctx.db, link.id, USES_SHOWN + 1, before)
    uses = found[:USES_SHOWN]
    modes = await ctx.catalogues.of(acting.merchant.id)
    state = link_state(link, ctx.clock.now())
    older = str(uses[-1].id) if len(found) > USES_SHOWN else None
    return visit.show(
        "links/link.html",
        link=link,
        state=state,
        amount_text=visit.amount(link.amount, link.currency),
        starts=None if link.starts_at is None else visit.date_time(link.starts_at),
        expires=None if link.expires_at is None else visit.date_time(link.expires_at),
        created=visit.date_time(link.created_at),
        address=address,
        qr=qr_code(address, visit.text("links.qr_alt").unescape()),
        share=sharing(visit, acting.merchant.name, link, address),
        uses=[payment_view(visit, each, modes) for each in uses],
        older=older and visit.here(f"/links/{link.id}", after=older),
        first=visit.here(f"/links/{link.id}") if before is not None else None,
        may_close=acting.may("links.change") and state in ("active", "not_open"),
    )


async def change(visit: Visit, acting: Member) -> Response:
    """Closes the link: nobody can begin to pay through it any more."""
    await visit.form()
    ctx = visit.console.ctx
    acting.require("links.change", ctx.clock.now())
    link = await link_of(visit, acting)
    await close_link(ctx.db, ctx.clock, link, acting.actor)
    return visit.redirect(visit.here(f"/links/{link.id}"))


async def show_poster(visit: Visit, acting: Member) -> Response:
    """A page to print, in the reader's language and below it in the other: a shop's customers read one of them."""
    link = await link_of(visit, acting)
    address = address_of(visit, link)
    modes = await visit.console.ctx.catalogues.of(acting.merchant.id)
    other = next(each for each in i18n.LANGUAGES if each != visit.language)

    def translated(key: str) -> Markup:
        return visit.renderer.text(other, key)

    return visit.show(
        "links/poster.html",
        link=link,
        amount_text=visit.amount(link.amount, link.currency),
        address=address,
        qr=qr_code(address, visit.text("links.qr_alt").unescape()),
        modes=list(dict.fromkeys(mode.name for mode in modes.active())),
        other=other,
        translated=translated,
        state=link_state(link, visit.console.ctx.clock.now()),
    )
