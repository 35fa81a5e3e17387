"""A payment mode of the catalogue, whole (GET /payment-modes) and in brief (inside a payment).

Source: docs/contract.md, "Resources".
"""

from typing import Annotated

from guichet.domain.availability import OPERATOR_STATES, OperatorState
from guichet.domain.catalogue import PaymentMode
from guichet.schemas.json_codec import number, percent
from guichet.schemas.object_fields import Number, Url, example, open_enum
from guichet.schemas.payment import PaymentModeSummaryObject, payment_mode_summary


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
