"""GET and PUT /webhooks/endpoint, POST /webhooks/test, GET /webhooks/deliveries (docs/contract.md, "Endpoints")."""

from starlette.responses import Response

from guichet.accounts import key_acts
from guichet.api.http import Call, requested_choice, requested_page, success_response, unknown_row
from guichet.api.payments import payment_of_reference
from guichet.db.lists.pages import RowKey, key_of
from guichet.db.references import parse_reference
from guichet.domain.events import DELIVERY_STATUSES, EVENT_NAMES
from guichet.schemas.webhook_delivery import webhook_delivery_object
from guichet.schemas.webhook_endpoint import (
    EndpointBody,
    webhook_endpoint_object,
    webhook_test_object,
    written_webhook_endpoint_object,
)
from guichet.webhooks import deliveries, endpoints
from guichet.webhooks.deliveries import DeliveryFilter


async def read_endpoint(call: Call) -> Response:
    found = await key_acts.read_endpoint(call.ctx, call.caller)
    return success_response(webhook_endpoint_object(found.url, found.secret, livemode=call.caller.livemode))


async def configure_endpoint(call: Call) -> Response:
    body = await call.parse_body(EndpointBody)
    configured = await key_acts.configure_endpoint(call.ctx, call.caller, body.url, rotate=body.rotate_secret)
    return success_response(
        written_webhook_endpoint_object(configured.url, configured.secret, livemode=call.caller.livemode),
        warnings=await endpoints.warnings_about(call.ctx.http_client, body.url),
    )


async def send_test(call: Call) -> Response:
    """Queues a test notification; `sent` in the response means queued (D37)."""
    delivery = await endpoints.queue_test(call.ctx.db, call.merchant_id, call.env, call.ctx.clock.now())
    if delivery is not None:
        call.ctx.wakeups.deliveries.set()
    return success_response(webhook_test_object(delivery))


async def list_deliveries(call: Call) -> Response:
    faults: dict[str, list[str]] = {}
    status = requested_choice(call.query, "status", DELIVERY_STATUSES, faults)
    event = requested_choice(call.query, "event", EVENT_NAMES, faults)
    page = requested_page(call.query, faults)
    after = await _delivery_before(call, page.after)
    payment_id = None
    if (reference := call.query.get("payment_reference")) is not None:
        payment = await payment_of_reference(call, reference)
        if payment is None:
            return success_response([], meta=page.meta(0))
        payment_id = payment.id
    wanted = DeliveryFilter(status, event, payment_id)
    whose = (call.ctx.db, call.merchant_id, call.env)
    rows, total = await deliveries.page(
        *whose, page.size, page.offset, wanted, after=after, oldest_first=page.oldest_first
    )
    references = await deliveries.payment_references(call.ctx.db, rows)
    shown = [webhook_delivery_object(row, references.get(row.payment_id) if row.payment_id else None) for row in rows]
    return success_response(shown, meta=page.meta(total))


async def _delivery_before(call: Call, after: str | None) -> RowKey | None:
    """Where the delivery that `after` names stands. Raises InvalidRequest when there is none."""
    if after is None:
        return None
    reference = parse_reference(after)
    found = reference and await deliveries.by_reference(call.ctx.db, call.merchant_id, call.env, reference)
    if not found:
        raise unknown_row()
    return key_of(found)
