"""Webhooks across merchants: endpoints that fail, the latest deliveries, sending one again, or all that failed of a
merchant."""

from typing import Final

from starlette.responses import Response

from guichet.clock import Instant
from guichet.console.admin.fields import MOST_TYPED, row_number
from guichet.console.admin.reads import record_read
from guichet.console.failed_deliveries import PERIODS, offered_period, resend_failed
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.db.references import parse_reference
from guichet.domain.audit_log import ActRefused
from guichet.domain.errors import NotFound
from guichet.domain.events import DELIVERY_STATUSES, Delivery
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import ENVS
from guichet.merchants import repository as merchants
from guichet.server.health_checks import failing_endpoints
from guichet.webhooks.resend import find, listed, resend

#: Deliveries on a page; `guichet delivery list` shows more.
_SHOWN: Final = 100


async def show_list(request: StaffRequest) -> Response:
    return await _list(request)


async def resend_list(request: StaffRequest) -> Response:
    """Sends all again that failed of one merchant in the period, live and test, as the command does."""
    form = await request.form()
    ctx = request.ctx
    request.require("deliveries.resend")
    number = row_number(form.get("merchant"))
    merchant = None if number is None else await merchants.get(ctx.db, MerchantId(number))
    if merchant is None:
        return await _list(request, wrong=True)
    resent, left = await resend_failed(ctx, merchant.id, ENVS, form.get("since", ""), request.actor)
    query = {"merchant": str(merchant.id), "resent": str(resent), "more": "yes" if left else None}
    return request.redirect(request.at_admin("/deliveries", **query))


async def _list(request: StaffRequest, *, wrong: bool = False) -> Response:
    """The latest of all merchants or of one, newest first. Reads at most the latest 10 000, or the merchant's newest
    500. Of addresses it shows the servers alone, which name no customer."""
    ctx, query = request.ctx, request.query
    now = ctx.clock.now()
    status = next((each for each in DELIVERY_STATUSES if each == query.get("status")), None)
    typed = query.get("merchant", "").strip()
    merchant = row_number(typed)
    # Those of all merchants below a filter that says another thing would be read as one merchant's.
    wrong = wrong or (bool(typed) and merchant is None)
    whose = None if merchant is None else MerchantId(merchant)
    found = [] if wrong else await listed(ctx.db, whose, Instant(0), status)
    view = {
        "failing": await failing_endpoints(ctx.db, now),
        "deliveries": found[:_SHOWN],
        "chosen": status or "",
        "merchant": typed[:MOST_TYPED],
        "fault": request.text("operations.merchant_wrong") if wrong else None,
        "statuses": DELIVERY_STATUSES,
        "may_resend": request.may("deliveries.resend") and merchant is not None,
        "periods": tuple(PERIODS),
        "since": offered_period(found, now),
        "resent": row_number(query.get("resent")) or 0 if "resent" in query else None,
        "more": "more" in query,
    }
    return request.show("admin/operations/deliveries.html", 422 if wrong else 200, **view)


async def show(request: StaffRequest) -> Response:
    return await _page(request, await _delivery(request))


async def send_again(request: StaffRequest) -> Response:
    await request.form()
    ctx = request.ctx
    request.require("deliveries.resend")
    delivery = await _delivery(request)
    try:
        await resend(ctx.db, ctx.clock, delivery, request.actor)
    except ActRefused as refusal:
        return await _page(request, delivery, 409, refusal)
    ctx.wakeups.deliveries.set()
    return request.redirect(request.at_admin(f"/deliveries/{delivery.reference}"))


async def _delivery(request: StaffRequest) -> Delivery:
    reference = parse_reference(request.path["reference"])
    found = await find(request.db, reference) if reference else None
    if found is None:
        raise NotFound
    return found


async def _page(
    request: StaffRequest, delivery: Delivery, status: int = 200, refusal: ActRefused | None = None
) -> Response:
    """The read is in the audit log: an address of one payment's webhook may name its customer."""
    await record_read(request, "delivery.viewed", "delivery", delivery.reference, delivery.merchant_id)
    may_resend = request.may("deliveries.resend") and delivery.status != "pending"
    return request.show("admin/operations/delivery.html", status, each=delivery, refusal=refusal, may_resend=may_resend)


PAGES: Final = (
    StaffPage("/deliveries", "deliveries.view", show_list, resend_list, menu="deliveries"),
    StaffPage("/deliveries/{reference}", "deliveries.view", show, send_again),
)
