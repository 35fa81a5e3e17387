"""The cash desk, for a cashier with a telephone: an amount, its QR code, and whether the customer has paid."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal

from starlette.responses import Response

from guichet.clock import Instant
from guichet.console.forms import form_token
from guichet.console.links.cash_day import own_sales_today
from guichet.console.links.client_charge import client_charge, unit_of
from guichet.console.links.link_pages import address_of, link_of, payment_view, sharing
from guichet.console.links.new_link import json_number
from guichet.console.own_sales import only_cashier
from guichet.console.page_request import FormFault, MerchantRequest
from guichet.domain.errors import InvalidRequest, MerchantInactive, NotFound
from guichet.domain.ids import PaymentId
from guichet.domain.merchants import Caller
from guichet.domain.money import DECIMALS
from guichet.domain.payment_links import PaymentLink
from guichet.domain.payments import Payment
from guichet.links import repository as link_repository
from guichet.links.links import CASH_DESK_PREFIX, ExternalIdTaken, cash_desk_link, close_link, create_link_by_hand
from guichet.links.repository import LinkList
from guichet.pages import formatting
from guichet.pages.qr_codes import qr_code
from guichet.payments import repository as payments
from guichet.refunds import repository as refunds

#: `returning`: the sale was cancelled, a customer paid it all the same, and is refunded without being asked.
SaleState = Literal["waiting", "pending", "paid", "refunded", "failed", "expired", "cancelled", "returning"]

#: Sales shown below the form.
LAST_SALES: Final = 10
#: Tries of one customer that are looked at.
_TRIES: Final = 10
#: Seconds between two looks at a sale: while a customer stands at the desk, and after its end for one who validates
#: late.
_REFRESH: Final = 3
_REFRESH_LATER: Final = 20


async def show(request: MerchantRequest, waiting: PaymentLink | None = None) -> Response:
    """`waiting`: the sale about which the cashier is asked before there is another."""
    currency = request.merchant.currency
    return request.page(
        "links/cash_desk.html",
        waiting=waiting,
        currency=currency,
        inputmode="decimal" if DECIMALS[currency] else "numeric",
        sales=await _last_sales(request),
        unit=unit_of(currency) or currency,
        today=await own_sales_today(request),
    )


async def create(request: MerchantRequest) -> Response:
    """Makes the link of one sale, once, and shows it."""
    form = await request.fields()
    ctx, caller = request.ctx, Caller(request.merchant, request.env)
    request.require("cash_desk.use")
    token = form_token(form)
    if token is None:
        raise FormFault(request.text("desk.again"))
    try:
        order = cash_desk_link(ctx.clock, ctx.settings, caller, _body(request, form, token), request.person.id)
        if waiting := await _asks_first(request, form, order):
            request.fault = FormFault("", 409)
            return await show(request, waiting)
        created = await create_link_by_hand(ctx.db, caller, order, request.actor)
    except InvalidRequest as error:
        raise FormFault("", at_fields=error.details or {"amount": [error.message]}) from None
    except ExternalIdTaken:  # The form of a sale before, with another amount: the cashier went back.
        del form["form"]
        raise FormFault(request.text("desk.again"), 409) from None
    except MerchantInactive as error:
        raise FormFault(error.message, 403) from None
    return request.redirect(request.merchant_url(f"/cash-desk/{created.link.id}"))


async def _asks_first(request: MerchantRequest, form: Mapping[str, str], order: PaymentLink) -> PaymentLink | None:
    """A sale of this cashier that nobody paid yet, about which the form says nothing: cancelled by mistake it would be
    lost, kept by mistake the customer could pay it. One that the form says to cancel is cancelled."""
    own_links = LinkList(*request.scope, cash_desk=True, cashier=request.person.id)
    sales = await link_repository.walk(request.db, own_links, LAST_SALES)
    if any(sale.external_id == order.external_id for sale in sales):  # A second click.
        return None
    waiting = next((sale for sale in sales if _listed_state(sale, request.now()) == "waiting"), None)
    if waiting is None or form.get("sale") != str(waiting.id) or form.get("waiting") not in ("cancel", "keep"):
        return waiting
    if form["waiting"] == "cancel":
        await close_link(request.ctx.db, request.ctx.clock, waiting, request.actor)
    return None


def _body(request: MerchantRequest, form: Mapping[str, str], token: str) -> bytes:
    label = form.get("description", "").strip() or request.text("desk.default_label").unescape()
    external_id = CASH_DESK_PREFIX + token
    members = f'"description":{json.dumps(label)},"external_id":{json.dumps(external_id)}'
    return f'{{"amount":{json_number(form, "amount")},{members}}}'.encode(errors="replace")


async def show_sale(request: MerchantRequest) -> Response:
    """The amount and the QR code, then what became of it. Reads the database only: the customer's page and the worker
    ask the operator."""
    ctx = request.ctx
    link = await _sale(request)
    now = ctx.clock.now()
    tries = await payments.of_link(ctx.db, link.id, _TRIES)
    state, payment = await _sale_state(request, link, tries)
    modes = await ctx.catalogues.of(request.merchant.id)
    address = address_of(request, link)
    is_over = link.expires_at is not None and link.expires_at <= now
    # A request that is on a telephone already can be accepted after the sale was cancelled.
    may_be_paid = any(payment.status == "pending" for payment in tries)
    ended = state in ("paid", "refunded", "expired", "cancelled") and not may_be_paid
    return request.page(
        "links/sale.html",
        link=link,
        state=state,
        used=None if payment is None else payment_view(request, payment, modes),
        amount_text=request.amount(link.amount, link.currency),
        expires=None if link.expires_at is None else formatting.time_of_day(link.expires_at, request.time_zone),
        can_be_paid=state in ("waiting", "failed") and not is_over,
        can_be_cancelled=state in ("waiting", "failed", "pending"),
        refresh=None if ended else _REFRESH_LATER if is_over else _REFRESH,
        debited=None if payment is None else request.charged(payment),
        charge=client_charge(request, link, modes, None if state == "failed" else payment),
        share=sharing(request, request.merchant.name, link, address),
        address=address,
        qr=qr_code(address, request.text("links.qr_alt").unescape()),
    )


async def cancel(request: MerchantRequest) -> Response:
    """Cancels the sale, so that nobody pays an amount that was mistyped, and goes back to the form; to the sale, if it
    was paid or may still be."""
    await request.fields()
    ctx = request.ctx
    request.require("cash_desk.use")
    link = await close_link(ctx.db, ctx.clock, await _sale(request), request.actor)
    tries = await payments.of_link(ctx.db, link.id, _TRIES)
    is_done = link.cancelled_at is not None and not any(payment.status == "pending" for payment in tries)
    return (
        request.done(request.merchant_url("/cash-desk"), "sale_cancelled")
        if is_done
        else request.redirect(request.merchant_url(f"/cash-desk/{link.id}"))
    )


async def _sale(request: MerchantRequest) -> PaymentLink:
    """The sale that the path names. Raises NotFound for any other link: closing those is another right."""
    link = await link_of(request)
    if not link.cash_desk:
        raise NotFound
    return link


async def _sale_state(
    request: MerchantRequest, link: PaymentLink, tries: Sequence[Payment]
) -> tuple[SaleState, Payment | None]:
    paid_ids = [payment.id for payment in tries if payment.status == "succeeded"]
    # Most sales have one payment that succeeded at most: of those that were not cancelled, that is the one.
    asks = link.cancelled_at is not None or len(paid_ids) > 1
    returned = await refunds.automatic_of(request.db, request.merchant.id, [row.id for row in tries]) if asks else ()
    return sale_state(link, tries, returned, request.now())


def sale_state(
    link: PaymentLink, tries: Sequence[Payment], returned: Collection[PaymentId], now: Instant
) -> tuple[SaleState, Payment | None]:
    """What a cashier must know, and the payment that says it. `tries`: the link's payments, the newest first;
    `returned`: those that are refunded without being asked, for which nothing is handed over."""
    by_status = {payment.status: payment for payment in reversed(tries) if payment.id not in returned}
    if link.cancelled_at is not None and not {"succeeded", "refunded"} & by_status.keys():
        going_back = next((payment for payment in tries if payment.id in returned), None)
        if going_back is None:
            return "cancelled", None
        return ("refunded" if going_back.status == "refunded" else "returning"), going_back
    for status, state in _DECIDES:
        if status in by_status:
            return state, by_status[status]
    if link.expires_at is not None and link.expires_at <= now:
        return "expired", None
    return ("failed", tries[0]) if tries else ("waiting", None)


#: The first status that one of the payments has decides. A customer may validate after a try that failed.
_DECIDES: Final[tuple[tuple[str, SaleState], ...]] = (
    ("succeeded", "paid"),
    ("refunded", "refunded"),
    ("pending", "pending"),
)


async def _last_sales(request: MerchantRequest) -> list[tuple[PaymentLink, SaleState]]:
    link_list = LinkList(*request.scope, cash_desk=True, cashier=only_cashier(request))
    sales = await link_repository.walk(request.db, link_list, LAST_SALES)
    return [(link, _listed_state(link, request.now())) for link in sales]


def _listed_state(link: PaymentLink, now: Instant) -> SaleState:
    """Without its payments."""
    if link.cancelled_at is not None:
        return "cancelled"
    return "paid" if link.uses_count else "waiting" if link.is_open(now) else "expired"
