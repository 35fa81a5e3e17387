"""GET and PUT /webhooks/endpoint, POST /webhooks/test, GET /webhooks/deliveries (docs/contract.md, "Endpoints")."""

from starlette.responses import Response

from guichet.api.http import Call, requested_page, success_response
from guichet.schemas.webhook_delivery import webhook_delivery_object
from guichet.schemas.webhook_endpoint import (
    EndpointBody,
    webhook_endpoint_object,
    webhook_test_object,
    written_webhook_endpoint_object,
)
from guichet.webhooks import deliveries, endpoints


async def read_endpoint(call: Call) -> Response:
    found = await endpoints.read(call.ctx.db, call.ctx.vault, call.merchant_id, call.env)
    return success_response(webhook_endpoint_object(found.url, found.secret, livemode=call.caller.livemode))


async def configure_endpoint(call: Call) -> Response:
    body = await call.parse_body(EndpointBody)
    configured = await endpoints.configure(
        call.ctx.db,
        call.ctx.vault,
        call.merchant_id,
        call.env,
        body.url,
        call.ctx.clock.now(),
        rotate=body.rotate_secret,
    )
    return success_response(
        written_webhook_endpoint_object(configured.url, configured.secret, livemode=call.caller.livemode)
    )


async def send_test(call: Call) -> Response:
    """Queues a test notification; `sent` in the response means queued (D37)."""
    delivery = await endpoints.queue_test(call.ctx.db, call.merchant_id, call.env, call.ctx.clock.now())
    if delivery is not None:
        call.ctx.wakeups.deliveries.set()
    return success_response(webhook_test_object(delivery))


async def list_deliveries(call: Call) -> Response:
    page = requested_page(call.request)
    rows, total = await deliveries.page(call.ctx.db, call.merchant_id, call.env, page.size, page.offset)
    return success_response([webhook_delivery_object(row) for row in rows], meta=page.meta(total))
