"""The log of deliveries, with the filters of the API, and sending all again that failed since a moment."""

from collections.abc import Sequence
from typing import Final, TypeVar

from starlette.responses import Response

from guichet.console.failed_deliveries import PERIODS, offered_period, resend_failed
from guichet.console.page_request import MerchantRequest
from guichet.db.lists.pages import RowKey, key_of
from guichet.db.references import parse_reference
from guichet.domain.audit_log import ActRefused
from guichet.domain.errors import NotFound
from guichet.domain.events import DELIVERY_STATUSES, EVENT_NAMES, Delivery
from guichet.domain.ids import PaymentId
from guichet.payments import repository as payments
from guichet.webhooks import deliveries
from guichet.webhooks.deliveries import DeliveryFilter
from guichet.webhooks.resend import resend

#: Deliveries of one page.
_PAGE: Final = 25

Word = TypeVar("Word", bound=str)


async def show(request: MerchantRequest) -> Response:
    query = request.query
    status, event = _choice(query.get("status"), DELIVERY_STATUSES), _choice(query.get("event"), EVENT_NAMES)
    wanted_payment = query.get("payment_reference", "").strip()
    filters = {"status": status, "event": event, "payment_reference": wanted_payment}
    payment_id = await _payment(request, wanted_payment) if wanted_payment else None
    rows: list[Delivery] = []
    total, newer, older = 0, False, False
    if payment_id is not None or not wanted_payment:
        wanted = DeliveryFilter(status, event, payment_id)
        rows, total, newer, older = await _rows(request, wanted)
    return request.show(
        "webhooks/deliveries.html",
        rows=rows,
        total=total,
        filters=filters,
        statuses=DELIVERY_STATUSES,
        events=EVENT_NAMES,
        newer=_at(request, filters, before=rows[0].reference) if newer and rows else None,
        older=_at(request, filters, after=rows[-1].reference) if older and rows else None,
        periods=tuple(PERIODS),
        since=offered_period(rows, request.now()),
        resent=_count(query.get("resent")),
        skipped=_count(query.get("skipped")),
        more="more" in query,
        may_resend=request.may("webhooks.resend"),
        may_choose=request.may("webhooks.resend") and any(row.status != "pending" for row in rows),
    )


def _at(request: MerchantRequest, filters: dict[str, str | None], **position: str) -> str:
    """The address of another page of the same list."""
    return request.here("/webhooks/deliveries", None, **filters, **position)


async def change(request: MerchantRequest) -> Response:
    """Sends again the deliveries whose box was ticked, or what failed in the last hour, day or week."""
    form = await request.form()
    ctx = request.ctx
    request.require("webhooks.resend")
    if form.get("act") == "chosen":
        return await _resend_chosen(request, form)
    whose = (request.merchant.id, (request.env,))
    resent, left = await resend_failed(ctx, *whose, form.get("since", ""), request.actor)
    more = "yes" if left else None
    return request.redirect(request.here("/webhooks/deliveries", resent=str(resent), more=more))


async def _resend_chosen(request: MerchantRequest, form: dict[str, str]) -> Response:
    """Boxes are named by their delivery. Those that cannot be sent again are counted. Raises NotFound for one of
    somebody else, before any is sent."""
    ctx = request.ctx
    ticked = [name for name, value in form.items() if value == "resend"][:_PAGE]
    chosen = [await delivery_of(request, name) for name in ticked]
    skipped = 0
    for delivery in chosen:
        try:
            await resend(ctx.db, ctx.clock, delivery, request.actor)
        except ActRefused:
            skipped += 1
    ctx.wakeups.deliveries.set()
    left = str(skipped) if skipped else None
    return request.redirect(request.here("/webhooks/deliveries", resent=str(len(chosen) - skipped), skipped=left))


def _count(text: str | None) -> int | None:
    """A number of this page's own address."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else None


async def _payment(request: MerchantRequest, text: str) -> PaymentId | None:
    reference = parse_reference(text)
    if reference is None:
        return None
    found = await payments.by_reference(request.db, request.merchant.id, request.env, reference)
    return found.id if found else None


async def _rows(request: MerchantRequest, wanted: DeliveryFilter) -> tuple[list[Delivery], int, bool, bool]:
    """The rows of the page that the query names, newest first; how many there are in all; whether newer and older ones
    follow. One row more than a page is read to know that."""
    query = request.query
    before, after = await _key(request, query.get("before")), await _key(request, query.get("after"))
    whose = (request.db, request.merchant.id, request.env)
    if before is not None:
        rows, total = await deliveries.page(*whose, _PAGE + 1, 0, wanted, after=before, oldest_first=True)
        return rows[:_PAGE][::-1], total, len(rows) > _PAGE, True
    rows, total = await deliveries.page(*whose, _PAGE + 1, 0, wanted, after=after)
    return rows[:_PAGE], total, after is not None, len(rows) > _PAGE


async def _key(request: MerchantRequest, text: str | None) -> RowKey | None:
    """Where the delivery stands that a link names. Raises NotFound for one that is not this merchant's."""
    if text is None:
        return None
    return key_of(await delivery_of(request, text))


async def delivery_of(request: MerchantRequest, text: str) -> Delivery:
    """The delivery with this reference, of this merchant and environment. Raises NotFound."""
    reference = parse_reference(text)
    if reference is None:
        raise NotFound
    found = await deliveries.by_reference(request.db, request.merchant.id, request.env, reference)
    if found is None:
        raise NotFound
    return found


def _choice(text: str | None, values: Sequence[Word]) -> Word | None:
    return next((value for value in values if value == text), None)
