"""A line of the log of webhook deliveries (docs/contract.md, "Resources")."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from guichet.clock import iso
from guichet.domain.events import (
    DELIVERY_STATUSES,
    EVENTS,
    MAX_ATTEMPTS,
    PAYMENT_SUCCEEDED,
    WEBHOOK_TEST,
    Delivery,
    DeliveryStatus,
    EventName,
)
from guichet.schemas.json_codec import timestamp
from guichet.schemas.object_fields import (
    DELIVERY_ID,
    SETTLED_AT,
    WEBHOOK_URL,
    Timestamp,
    Uuid,
    example,
    open_enum,
    text_schema,
)


class WebhookDeliveryObject(TypedDict):
    """Un envoi de webhook, dans le journal."""

    id: Annotated[Uuid, example(DELIVERY_ID)]
    """Identifiant de l'envoi : l'`id` du corps envoyé et l'en-tête `X-Service-Delivery`."""
    event: Annotated[EventName, open_enum(*EVENTS, WEBHOOK_TEST), example(PAYMENT_SUCCEEDED)]
    """Nom de l'événement."""
    url: Annotated[str, example(WEBHOOK_URL)]
    """Adresse appelée."""
    status: Annotated[DeliveryStatus, text_schema(enum=list(DELIVERY_STATUSES)), example("success")]
    """`pending` tant qu'une tentative reste à faire, puis `success` ou `failed`."""
    attempts: Annotated[int, Field(examples=[1], ge=0, le=MAX_ATTEMPTS)]
    """Tentatives faites."""
    response_code: Annotated[int | None, example(200)]
    """Statut HTTP répondu par votre serveur ; `null` s'il n'a pas pu être joint."""
    created_at: Annotated[Timestamp, example(SETTLED_AT)]
    """Mise en file."""
    delivered_at: Annotated[Timestamp | None, example("2026-11-20T10:15:41.345678Z")]
    """Date de l'envoi réussi ; `null` sinon."""


def webhook_delivery_object(delivery: Delivery) -> WebhookDeliveryObject:
    return {
        "id": delivery.reference,
        "event": delivery.event,
        "url": delivery.url,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "response_code": delivery.response_code,
        "created_at": iso(delivery.created_at),
        "delivered_at": timestamp(delivery.delivered_at),
    }
