"""The body of POST /payments (docs/contract.md, "Requests")."""

import re
from typing import Annotated, Any, Final

from pydantic import Field, ValidationInfo, field_validator

from guichet.domain.payments import DEFAULT_COUNTRY, DEFAULT_DESCRIPTION
from guichet.schemas.json_input import has_bad_text
from guichet.schemas.request_fields import (
    NO_BAD_TEXT,
    Amount,
    Body,
    CurrencyCode,
    ModeBody,
    Text,
    Url,
    WebhookUrl,
    check_decimals,
    check_email,
    refuse,
)

BAD_METADATA: Final = "Un texte de cet objet contient un caractère interdit."
_PHONE_NUMBER: Final = re.compile(r"\+?([0-9]{8,15})")


class Customer(Body):
    """Who pays. Cards require it."""

    firstname: Annotated[Annotated[str, Field(max_length=100), NO_BAD_TEXT] | None, Field(examples=["Awa"])] = None
    """Prénom. Obligatoire pour une carte."""
    lastname: Annotated[Annotated[str, Field(max_length=100), NO_BAD_TEXT] | None, Field(examples=["Diallo"])] = None
    """Nom. Obligatoire pour une carte."""
    email: Annotated[
        Annotated[str, Field(max_length=150), NO_BAD_TEXT] | None, Field(json_schema_extra={"format": "email"})
    ] = None
    """Adresse e-mail, qui sert à rapprocher vos clients. Obligatoire pour une carte."""
    address: Annotated[str, Field(max_length=255), NO_BAD_TEXT] | None = None
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

    currency: CurrencyCode = "XOF"
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
    description: Annotated[
        Annotated[str, Field(max_length=255), NO_BAD_TEXT] | None,
        Field(json_schema_extra={"default": DEFAULT_DESCRIPTION}),
    ] = None
    """Libellé de la commande."""
    external_id: Annotated[
        Annotated[str, Field(min_length=1, max_length=100), NO_BAD_TEXT] | None, Field(examples=["commande-1042"])
    ] = None
    """Votre identifiant de commande, unique dans chaque environnement. Il rend l'appel rejouable : répété, il rend le
    paiement existant et ne crée rien."""
    return_url: Url | None = None
    """Page où le client revient après le paiement (http ou https) ; `reference` et `status` y sont ajoutés. Obligatoire
    pour `free_sn`, utile pour les cartes."""
    callback_url: WebhookUrl | None = None
    """Adresse HTTPS qui reçoit les événements de ce paiement et de son remboursement à la place de celle du compte."""
    metadata: dict[str, Any] | None = None
    """Données libres, rendues telles quelles dans les réponses et les webhooks."""
    customer: Customer | None = None
    """Le client. Obligatoire pour une carte."""

    @field_validator("amount")
    @classmethod
    def _whole_units(cls, value: int, info: ValidationInfo) -> int:
        return check_decimals(value, info.data["currency"]) if "currency" in info.data else value

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

    @field_validator("metadata", mode="before")
    @classmethod
    def _without_bad_text(cls, value: object, info: ValidationInfo) -> object:
        """The context says `suspect` when the body has an escape that could be bad text."""
        if info.context and info.context.get("suspect") and has_bad_text(value):
            raise refuse(BAD_METADATA)
        return value
