"""The dispute that the webhooks `dispute.*` carry (an addition to the contract: docs/contract.md, "Webhooks")."""

from typing import Annotated

from typing_extensions import TypedDict

from guichet.clock import iso
from guichet.domain.disputes import TOLD_STATUSES, Dispute, ToldStatus
from guichet.domain.money import number
from guichet.domain.records import iso_or_none
from guichet.schemas.object_fields import (
    PAYMENT_REFERENCE,
    REFUND_REFERENCE,
    SETTLED_AT,
    CurrencyCode,
    Number,
    Timestamp,
    Uuid,
    example,
    text_schema,
)


class DisputeObject(TypedDict):
    """Une contestation : le porteur de la carte conteste le paiement auprès de sa banque."""

    reference: Annotated[Uuid, example(REFUND_REFERENCE)]
    """Identifiant de la contestation."""
    payment_reference: Annotated[Uuid, example(PAYMENT_REFERENCE)]
    """Référence du paiement contesté, dont le statut ne change pas."""
    amount: Annotated[Number, example(15525)]
    """Montant que la banque a repris."""
    currency: Annotated[CurrencyCode, example("XOF")]
    """Devise du paiement."""
    status: Annotated[ToldStatus, text_schema(enum=list(TOLD_STATUSES)), example("open")]
    """`open` → `won` (le montant est rendu) ou `lost`."""
    reason: Annotated[str, example("fraudulent")]
    """Motif, dans les mots du réseau de cartes."""
    evidence_due_at: Annotated[Timestamp | None, example(None)]
    """Jusqu'à quand vos justificatifs peuvent être envoyés ; `null` si inconnu."""
    closed_at: Annotated[Timestamp | None, example(None)]
    """Date de la décision ; `null` tant que la contestation est `open`."""
    created_at: Annotated[Timestamp, example(SETTLED_AT)]
    """Date de la contestation."""


def dispute_object(dispute: Dispute) -> DisputeObject:
    """Of a dispute about a payment, in a status that merchants are told."""
    status = next(status for status in TOLD_STATUSES if status == dispute.status)
    return {
        "reference": dispute.reference,
        "payment_reference": dispute.payment_reference or "",
        "amount": number(dispute.amount),
        "currency": dispute.currency,
        "status": status,
        "reason": dispute.reason,
        "evidence_due_at": iso_or_none(dispute.evidence_due_at),
        "closed_at": iso_or_none(dispute.closed_at),
        "created_at": iso(dispute.opened_at),
    }
