"""Webhooks across merchants: endpoints that fail, the latest deliveries, sending one again, or all that failed of a
merchant."""

from typing import Any, ClassVar, Final

from starlette.responses import Response

from guichet.clock import Instant
from guichet.console.admin.reads import MOST_TYPED, record_read
from guichet.console.page_request import FormFault, StaffRequest
from guichet.console.webhook_deliveries import RESEND_PERIODS, ResendPeriod, offered_period, resend_failed, resent_act
from guichet.db.references import parse_reference
from guichet.domain.events import DELIVERY_STATUSES, Delivery, DeliveryStatus
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import ENVS
from guichet.merchants import repository as merchants
from guichet.pages.fields import Fields, Lenient, RowId, or_not_found, row_id
from guichet.pages.views import View
from guichet.server.health_checks import failing_endpoints
from guichet.webhooks.resend import find, listed, resend

#: Deliveries on a page; `guichet delivery list` shows more.
_PAGE_SIZE: Final = 100


class DeliveriesQuery(Fields):
    """`merchant`: the id of one, as it was typed; empty for all."""

    status: Lenient[DeliveryStatus] = None
    merchant: str = ""


class ResendForm(Fields):
    merchant: Lenient[RowId] = None
    since: str = ""


class DeliveriesView(View, frozen=True):
    """`failing`: endpoints; `names`: of merchants; `since`: the period for sending again that is offered first."""

    query: DeliveriesQuery
    failing: Any
    deliveries: list[Delivery]
    merchant: str
    may_resend: bool
    since: ResendPeriod
    names: dict[MerchantId, str]
    statuses: ClassVar = DELIVERY_STATUSES
    periods: ClassVar = RESEND_PERIODS


async def show_list(request: StaffRequest) -> Response:
    """The latest of all merchants or of one, newest first. Reads at most the latest 10 000, or the merchant's newest
    500. Of addresses it shows the servers alone, which name no customer."""
    query, now = DeliveriesQuery.read(request.query), request.now()
    merchant_text = query.merchant.strip()
    merchant = row_id(merchant_text)
    if merchant_text and merchant is None:
        # Those of all merchants below a filter that says another thing would be read as one merchant's.
        request.fault = FormFault(request.text("operations.merchant_wrong"))
    merchant_id = None if merchant is None else MerchantId(merchant)
    deliveries = [] if request.fault else await listed(request.db, merchant_id, Instant(0), query.status)
    failing = await failing_endpoints(request.db, now)
    view = DeliveriesView(
        query=query,
        failing=failing,
        deliveries=deliveries[:_PAGE_SIZE],
        merchant=merchant_text[:MOST_TYPED],
        may_resend=request.may("deliveries.resend") and merchant is not None,
        since=offered_period(deliveries, now),
        names=await merchants.names(
            request.db, {row.merchant_id for row in failing} | {row.merchant_id for row in deliveries[:_PAGE_SIZE]}
        ),
    )
    return request.page("admin/operations/deliveries.html", view)


async def resend_list(request: StaffRequest) -> Response:
    """Sends all again that failed of one merchant in the period, live and test, as the command does."""
    form = await request.form(ResendForm)
    request.require("deliveries.resend")
    merchant = None if form.merchant is None else await merchants.get(request.db, MerchantId(form.merchant))
    if merchant is None:
        raise FormFault(request.text("operations.merchant_wrong"))
    resent, left = await resend_failed(request, merchant.id, ENVS, form.since)
    address = request.admin_url("/deliveries", merchant=str(merchant.id))
    return request.done(address, resent_act(left), count=str(resent))


async def show(request: StaffRequest) -> Response:
    """The read is in the audit log: an address of one payment's webhook may name its customer."""
    delivery = await _delivery(request)
    await record_read(request, "delivery.viewed", "delivery", delivery.reference, delivery.merchant_id)
    names = await merchants.names(request.db, {delivery.merchant_id})
    merchant = names[delivery.merchant_id]
    return request.page("admin/operations/delivery.html", delivery=delivery, merchant=merchant)


async def send_again(request: StaffRequest) -> Response:
    await request.fields()
    request.require("deliveries.resend")
    delivery = await _delivery(request)
    await resend(request.db, request.ctx.clock, delivery, request.actor)
    request.ctx.wakeups.deliveries.set()
    return request.done(request.admin_url(f"/deliveries/{delivery.reference}"), "resent")


async def _delivery(request: StaffRequest) -> Delivery:
    reference = parse_reference(request.path["reference"])
    return or_not_found(await find(request.db, reference) if reference else None)
