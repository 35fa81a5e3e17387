"""The payment that the API answers and that webhooks carry (docs/contract.md, "Resources").

The body that creates one is in guichet/schemas/payment_request.py.
"""

from typing import Annotated, NotRequired

from msgspec import Raw
from pydantic import Field
from typing_extensions import TypedDict

from guichet.clock import iso
from guichet.domain.catalogue import PaymentMode
from guichet.domain.payments import PAYMENT_STATUSES, Payment
from guichet.schemas.json_output import number
from guichet.schemas.object_fields import (
    CREATED_AT,
    PAYMENT_REFERENCE,
    CurrencyCode,
    Number,
    RawJsonObject,
    Timestamp,
    Url,
    Uuid,
    example,
    text_schema,
)
from guichet.schemas.payment_mode import PaymentModeSummaryObject, payment_mode_summary


class PaymentCustomerObject(TypedDict):
    """Le client, tel que vous l'avez décrit ; chaque champ vaut `null` s'il n'a pas été envoyé."""

    firstname: Annotated[str | None, example("Awa")]
    """Prénom."""
    lastname: Annotated[str | None, example("Diallo")]
    """Nom."""
    email: Annotated[str | None, example("awa@example.com")]
    """Adresse e-mail."""
    phone_number: Annotated[str | None, Field(examples=["2290197001234"], pattern="^[0-9]{8,15}$")]
    """Numéro en chiffres seulement, indicatif compris (un `+` initial est retiré)."""


class PaymentObject(TypedDict):
    """Un paiement."""

    reference: Annotated[Uuid, example(PAYMENT_REFERENCE)]
    """Identifiant du paiement."""
    identifier: Annotated[str, Field(examples=["0000000042"], pattern="^[0-9]{10,}$")]
    """Numéro lisible et croissant, pour l'affichage seulement."""
    external_id: Annotated[str | None, example("commande-1042")]
    """Votre propre identifiant de commande ; `null` s'il n'a pas été envoyé."""
    status: Annotated[str, text_schema(enum=list(PAYMENT_STATUSES)), example("pending")]
    """`pending` → `succeeded` ou `failed` ; `succeeded` → `refunded`. Livrez seulement à `succeeded`."""
    amount: Annotated[Number, example(5000)]
    """Ce que vous encaissez."""
    fee_amount: Annotated[Number, example(87.5)]
    """Frais de service, payés par le client en plus de `amount`."""
    total_amount: Annotated[Number, example(5087.5)]
    """Ce dont le client est débité : `amount` + `fee_amount`."""
    currency: Annotated[CurrencyCode, example("XOF")]
    """Devise du paiement."""
    description: Annotated[str, example("Commande 1042")]
    """Libellé de la commande."""
    payment_mode: PaymentModeSummaryObject | None
    """Le moyen de paiement utilisé ; `null` s'il n'est plus disponible."""
    customer: PaymentCustomerObject
    """Le client."""
    payment_url: Annotated[Url | None, example(None)]
    """Page de paiement hébergée. Remplie seulement dans la réponse qui crée un paiement par carte, `null` partout
    ailleurs : lectures, listes, webhooks, Mobile Money, répétition d'un `external_id`."""
    metadata: Annotated[RawJsonObject | None, example({"panier": 77})]
    """Exactement ce que vous avez envoyé, octet pour octet ; `null` sinon."""
    created_at: Annotated[Timestamp, example(CREATED_AT)]
    """Date de création (UTC)."""
    updated_at: Annotated[Timestamp, example(CREATED_AT)]
    """Date du dernier changement de `status` (UTC)."""


class CreatedPaymentObject(PaymentObject):
    """Un paiement, tel qu'il est répondu à sa création."""

    redirect_url: NotRequired[Annotated[Url, example("https://operateur.example/confirmer/3f2a")]]
    """Présent seulement quand l'opérateur confirme sur sa propre page ou application (Wave, Orange selon le pays) :
    envoyez-y votre client."""


def payment_object(payment: Payment, mode: PaymentMode | None, payment_url: str | None = None) -> PaymentObject:
    """`mode` is None when the catalogue no longer has it; `payment_url` only goes into the answer that creates a card
    payment."""
    created_at = iso(payment.created_at)
    return {
        "reference": payment.reference,
        "identifier": payment.identifier,
        "external_id": payment.external_id,
        "status": payment.status,
        "amount": number(payment.amount),
        "fee_amount": number(payment.fee_amount),
        "total_amount": number(payment.total_amount),
        "currency": payment.currency,
        "description": payment.description,
        "payment_mode": None if mode is None else payment_mode_summary(mode),
        "customer": {
            "firstname": payment.firstname,
            "lastname": payment.lastname,
            "email": payment.email,
            "phone_number": payment.phone_number,
        },
        "payment_url": payment_url,
        "metadata": None if payment.metadata is None else Raw(payment.metadata.encode()),
        "created_at": created_at,
        "updated_at": created_at if payment.updated_at == payment.created_at else iso(payment.updated_at),
    }


def created_payment_object(
    payment: Payment, mode: PaymentMode | None, *, payment_url: str | None = None, redirect_url: str | None = None
) -> PaymentObject:
    """What POST /payments answers; without a `redirect_url` the field is left out (D31)."""
    created = payment_object(payment, mode, payment_url)
    if redirect_url is None:
        return created
    redirected: CreatedPaymentObject = {**created, "redirect_url": redirect_url}
    return redirected
