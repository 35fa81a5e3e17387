"""The log of deliveries with the filters of the API, one delivery, and sending them again: chosen ones, or all that
failed since an hour, a day or a week, which the staff may do too."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Final, Literal, get_args

from msgspec import structs
from pydantic import ValidationError
from starlette.responses import Response

from guichet.clock import DAY, HOUR, SECOND, Instant, earlier
from guichet.console.page_request import ConsoleRequest, FormFault, MerchantRequest
from guichet.db.engine import require
from guichet.db.lists.pages import PageBounds, key_of
from guichet.db.references import parse_reference
from guichet.domain.audit_log import ActRefused
from guichet.domain.errors import InvalidRequest, NotFound
from guichet.domain.events import DELIVERY_STATUSES, EVENT_NAMES, MAX_ATTEMPTS, Delivery, DeliveryStatus, EventName
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.pages.fields import Lenient, choice, or_not_found
from guichet.pages.lists import ByTime, ListPage, Pager, row_key_text
from guichet.pages.views import View
from guichet.payments import repository as payments
from guichet.webhooks import delivery_log, events
from guichet.webhooks.deliveries import PastAttempt, past_attempts
from guichet.webhooks.delivery_log import DeliveryFilter
from guichet.webhooks.resend import BulkResend, resend
from guichet.webhooks.sender import SIGNATURE, headers_of

#: Deliveries of one page.
_PAGE: Final = 25
ResendPeriod = Literal["hour", "day", "week"]
#: How far back failed deliveries can be sent again at once; each has a text `webhooks.since.`.
RESEND_PERIODS: Final[tuple[ResendPeriod, ...]] = get_args(ResendPeriod)
_LENGTHS: Final[dict[ResendPeriod, int]] = {"hour": HOUR, "day": DAY, "week": 7 * DAY}
#: Microseconds after which sending again stops, to be gone on with by the next press of the button.
_RESEND_TIME: Final = 5 * SECOND


class DeliveriesQuery(ByTime):
    status: Lenient[DeliveryStatus] = None
    event: Lenient[EventName] = None
    payment_reference: str = ""


class DeliveriesView(View, frozen=True):
    """`since`: the period for sending again that is offered first; `may_choose`: single deliveries."""

    query: DeliveriesQuery
    rows: list[Delivery]
    total: int
    pager: Pager
    since: ResendPeriod
    may_choose: bool
    statuses: ClassVar = DELIVERY_STATUSES
    events: ClassVar = EVENT_NAMES
    periods: ClassVar = RESEND_PERIODS


async def show_list(request: MerchantRequest) -> Response:
    """Raises NotFound for an invalid place in the list."""
    try:
        query = DeliveriesQuery.read(request.query)
    except ValidationError:
        raise NotFound from None
    page, total = await _read(request, query)
    filters = query.model_dump(include={"status", "event", "payment_reference"})
    address = partial(request.merchant_url, "/webhooks/deliveries", None, **filters)
    view = DeliveriesView(
        query=query,
        rows=page.rows,
        total=total,
        pager=page.pager(lambda row: row_key_text(key_of(row)), address),
        since=offered_period(page.rows, request.now()),
        may_choose=request.may("webhooks.resend") and any(row.status != "pending" for row in page.rows),
    )
    return request.page("webhooks/deliveries.html", view)


async def _read(request: MerchantRequest, query: DeliveriesQuery) -> tuple[ListPage[Delivery], int]:
    """The page that the query names, and how many deliveries there are in all. Its reference may be that of a payment,
    or the id of a delivery."""
    payment = None
    filters = DeliveryFilter(query.status, query.event)
    if text := query.payment_reference.strip():
        reference = parse_reference(text)
        payment = await payments.by_reference(request.db, *request.scope, reference) if reference else None
        if payment is None:
            delivery = await delivery_log.by_reference(request.db, *request.scope, reference) if reference else None
            rows = [delivery] if delivery and filters.admits(delivery) else []
            return ListPage(rows, has_newer=False, has_older=False), len(rows)
        filters = structs.replace(filters, payment_id=payment.id)
    cursor = query.cursor
    bounds = PageBounds(_PAGE + 1, after=cursor.key, oldest_first=cursor.is_newer)
    rows, total = await delivery_log.page(request.db, *request.scope, bounds, filters)
    return ListPage.cut(rows[::-1] if cursor.is_newer else rows, _PAGE, cursor), total


async def resend_from_list(request: MerchantRequest) -> Response:
    """Sends again the deliveries whose box was ticked, or what failed in the last hour, day or week."""
    form = await request.fields()
    request.require("webhooks.resend")
    if form.get("act") == "chosen":
        return await _resend_chosen(request, form)
    resent, left = await resend_failed(request, request.merchant.id, (request.env,), form.get("since", ""))
    return request.done(request.merchant_url("/webhooks/deliveries"), resent_act(left), count=str(resent))


async def _resend_chosen(request: MerchantRequest, form: dict[str, str]) -> Response:
    """Boxes are named by their delivery. Those that cannot be sent again are counted. Raises NotFound for one of
    somebody else, before any is sent."""
    ticked = [name for name, value in form.items() if value == "resend"][:_PAGE]
    chosen = [await _delivery(request, name) for name in ticked]
    skipped = 0
    for delivery in chosen:
        try:
            await resend(request.db, request.ctx.clock, delivery, request.actor)
        except ActRefused:
            skipped += 1
    request.ctx.wakeups.deliveries.set()
    counts = {"count": str(len(chosen) - skipped), "skipped": str(skipped)}
    return request.done(
        request.merchant_url("/webhooks/deliveries"), "resent_some" if skipped else "resent_all", **counts
    )


def resent_act(left: bool) -> str:
    """What the next page says after sending again; `left`: some are."""
    return "resent_more" if left else "resent_all"


def offered_period(deliveries: Sequence[Delivery], now: Instant) -> ResendPeriod:
    """The period that is offered first: a day, for whoever comes in the morning, or a longer one if the failures of
    the page are older."""
    failed = min((delivery.created_at for delivery in deliveries if delivery.status == "failed"), default=now)
    return "day" if failed >= earlier(now, DAY) else "week"


async def resend_failed(
    request: ConsoleRequest, merchant_id: MerchantId, envs: Sequence[Environment], since: str
) -> tuple[int, bool]:
    """How many are due again, and whether some may be left. Raises InvalidRequest for a period that is not offered."""
    period = choice(since, RESEND_PERIODS)
    if period is None:
        raise InvalidRequest
    ctx, now, resent = request.ctx, request.now(), 0
    began = ctx.clock.monotonic()
    walks = [BulkResend(ctx, merchant_id, env, earlier(now, _LENGTHS[period]), now, request.actor) for env in envs]
    for walk in walks:
        while not walk.finished and ctx.clock.monotonic() - began < _RESEND_TIME:
            resent += await walk.step()
    ctx.wakeups.deliveries.set()
    return resent, not all(walk.finished for walk in walks)


class DeliveryView(View, frozen=True):
    """`payment`: the reference of the payment that it is about; `attempts`: the last one first."""

    delivery: Delivery
    body: str
    payment: str | None
    headers: dict[str, str]
    attempts: list[PastAttempt]
    signature: ClassVar = SIGNATURE
    most: ClassVar = MAX_ATTEMPTS


async def show(request: MerchantRequest) -> Response:
    """The request as it is sent, and each attempt with what the receiver answered."""
    delivery = await _delivery(request, request.path["reference"])
    references = await delivery_log.payment_references(request.db, [delivery])
    view = DeliveryView(
        delivery=delivery,
        body=require(await events.body_of(request.db, delivery.id)),
        payment=references.get(delivery.payment_id) if delivery.payment_id else None,
        headers=headers_of(delivery),
        attempts=past_attempts(delivery.history)[::-1],
    )
    return request.page("webhooks/delivery.html", view)


async def send_again(request: MerchantRequest) -> Response:
    """With the same id and the same bytes."""
    await request.fields()
    delivery = await _delivery(request, request.path["reference"])
    request.require("webhooks.resend")
    try:
        await resend(request.db, request.ctx.clock, delivery, request.actor)
    except ActRefused:
        raise FormFault(request.text("webhooks.not_resent"), 409) from None
    request.ctx.wakeups.deliveries.set()
    return request.done(request.merchant_url(f"/webhooks/deliveries/{delivery.reference}"), "resent")


async def _delivery(request: MerchantRequest, text: str) -> Delivery:
    """The delivery with this reference, of this merchant and environment. Raises NotFound."""
    reference = parse_reference(text)
    return or_not_found(await delivery_log.by_reference(request.db, *request.scope, reference) if reference else None)
