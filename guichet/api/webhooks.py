"""GET and PUT /webhooks/endpoint, POST /webhooks/test, GET /webhooks/deliveries and POST …/resend (docs/contract.md,
"Endpoints")."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from starlette.responses import Response

from guichet.accounts import key_acts
from guichet.api.endpoint import CREATED_FROM, CREATED_TO, Endpoint, Parameter, paging
from guichet.api.http import Call, SuccessResponse, requested_choice, requested_page, requested_range
from guichet.domain.errors import Conflict, InvalidRequest, NotFound
from guichet.domain.events import DELIVERY_STATUSES, EVENT_NAMES, Delivery
from guichet.payments import repository as payments
from guichet.schemas.object_fields import DELIVERY_ID
from guichet.schemas.webhook_delivery import WebhookDeliveryObject, webhook_delivery_object
from guichet.schemas.webhook_endpoint import (
    EndpointBody,
    WebhookEndpointObject,
    WebhookTestObject,
    WrittenWebhookEndpointObject,
    webhook_endpoint_object,
    webhook_test_object,
    written_webhook_endpoint_object,
)
from guichet.webhooks import delivery_log, endpoints
from guichet.webhooks.delivery_log import DeliveryFilter


async def read_endpoint(call: Call) -> Response:
    endpoint = await key_acts.read_endpoint(call.ctx, call.caller)
    return SuccessResponse(webhook_endpoint_object(endpoint.url, endpoint.secret, livemode=call.caller.livemode))


async def configure_endpoint(call: Call) -> Response:
    body = await call.parse_body(EndpointBody)
    configured = await key_acts.configure_endpoint(
        call.ctx, call.caller, body.url, rotate=body.rotate_secret, overlap_hours=body.overlap_hours or 0
    )
    return SuccessResponse(
        written_webhook_endpoint_object(configured.url, configured.secret, livemode=call.caller.livemode),
        warnings=await endpoints.warnings_about(call.ctx.http_client, body.url),
    )


async def send_test(call: Call) -> Response:
    """Queues a test notification; `sent` in the response means queued (D37)."""
    delivery = await endpoints.queue_test(call.ctx.db, call.merchant_id, call.env, call.ctx.clock.now())
    if delivery is not None:
        call.ctx.wakeups.deliveries.set()
    return SuccessResponse(webhook_test_object(delivery))


async def list_deliveries(call: Call) -> Response:
    faults: dict[str, list[str]] = {}
    status = requested_choice(call.query, "status", DELIVERY_STATUSES, faults)
    event = requested_choice(call.query, "event", EVENT_NAMES, faults)
    since, until = requested_range(call.query, faults)
    page = requested_page(call.query, faults)
    bounds = await page.bounds(partial(call.find, delivery_log.by_reference))
    payment_id = None
    if (reference := call.query.get("payment_reference")) is not None:
        payment = await call.find(payments.by_reference, reference)
        if payment is None:
            return SuccessResponse([], meta=page.meta(0))
        payment_id = payment.id
    delivery_filter = DeliveryFilter(status, event, payment_id, since, until)
    rows, total = await delivery_log.page(call.ctx.db, *call.merchant_scope, bounds, delivery_filter)
    return SuccessResponse(await _delivery_objects(call, rows), meta=page.meta(total))


async def resend_delivery(call: Call) -> Response:
    """Five attempts more, with the same id and body, at the present address."""
    delivery = await call.find(delivery_log.by_reference, call.path_text("id"))
    if delivery is None:
        raise NotFound("Aucun envoi de votre compte ne porte cet identifiant.")
    await key_acts.resend_delivery(call.ctx, call.caller, delivery)
    call.ctx.wakeups.deliveries.set()
    renewed = await call.find(delivery_log.by_reference, delivery.reference)
    [delivery_object] = await _delivery_objects(call, [renewed or delivery])
    return SuccessResponse(delivery_object)


async def _delivery_objects(call: Call, rows: Sequence[Delivery]) -> list[WebhookDeliveryObject]:
    references = await delivery_log.payment_references(call.ctx.db, rows)
    return [webhook_delivery_object(row, references.get(row.payment_id) if row.payment_id else None) for row in rows]


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/webhooks/endpoint",
        read_endpoint,
        "Lire le point de terminaison",
        "Celui de l'environnement de la clé.",
        WebhookEndpointObject,
    ),
    Endpoint(
        "PUT",
        "/webhooks/endpoint",
        configure_endpoint,
        "Configurer le point de terminaison",
        "N'agit que sur l'environnement de la clé. Le secret est créé avec la première adresse. `warnings` dit si "
        "aucun webhook ne pourra atteindre l'adresse.",
        WrittenWebhookEndpointObject,
        body=EndpointBody,
        errors=(InvalidRequest,),
        requests={
            "Configurer": {"url": "https://boutique.example/webhooks/guichet"},
            "Changer de secret": {"url": "https://boutique.example/webhooks/guichet", "rotate_secret": True},
            "Désactiver": {"url": None},
        },
    ),
    Endpoint(
        "POST",
        "/webhooks/test",
        send_test,
        "Envoyer un événement de test",
        "Met en file un événement `webhook.test`, signé comme un vrai. Sans point de terminaison, la réponse est aussi "
        "`200`, avec `sent: false` et la raison dans `message`.",
        WebhookTestObject,
    ),
    Endpoint(
        "GET",
        "/webhooks/deliveries",
        list_deliveries,
        "Lire le journal des envois",
        "Les plus récents d'abord, dans l'environnement de la clé. Un envoi terminé reste au journal 90 jours, sauf "
        "réglage contraire de l'exploitant.",
        WebhookDeliveryObject,
        shape="page",
        parameters=(
            Parameter("status", "État de l'envoi.", {"type": "string", "enum": list(DELIVERY_STATUSES)}),
            Parameter("event", "Nom de l'événement.", {"type": "string", "enum": list(EVENT_NAMES)}),
            Parameter("payment_reference", "La référence du paiement : ses événements et ceux de son remboursement."),
            CREATED_FROM,
            CREATED_TO,
            *paging("l'`id` du dernier envoi reçu"),
        ),
        errors=(InvalidRequest,),
    ),
    Endpoint(
        "POST",
        "/webhooks/deliveries/{id}/resend",
        resend_delivery,
        "Renvoyer un webhook",
        "Donne cinq nouvelles tentatives à un envoi terminé, réussi ou non : même `id`, même corps, à l'adresse "
        "actuelle. Pour tout rattraper après une panne, lisez plutôt `GET /events`.",
        WebhookDeliveryObject,
        parameters=(
            Parameter("id", "L'`id` de l'envoi, qui est celui de l'événement.", where="path", sample=DELIVERY_ID),
        ),
        errors=(NotFound, Conflict),
    ),
)
