"""GET and PUT /webhooks/endpoint, POST /webhooks/test, GET /webhooks/deliveries (docs/contract.md, "Endpoints")."""

from starlette.responses import Response

from guichet.api.http import Call, answer, page_of
from guichet.schemas import wire
from guichet.schemas.requests import EndpointBody
from guichet.webhooks import deliveries, endpoints


async def read_endpoint(call: Call) -> Response:
    found = await endpoints.read(call.ctx.db, call.ctx.vault, call.merchant_id, call.env)
    return answer(wire.render_endpoint(found.url, found.secret, livemode=call.caller.livemode))


async def configure_endpoint(call: Call) -> Response:
    body = await call.parsed(EndpointBody)
    configured = await endpoints.configure(
        call.ctx.db,
        call.ctx.vault,
        call.merchant_id,
        call.env,
        body.url,
        call.ctx.clock.now(),
        rotate=body.rotate_secret,
    )
    return answer(wire.render_configured(configured.url, configured.secret, livemode=call.caller.livemode))


async def send_test(call: Call) -> Response:
    """`sent` means queued (D37)."""
    delivery = await endpoints.queue_test(call.ctx.db, call.merchant_id, call.env, call.ctx.clock.now())
    if delivery is None:
        message = "Aucun point de terminaison n'est configuré : enregistrez une URL avec PUT /webhooks/endpoint."
        return answer({"sent": False, "delivery_id": None, "url": None, "message": message})
    call.ctx.wakeups.deliveries.set()
    return answer({"sent": True, "delivery_id": delivery.reference, "url": delivery.url})


async def list_deliveries(call: Call) -> Response:
    page = page_of(call.request)
    rows, total = await deliveries.page(call.ctx.db, call.merchant_id, call.env, page.size, page.offset)
    return answer([wire.render_delivery(row) for row in rows], meta=page.meta(total))
