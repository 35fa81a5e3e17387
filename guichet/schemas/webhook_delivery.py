"""A line of the log of webhook deliveries (docs/contract.md, "Resources")."""

from typing import Annotated, Final

from pydantic import Field
from typing_extensions import TypedDict

from guichet.clock import iso
from guichet.domain.events import (
    ANSWER_TIMEOUT,
    DELIVERY_STATUSES,
    EVENTS,
    MAX_ATTEMPTS,
    PAYMENT_SUCCEEDED,
    WEBHOOK_TEST,
    Delivery,
    DeliveryError,
    DeliveryStatus,
    EventName,
)
from guichet.domain.records import iso_or_none
from guichet.schemas.object_fields import (
    DELIVERY_ID,
    PAYMENT_REFERENCE,
    SETTLED_AT,
    WEBHOOK_URL,
    Timestamp,
    Uuid,
    example,
    open_enum,
    text_schema,
)

#: What a merchant reads of each reason.
ERRORS: Final[dict[DeliveryError, str]] = {
    "bad_status": "Votre serveur a répondu par un autre statut que 2xx.",
    "timeout": f"Votre serveur n'a pas répondu en {ANSWER_TIMEOUT:.0f} secondes.",
    "address_refused": "Le nom de votre serveur est introuvable dans le DNS ou ne mène à aucune adresse publique.",
    "connection_failed": "La connexion à votre serveur a échoué.",
    "tls_failed": "Le certificat de votre serveur n'est pas valable, ou la négociation TLS a échoué.",
    "answer_lost": "La connexion s'est rompue avant la réponse.",
    "interrupted": "La dernière tentative a été interrompue de notre côté.",
    "endpoint_disabled": "Les webhooks ont été désactivés avant l'envoi.",
    "own_fault": "L'envoi a échoué de notre côté.",
}


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
    payment_reference: Annotated[Uuid | None, example(PAYMENT_REFERENCE)]
    """Le paiement dont parle l'événement, ou dont parle son remboursement ; `null` pour `webhook.test`."""
    error: Annotated[str | None, example(None)]
    """Pourquoi la dernière tentative a échoué, en une phrase pour les humains ; `null` sinon."""
    next_attempt_at: Annotated[Timestamp | None, example(None)]
    """Prochaine tentative, au plus tôt ; `null` quand il n'y en aura plus."""


def webhook_delivery_object(delivery: Delivery, payment_reference: str | None) -> WebhookDeliveryObject:
    return {
        "id": delivery.reference,
        "event": delivery.event,
        "url": delivery.url,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "response_code": delivery.response_code,
        "created_at": iso(delivery.created_at),
        "delivered_at": iso_or_none(delivery.delivered_at),
        "payment_reference": payment_reference,
        "error": None if delivery.error is None else ERRORS[delivery.error],
        "next_attempt_at": iso_or_none(delivery.next_attempt_at),
    }
