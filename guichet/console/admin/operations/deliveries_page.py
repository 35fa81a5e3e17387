"""Webhooks across merchants: endpoints that fail, the latest deliveries, sending one again, or all that failed of a
merchant."""

from typing import Final

from starlette.responses import Response

from guichet.accounts.rights import StaffMember
from guichet.clock import Instant
from guichet.console.admin.fields import MOST_TYPED, row_number
from guichet.console.admin.reads import record_read
from guichet.console.failed_deliveries import PERIODS, offered_period, resend_failed
from guichet.console.sections import StaffPage
from guichet.console.visit import Visit
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


async def show_list(visit: Visit, acting: StaffMember) -> Response:
    return await _list(visit, acting)


async def resend_list(visit: Visit, acting: StaffMember) -> Response:
    """Sends all again that failed of one merchant in the period, live and test, as the command does."""
    form = await visit.form()
    ctx = visit.console.ctx
    acting.require("deliveries.resend", ctx.clock.now())
    number = row_number(form.get("merchant"))
    merchant = None if number is None else await merchants.get(ctx.db, MerchantId(number))
    if merchant is None:
        return await _list(visit, acting, wrong=True)
    resent, left = await resend_failed(ctx, merchant.id, ENVS, form.get("since", ""), acting.actor)
    query = {"merchant": str(merchant.id), "resent": str(resent), "more": "yes" if left else None}
    return visit.redirect(visit.at_admin("/deliveries", **query))


async def _list(visit: Visit, acting: StaffMember, *, wrong: bool = False) -> Response:
    """The latest of all merchants or of one, newest first. Reads at most the latest 10 000, or the merchant's newest
    500. Of addresses it shows the servers alone, which name no customer."""
    ctx, query = visit.console.ctx, visit.request.query_params
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
        "fault": visit.text("operations.merchant_wrong") if wrong else None,
        "statuses": DELIVERY_STATUSES,
        "may_resend": acting.may("deliveries.resend") and merchant is not None,
        "periods": tuple(PERIODS),
        "since": offered_period(found, now),
        "resent": row_number(query.get("resent")) or 0 if "resent" in query else None,
        "more": "more" in query,
    }
    return visit.show("admin/operations/deliveries.html", 422 if wrong else 200, **view)


async def show(visit: Visit, acting: StaffMember) -> Response:
    return await _page(visit, acting, await _delivery(visit))


async def send_again(visit: Visit, acting: StaffMember) -> Response:
    await visit.form()
    ctx = visit.console.ctx
    acting.require("deliveries.resend", ctx.clock.now())
    delivery = await _delivery(visit)
    try:
        await resend(ctx.db, ctx.clock, delivery, acting.actor)
    except ActRefused as refusal:
        return await _page(visit, acting, delivery, 409, refusal)
    ctx.wakeups.deliveries.set()
    return visit.redirect(visit.at_admin(f"/deliveries/{delivery.reference}"))


async def _delivery(visit: Visit) -> Delivery:
    reference = parse_reference(visit.request.path_params["reference"])
    found = await find(visit.console.ctx.db, reference) if reference else None
    if found is None:
        raise NotFound
    return found


async def _page(
    visit: Visit, acting: StaffMember, delivery: Delivery, status: int = 200, refusal: ActRefused | None = None
) -> Response:
    """The read is in the audit log: an address of one payment's webhook may name its customer."""
    await record_read(visit, acting, "delivery.viewed", "delivery", delivery.reference, delivery.merchant_id)
    may_resend = acting.may("deliveries.resend") and delivery.status != "pending"
    return visit.show("admin/operations/delivery.html", status, each=delivery, refusal=refusal, may_resend=may_resend)


PAGES: Final = (
    StaffPage("/deliveries", "deliveries.view", show_list, resend_list, menu="deliveries"),
    StaffPage("/deliveries/{reference}", "deliveries.view", show, send_again),
)
