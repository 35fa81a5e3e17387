"""The log of deliveries, with the filters of the API, and sending all again that failed since a moment."""

from collections.abc import Sequence
from typing import Final, TypeVar

from starlette.responses import Response

from guichet.accounts.rights import Member
from guichet.console.failed_deliveries import PERIODS, offered_period, resend_failed
from guichet.console.visit import Visit
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


async def show(visit: Visit, acting: Member) -> Response:
    query = visit.request.query_params
    status, event = _choice(query.get("status"), DELIVERY_STATUSES), _choice(query.get("event"), EVENT_NAMES)
    wanted_payment = query.get("payment_reference", "").strip()
    filters = {"status": status, "event": event, "payment_reference": wanted_payment}
    payment_id = await _payment(visit, acting, wanted_payment) if wanted_payment else None
    rows: list[Delivery] = []
    total, newer, older = 0, False, False
    if payment_id is not None or not wanted_payment:
        wanted = DeliveryFilter(status, event, payment_id)
        rows, total, newer, older = await _rows(visit, acting, wanted)
    return visit.show(
        "webhooks/deliveries.html",
        rows=rows,
        total=total,
        filters=filters,
        statuses=DELIVERY_STATUSES,
        events=EVENT_NAMES,
        newer=_at(visit, filters, before=rows[0].reference) if newer and rows else None,
        older=_at(visit, filters, after=rows[-1].reference) if older and rows else None,
        periods=tuple(PERIODS),
        since=offered_period(rows, visit.console.ctx.clock.now()),
        resent=_count(query.get("resent")),
        skipped=_count(query.get("skipped")),
        more="more" in query,
        may_resend=acting.may("webhooks.resend"),
        may_choose=acting.may("webhooks.resend") and any(row.status != "pending" for row in rows),
    )


def _at(visit: Visit, filters: dict[str, str | None], **position: str) -> str:
    """The address of another page of the same list."""
    return visit.here("/webhooks/deliveries", None, **filters, **position)


async def change(visit: Visit, acting: Member) -> Response:
    """Sends again the deliveries whose box was ticked, or what failed in the last hour, day or week."""
    form = await visit.form()
    ctx = visit.console.ctx
    acting.require("webhooks.resend", ctx.clock.now())
    if form.get("act") == "chosen":
        return await _resend_chosen(visit, acting, form)
    whose = (acting.merchant.id, (acting.env,))
    resent, left = await resend_failed(ctx, *whose, form.get("since", ""), acting.actor)
    more = "yes" if left else None
    return visit.redirect(visit.here("/webhooks/deliveries", resent=str(resent), more=more))


async def _resend_chosen(visit: Visit, acting: Member, form: dict[str, str]) -> Response:
    """Boxes are named by their delivery. Those that cannot be sent again are counted. Raises NotFound for one of
    somebody else, before any is sent."""
    ctx = visit.console.ctx
    ticked = [name for name, value in form.items() if value == "resend"][:_PAGE]
    chosen = [await delivery_of(visit, acting, name) for name in ticked]
    skipped = 0
    for delivery in chosen:
        try:
            await resend(ctx.db, ctx.clock, delivery, acting.actor)
        except ActRefused:
            skipped += 1
    ctx.wakeups.deliveries.set()
    left = str(skipped) if skipped else None
    return visit.redirect(visit.here("/webhooks/deliveries", resent=str(len(chosen) - skipped), skipped=left))


def _count(text: str | None) -> int | None:
    """A number of this page's own address."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else None


async def _payment(visit: Visit, acting: Member, text: str) -> PaymentId | None:
    reference = parse_reference(text)
    if reference is None:
        return None
    found = await payments.by_reference(visit.console.ctx.db, acting.merchant.id, acting.env, reference)
    return found.id if found else None


async def _rows(visit: Visit, acting: Member, wanted: DeliveryFilter) -> tuple[list[Delivery], int, bool, bool]:
    """The rows of the page that the query names, newest first; how many there are in all; whether newer and older ones
    follow. One row more than a page is read to know that."""
    query = visit.request.query_params
    before, after = await _key(visit, acting, query.get("before")), await _key(visit, acting, query.get("after"))
    whose = (visit.console.ctx.db, acting.merchant.id, acting.env)
    if before is not None:
        rows, total = await deliveries.page(*whose, _PAGE + 1, 0, wanted, after=before, oldest_first=True)
        return rows[:_PAGE][::-1], total, len(rows) > _PAGE, True
    rows, total = await deliveries.page(*whose, _PAGE + 1, 0, wanted, after=after)
    return rows[:_PAGE], total, after is not None, len(rows) > _PAGE


async def _key(visit: Visit, acting: Member, text: str | None) -> RowKey | None:
    """Where the delivery stands that a link names. Raises NotFound for one that is not this merchant's."""
    if text is None:
        return None
    return key_of(await delivery_of(visit, acting, text))


async def delivery_of(visit: Visit, acting: Member, text: str) -> Delivery:
    """The delivery with this reference, of this merchant and environment. Raises NotFound."""
    reference = parse_reference(text)
    if reference is None:
        raise NotFound
    found = await deliveries.by_reference(visit.console.ctx.db, acting.merchant.id, acting.env, reference)
    if found is None:
        raise NotFound
    return found


def _choice(text: str | None, values: Sequence[Word]) -> Word | None:
    return next((value for value in values if value == text), None)
