"""The refund that the API answers and that webhooks carry, and the body that asks for one.

Source: docs/contract.md, "Resources" and "Requests".
"""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from guichet.clock import Instant, iso
from guichet.domain.failures import REFUND_FAILURE_CODES, RefundFailureCode, refund_failure_of
from guichet.domain.money import number, round_to_currency
from guichet.domain.payments import DEFAULT_REASON, REFUND_STATUSES, Payment, Refund, RefundStatus
from guichet.domain.records import iso_or_none
from guichet.domain.refund_proposals import PROPOSAL_STATUSES, ProposalStatus, RefundProposal
from guichet.schemas import stated_fields
from guichet.schemas.object_fields import (
    PAYMENT_REFERENCE,
    REFUND_REFERENCE,
    SETTLED_AT,
    CurrencyCode,
    Number,
    Timestamp,
    Url,
    Uuid,
    example,
    open_enum,
    text_schema,
)
from guichet.schemas.validation import Body, Text255


class RefundFailureObject(TypedDict):
    """Pourquoi un remboursement a échoué."""

    code: Annotated[RefundFailureCode, open_enum(*REFUND_FAILURE_CODES), example("customer_account")]
    """Code stable ; il peut s'en ajouter."""
    message: Annotated[
        str,
        example(
            "L'opérateur ne peut pas créditer ce client : compte inactif, ou plafond atteint. "
            "Rendez-lui l'argent autrement."
        ),
    ]
    """Phrase pour vous, qui peut changer."""


class RefundObject(TypedDict):
    """Un remboursement : toujours total, et unique pour un paiement."""

    reference: Annotated[Uuid, example(REFUND_REFERENCE)]
    """Identifiant du remboursement (et non du paiement)."""
    payment_reference: Annotated[Uuid, example(PAYMENT_REFERENCE)]
    """Référence du paiement remboursé."""
    amount: Annotated[Number, example(5087.5)]
    """Le `total_amount` du paiement. Ce que le client reçoit est `refunded_amount`."""
    currency: Annotated[CurrencyCode, example("XOF")]
    """Devise du paiement d'origine."""
    status: Annotated[RefundStatus, text_schema(enum=list(REFUND_STATUSES)), example("pending")]
    """`pending` → `succeeded` ou `failed`."""
    reason: Annotated[str, example("Article indisponible")]
    """Motif enregistré."""
    processed_at: Annotated[Timestamp | None, example(None)]
    """Date d'exécution ; `null` tant que le remboursement est `pending`."""
    created_at: Annotated[Timestamp, example(SETTLED_AT)]
    """Date de la demande."""
    refunded_amount: Annotated[Number, example(5088)]
    """Ce que l'opérateur rend au client : `amount` arrondi à la plus petite unité de la devise, comme le
    `debited_amount` du paiement."""
    failure: Annotated[RefundFailureObject | None, example(None)]
    """Pourquoi il est `failed` ; `null` sinon."""


class RefundProposalObject(TypedDict):
    """Un remboursement qu'un programme propose, et qu'une personne de votre équipe confirme ou décline."""

    payment_reference: Annotated[Uuid, example(PAYMENT_REFERENCE)]
    """Référence du paiement."""
    status: Annotated[ProposalStatus, text_schema(enum=list(PROPOSAL_STATUSES)), example("open")]
    """`open` → `confirmed` (le paiement est remboursé, ou va l'être), `declined` ou `expired`."""
    refund_reference: Annotated[Uuid | None, example(None)]
    """Référence du remboursement ; `null` tant que personne ne l'a confirmé."""
    amount: Annotated[Number, example(5087.5)]
    """Le `total_amount` du paiement : un remboursement est toujours total."""
    currency: Annotated[CurrencyCode, example("XOF")]
    """Devise du paiement."""
    reason: Annotated[str | None, example("Article indisponible")]
    """Motif proposé, que la personne peut changer ; `null` sans motif."""
    url: Annotated[Url, example(f"https://pay.example.com/console/refund/{PAYMENT_REFERENCE}")]
    """Page de la console où une personne qui a le droit de rembourser confirme ou décline."""
    expires_at: Annotated[Timestamp, example("2026-11-27T10:15:41.345678Z")]
    """Fin : sans décision avant cette date, la proposition est `expired`."""
    created_at: Annotated[Timestamp, example(SETTLED_AT)]
    """Date de la proposition."""


class RefundBody(Body):
    """POST /payments/{reference}/refund, POST /payments/{reference}/refund-proposal."""

    misread = stated_fields.REFUND

    reason: Annotated[Text255 | None, Field(json_schema_extra={"default": DEFAULT_REASON})] = None
    """Motif, pour vos archives."""


def refund_object(refund: Refund) -> RefundObject:
    return {
        "reference": refund.reference,
        "payment_reference": refund.payment_reference,
        "amount": number(refund.amount),
        "currency": refund.currency,
        "status": refund.status,
        "reason": refund.reason,
        "processed_at": iso_or_none(refund.processed_at),
        "created_at": iso(refund.created_at),
        "refunded_amount": number(round_to_currency(refund.amount, refund.currency)),
        "failure": _failure(refund) if refund.status == "failed" else None,
    }


def refund_proposal_object(
    proposal: RefundProposal, payment: Payment, refund: Refund | None, url: str, now: Instant
) -> RefundProposalObject:
    """`refund`: that of a confirmed one; `url`: of the page on which a person decides."""
    return {
        "payment_reference": payment.reference,
        "status": proposal.status_at(now),
        "refund_reference": None if refund is None else refund.reference,
        "amount": number(payment.total_amount),
        "currency": payment.currency,
        "reason": proposal.reason,
        "url": url,
        "expires_at": iso(proposal.expires_at),
        "created_at": iso(proposal.created_at),
    }


def _failure(refund: Refund) -> RefundFailureObject:
    failure = refund_failure_of(refund.failure_reason)
    return {"code": failure.code, "message": failure.message}
