"""A payment mode of the catalogue, whole (GET /payment-modes) and in brief (inside a payment).

Source: docs/contract.md, "Resources".
"""

from typing import Annotated

from typing_extensions import TypedDict

from guichet.domain.catalogue import PaymentMode
from guichet.schemas.json_output import number, percent
from guichet.schemas.object_fields import ModeType, Number, Url, example


class PaymentModeSummaryObject(TypedDict):
    """Le moyen de paiement utilisé, en bref."""

    id: Annotated[int, example(1)]
    """Identifiant dans le catalogue, utilisable comme `payment_mode_id`."""
    name: Annotated[str, example("MTN MoMo")]
    """Nom à afficher."""
    type: Annotated[ModeType, example("mobile_money")]
    """Famille du moyen de paiement."""
    operator: Annotated[str, example("mtn")]
    """Code de l'opérateur, utilisable comme `operator`."""
    country: Annotated[str | None, example("Bénin")]
    """Nom du pays ; `null` pour un moyen qui n'appartient à aucun pays (cartes)."""
    country_code: Annotated[str | None, example("BJ")]
    """Code ISO-2 du pays ; `null` comme ci-dessus."""


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


def payment_mode_summary(mode: PaymentMode) -> PaymentModeSummaryObject:
    return {
        "id": mode.id,
        "name": mode.name,
        "type": mode.type,
        "operator": mode.operator,
        "country": mode.country,
        "country_code": mode.country_code,
    }


def payment_mode_object(mode: PaymentMode) -> PaymentModeObject:
    return {
        **payment_mode_summary(mode),
        "fee_percent": percent(mode.fee_percent),
        "fee_fixed": number(mode.fee_fixed),
        "requires_otp": mode.requires_otp,
        "logo": mode.logo,
    }
