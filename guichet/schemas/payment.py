"""The payment: the body that creates one, and the object that the API answers and webhooks carry.

Source: docs/contract.md, "Requests" and "Resources".
"""

import re
from typing import Annotated, Final, NotRequired

from msgspec import Raw
from pydantic import Field, ValidationInfo, WithJsonSchema, field_validator
from typing_extensions import TypedDict

from guichet.clock import iso
from guichet.domain.catalogue import PaymentMode
from guichet.domain.failures import FAILURE_CODES, FailureCode, failure_of
from guichet.domain.money import number, round_to_currency
from guichet.domain.payments import (
    DEFAULT_COUNTRY,
    DEFAULT_DESCRIPTION,
    PAYMENT_STATUSES,
    ApiPayment,
    Payment,
    PaymentStatus,
)
from guichet.domain.sandbox_scenarios import TEST_SCENARIOS, TestScenario, sample_link
from guichet.schemas import body_fields, stated_fields
from guichet.schemas.body_fields import Metadata, WebhookUrl, check_email
from guichet.schemas.object_fields import (
    CREATED_AT,
    PAYMENT_REFERENCE,
    SESSION_ID,
    CurrencyCode,
    ModeType,
    Number,
    RawJsonObject,
    Timestamp,
    Url,
    Uuid,
    example,
    open_enum,
    text_schema,
)
from guichet.schemas.validation import (
    NO_BAD_TEXT,
    Amount,
    Body,
    ExternalId,
    ModeBody,
    Name,
    RequestedCurrency,
    Text,
    Text255,
    refuse,
)

_PHONE_NUMBER: Final = re.compile(r"\+?([0-9]{8,15})")


class Customer(Body):
    """Who pays. Cards require it."""

    firstname: Annotated[Name | None, Field(examples=["Awa"])] = None
    """Prénom. Obligatoire pour une carte."""
    lastname: Annotated[Name | None, Field(examples=["Diallo"])] = None
    """Nom. Obligatoire pour une carte."""
    email: Annotated[
        Annotated[str, Field(max_length=150), NO_BAD_TEXT] | None, Field(json_schema_extra={"format": "email"})
    ] = None
    """Adresse e-mail, qui sert à rapprocher vos clients. Obligatoire pour une carte."""
    address: Text255 | None = None
    """Adresse postale."""
    country: Annotated[
        Annotated[str, Field(max_length=60), NO_BAD_TEXT] | None, Field(json_schema_extra={"default": DEFAULT_COUNTRY})
    ] = None
    """Pays, pour les cartes."""

    @field_validator("email")
    @classmethod
    def _is_email(cls, value: str | None) -> str | None:
        return None if value is None else check_email(value)


class PaymentBody(ModeBody):
    """POST /payments."""

    misread = stated_fields.PAYMENT

    currency: RequestedCurrency = "XOF"
    """Devise du paiement."""
    amount: Amount
    """Ce que vous encaissez, dans l'unité principale. Entier en XOF et XAF, deux décimales au plus en EUR et USD."""
    phone_number: Annotated[
        Text | None, Field(examples=["2290197001234"], json_schema_extra={"pattern": r"^\+?[0-9]{8,15}$"})
    ] = None
    """De 8 à 15 chiffres, indicatif compris, sans espace ni tiret ; un `+` initial est toléré. Obligatoire en Mobile
    Money, inutile pour une carte."""
    otp: Annotated[str, Field(max_length=16), NO_BAD_TEXT] | None = None
    """Code de validation obtenu par le client auprès de son opérateur. Obligatoire quand le catalogue dit
    `requires_otp`."""
    description: Annotated[Text255 | None, Field(json_schema_extra={"default": DEFAULT_DESCRIPTION})] = None
    """Libellé de la commande."""
    external_id: Annotated[ExternalId | None, Field(examples=["commande-1042"])] = None
    """Votre identifiant de commande, unique dans chaque environnement. Il rend l'appel rejouable : répété, il rend le
    paiement existant et ne crée rien."""
    return_url: body_fields.Url | None = None
    """Page où le client revient après le paiement (http ou https) ; `reference` et `status` y sont ajoutés. Obligatoire
    pour `free_sn`, utile pour les cartes."""
    callback_url: WebhookUrl | None = None
    """Adresse HTTPS qui reçoit les événements de ce paiement et de son remboursement à la place de celle du compte."""
    metadata: Metadata = None
    """Données libres, rendues telles quelles dans les réponses et les webhooks."""
    customer: Customer | None = None
    """Le client. Obligatoire pour une carte."""
    # Not validated while it is absent: payments that name none must not pay for it.
    test_scenario: Annotated[
        # As with `CurrencyCode`, the document does not say that null is accepted.
        Annotated[TestScenario | None, WithJsonSchema({"type": "string", "enum": [*TEST_SCENARIOS]})],
        Field(validate_default=False),
    ] = None
    """Ce que ce paiement de test doit vivre et qu'aucun numéro n'atteint (voir « Environnement de test »). Refusé avec
    une clé de production."""

    def value_of(self, field: str) -> object:
        """The value of a field by its name in the contract, such as `customer.email`."""
        if field.startswith("customer."):
            return self.customer and getattr(self.customer, field.removeprefix("customer."))
        return getattr(self, field)

    @field_validator("phone_number")
    @classmethod
    def _digits(cls, value: str | None) -> str | None:
        """Digits only: a leading `+` is dropped (D9)."""
        if value is None:
            return None
        match = _PHONE_NUMBER.fullmatch(value)
        if not match:
            raise refuse("Le numéro doit comporter de 8 à 15 chiffres, indicatif compris, sans espace ni tiret.")
        return match[1]

    @field_validator("test_scenario")
    @classmethod
    def _in_test_only(cls, value: TestScenario | None, info: ValidationInfo) -> TestScenario | None:
        if value is not None and info.context and info.context.get("live"):
            raise refuse("Ce champ n'est accepté qu'avec une clé de test.")
        return value


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


class PaymentFailureObject(TypedDict):
    """Pourquoi le paiement a échoué."""

    code: Annotated[FailureCode, open_enum(*FAILURE_CODES), example("rejected_by_customer")]
    """Identifiant stable, dont la liste peut s'allonger : traitez un code inconnu comme `other`."""
    message: Annotated[str, example(failure_of("rejected_by_payer").message)]
    """Phrase en français que vous pouvez montrer au client. Elle peut changer sans préavis."""


class PaymentSourceLinkObject(TypedDict):
    """Le lien de paiement par lequel le client a payé."""

    id: Annotated[int, example(1)]
    """Identifiant numérique, pour `GET /payment-links/{id}`."""
    external_id: Annotated[str | None, example("cotisation-2026")]
    """Votre identifiant du lien ; `null` s'il n'en a pas."""


class PaymentSessionObject(TypedDict):
    """La session de paiement dont il vient."""

    id: Annotated[Uuid, example(SESSION_ID)]
    """Identifiant de la session, pour `GET /checkout-sessions/{id}`."""
    external_id: Annotated[str | None, example("commande-1042")]
    """Votre identifiant de la session ; `null` si elle n'en a pas."""


class PaymentObject(TypedDict):
    """Un paiement."""

    reference: Annotated[Uuid, example(PAYMENT_REFERENCE)]
    """Identifiant du paiement."""
    identifier: Annotated[str, Field(examples=["0000000001"], pattern="^[0-9]{10,}$")]
    """Numéro lisible et croissant, pour l'affichage seulement."""
    external_id: Annotated[str | None, example("commande-1042")]
    """Votre propre identifiant de commande ; `null` s'il n'a pas été envoyé."""
    status: Annotated[PaymentStatus, text_schema(enum=list(PAYMENT_STATUSES)), example("pending")]
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
    debited_amount: Annotated[Number, example(5088)]
    """Ce que l'opérateur débite réellement au client : `total_amount`, arrondi à l'unité (la moitié vers le haut) en
    XOF et XAF, cartes comprises. En test, ce qui serait débité. Un paiement `failed` n'a rien débité."""
    failure: Annotated[PaymentFailureObject | None, example(None)]
    """Pourquoi le paiement a échoué ; `null` s'il n'est pas `failed`."""
    payment_link: Annotated[PaymentSourceLinkObject | None, example(None)]
    """Le lien de paiement dont il vient ; `null` pour un paiement créé par l'API ou venu d'une session de paiement."""
    checkout_session: NotRequired[PaymentSessionObject]
    """La session de paiement dont il vient. Présent seulement pour un tel paiement."""
    redirect_url: NotRequired[Annotated[Url, example("https://operateur.example/confirmer/3f2a")]]
    """Présent seulement tant que le paiement est `pending` et que l'opérateur confirme sur sa propre page ou
    application (Wave, Orange selon le pays) : envoyez-y votre client. Une carte a `payment_url` à la place."""


def payment_object(
    payment: Payment | ApiPayment, mode: PaymentMode | None, payment_url: str | None = None
) -> PaymentObject:
    """`mode` is None when the catalogue no longer has it; `payment_url` only goes into the answer that creates a card
    payment. `redirect_url` is there while the customer has to go to the provider's page (D31)."""
    created_at = iso(payment.created_at)
    fields: PaymentObject = {
        "reference": payment.reference,
        "identifier": payment_identifier(payment.id),
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
        "debited_amount": number(round_to_currency(payment.total_amount, payment.currency)),
        "failure": _failure(payment) if payment.status == "failed" else None,
        "payment_link": _payment_link(payment),
    }
    if payment.session_reference is not None:
        fields["checkout_session"] = {"id": payment.session_reference, "external_id": payment.link_external_id}
    if payment.redirect_url is not None and payment.status == "pending" and not (mode and mode.is_card):
        fields["redirect_url"] = payment.redirect_url
    return fields


def _failure(payment: Payment | ApiPayment) -> PaymentFailureObject:
    failure = failure_of(payment.failure_reason)
    return {"code": failure.code, "message": failure.message}


def _payment_link(payment: Payment | ApiPayment) -> PaymentSourceLinkObject | None:
    if payment.session_reference is not None:
        return None
    if payment.link_id is not None:
        return {"id": payment.link_id, "external_id": payment.link_external_id}
    if payment.env == "test" and payment.provider_data is not None and (sample := sample_link(payment)):
        return {"id": sample.id, "external_id": sample.external_id}
    return None


def payment_mode_summary(mode: PaymentMode) -> PaymentModeSummaryObject:
    return {
        "id": mode.id,
        "name": mode.name,
        "type": mode.type,
        "operator": mode.operator,
        "country": mode.country,
        "country_code": mode.country_code,
    }


def payment_identifier(row_id: int) -> str:
    """The readable number of a payment: the number of its row, on ten digits at least (D28)."""
    return str(row_id).zfill(10)
