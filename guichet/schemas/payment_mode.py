"""A payment mode of the catalogue, whole (GET /payment-modes) and in brief (inside a payment); what a payment by it
would cost, and the body that asks for that.

Source: docs/contract.md, "Resources", "Requests".
"""

from typing import Annotated

from typing_extensions import TypedDict

from guichet.domain.availability import OPERATOR_STATES, OperatorState
from guichet.domain.catalogue import PaymentMode, Quote, percent
from guichet.domain.money import number
from guichet.schemas.object_fields import Number, Url, example, open_enum
from guichet.schemas.payment import PaymentModeSummaryObject, payment_mode_summary
from guichet.schemas.validation import Amount, ModeBody


class PaymentModeObject(PaymentModeSummaryObject):
    """Un moyen de paiement ouvert à votre compte, avec vos frais."""

    fee_percent: Annotated[Number, example(1.75)]
    """Part proportionnelle des frais, en pourcentage."""
    fee_fixed: Annotated[Number, example(0)]
    """Part fixe des frais."""
    requires_otp: Annotated[bool, example(False)]
    """`true` : `otp` est obligatoire à la création d'un paiement. Lisez toujours ce drapeau, il peut changer."""
    logo: Annotated[Url | None, example(None)]
    """Logo de l'opérateur."""
    availability: Annotated[str, open_enum(*OPERATOR_STATES), example("up")]
    """État technique de l'opérateur. Même `down`, ses paiements sont acceptés. Avec une clé de test, toujours `up`."""


def payment_mode_object(mode: PaymentMode, availability: OperatorState) -> PaymentModeObject:
    return {
        **payment_mode_summary(mode),
        "fee_percent": percent(mode.fee_percent),
        "fee_fixed": number(mode.fee_fixed),
        "requires_otp": mode.requires_otp,
        "logo": mode.logo,
        "availability": availability,
    }


class FeeQuoteObject(TypedDict):
    """Une simulation : `fee_amount = amount × fee_percent / 100 + fee_fixed`, arrondi au centième (la moitié vers le
    haut) dans toutes les devises."""

    payment_mode_id: Annotated[int, example(1)]
    """Identifiant du moyen de paiement dans le catalogue."""
    operator: Annotated[str, example("mtn")]
    """Code de l'opérateur."""
    amount: Annotated[Number, example(5000)]
    """Le montant demandé."""
    fee_amount: Annotated[Number, example(87.5)]
    """Les frais."""
    total_amount: Annotated[Number, example(5087.5)]
    """Ce dont le client serait débité."""
    fee_percent: Annotated[Number, example(1.75)]
    """Part proportionnelle appliquée, en pourcentage."""
    fee_fixed: Annotated[Number, example(0)]
    """Part fixe appliquée."""


class FeeBody(ModeBody):
    """POST /payment-modes/fees."""

    amount: Amount
    """Le montant que vous voulez encaisser."""


def fee_quote_object(quoted: Quote) -> FeeQuoteObject:
    return {
        "payment_mode_id": quoted.mode.id,
        "operator": quoted.mode.operator,
        "amount": number(quoted.amount),
        "fee_amount": number(quoted.fee_amount),
        "total_amount": number(quoted.total_amount),
        "fee_percent": percent(quoted.mode.fee_percent),
        "fee_fixed": number(quoted.mode.fee_fixed),
    }
