"""The body of a webhook: the envelope of each event, and the object that it carries (docs/contract.md, "Webhooks")."""

from typing import Annotated, Any, Final

from pydantic import WithJsonSchema
from typing_extensions import TypedDict

from guichet.domain.events import (
    DISPUTE_EVENTS,
    DISPUTE_LOST,
    DISPUTE_OPENED,
    DISPUTE_WON,
    EVENT_NAMES,
    PAYMENT_FAILED,
    PAYMENT_REFUNDED,
    PAYMENT_SUCCEEDED,
    REFUND_FAILED,
    REFUND_SUCCEEDED,
    SESSION_COMPLETED,
    SESSION_EVENTS,
    SESSION_EXPIRED,
    WEBHOOK_TEST,
    EventName,
)
from guichet.schemas.checkout_session import CheckoutSessionObject
from guichet.schemas.dispute import DisputeObject
from guichet.schemas.object_fields import DELIVERY_ID, SETTLED_AT, Timestamp, Uuid, example, open_enum, text_schema
from guichet.schemas.payment import PaymentObject
from guichet.schemas.refund import RefundObject


class WebhookMessageObject(TypedDict):
    """Le contenu d'un événement de test."""

    message: Annotated[
        str, example("Ceci est un événement de test : votre point de terminaison reçoit bien les notifications.")
    ]
    """Une phrase."""


class _Notification(TypedDict):
    id: Annotated[Uuid, example(DELIVERY_ID)]
    """Identifiant de l'envoi, le même à chaque tentative : votre clé d'idempotence."""
    livemode: Annotated[bool, example(False)]
    """`false` pour tout ce qui vient de l'environnement de test."""
    created_at: Annotated[Timestamp, example(SETTLED_AT)]
    """Date de mise en file."""


class PaymentNotification(_Notification):
    """Le corps d'un événement `payment.*`."""

    event: Annotated[
        EventName, text_schema(enum=[PAYMENT_SUCCEEDED, PAYMENT_FAILED, PAYMENT_REFUNDED]), example(PAYMENT_SUCCEEDED)
    ]
    """Nom de l'événement."""
    data: PaymentObject
    """Le paiement."""


class RefundNotification(_Notification):
    """Le corps d'un événement `refund.*`."""

    event: Annotated[EventName, text_schema(enum=[REFUND_SUCCEEDED, REFUND_FAILED]), example(REFUND_SUCCEEDED)]
    """Nom de l'événement."""
    data: RefundObject
    """Le remboursement."""


class DisputeNotification(_Notification):
    """Le corps d'un événement `dispute.*`."""

    event: Annotated[EventName, text_schema(enum=list(DISPUTE_EVENTS)), example(DISPUTE_OPENED)]
    """Nom de l'événement."""
    data: DisputeObject
    """La contestation."""


class CheckoutSessionNotification(_Notification):
    """Le corps d'un événement `checkout_session.*`."""

    event: Annotated[EventName, text_schema(enum=list(SESSION_EVENTS)), example(SESSION_COMPLETED)]
    """Nom de l'événement."""
    data: CheckoutSessionObject
    """La session de paiement."""


class WebhookTestNotification(_Notification):
    """Le corps de l'événement `webhook.test`."""

    event: Annotated[EventName, text_schema(enum=[WEBHOOK_TEST]), example(WEBHOOK_TEST)]
    """Nom de l'événement."""
    data: WebhookMessageObject
    """Le message de test."""


class EventObject(_Notification):
    """Un événement, comme le webhook l'a porté ou l'aurait porté."""

    event: Annotated[EventName, open_enum(*EVENT_NAMES), example(PAYMENT_SUCCEEDED)]
    """Nom de l'événement. Acceptez sans erreur un nom inconnu."""
    data: Annotated[dict[str, Any], WithJsonSchema({"type": "object", "additionalProperties": True})]
    """Le paiement (`payment.*`), le remboursement (`refund.*`), la contestation (`dispute.*`) ou la session de paiement
    (`checkout_session.*`)."""


Notification = (
    PaymentNotification
    | RefundNotification
    | DisputeNotification
    | CheckoutSessionNotification
    | WebhookTestNotification
)

#: What each event carries, and when it happens.
NOTIFICATIONS: Final[dict[EventName, tuple[type[Notification], str]]] = {
    PAYMENT_SUCCEEDED: (PaymentNotification, "Le client a été débité."),
    PAYMENT_FAILED: (PaymentNotification, "L'opérateur ou le client a refusé, après l'envoi de la demande."),
    PAYMENT_REFUNDED: (PaymentNotification, "Le paiement a été rendu au client."),
    REFUND_SUCCEEDED: (RefundNotification, "Un remboursement demandé a été exécuté."),
    REFUND_FAILED: (RefundNotification, "Un remboursement demandé n'a pas pu être exécuté."),
    WEBHOOK_TEST: (WebhookTestNotification, "Vous avez appelé `POST /webhooks/test`."),
    DISPUTE_OPENED: (DisputeNotification, "Le porteur de la carte conteste le paiement auprès de sa banque."),
    DISPUTE_WON: (DisputeNotification, "La banque a décidé pour vous : le montant est rendu."),
    DISPUTE_LOST: (DisputeNotification, "La banque a décidé pour le porteur de la carte."),
    SESSION_COMPLETED: (CheckoutSessionNotification, "Un paiement de la session a abouti."),
    SESSION_EXPIRED: (CheckoutSessionNotification, "La session est fermée, et aucun paiement n'a abouti."),
}
