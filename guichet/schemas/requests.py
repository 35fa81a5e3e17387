"""The request bodies of the contract as models: they validate, and `/openapi.json` is made from them.

JSON types are strict (D2), null on an optional field means absent, unknown fields are ignored. Amounts become
hundredths, dates Instants. The fields' docstrings are in French because merchants read them in `/docs`.
"""

import re
from decimal import Decimal
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from email_validator import EmailNotValidError, validate_email
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)
from pydantic_core import PydanticCustomError

from guichet.clock import Instant, read_date
from guichet.domain import money
from guichet.domain.emails import is_plain_email
from guichet.domain.money import Currency
from guichet.domain.payment_links import LIMITED, LINK_TYPES, PERMANENT
from guichet.domain.payments import DEFAULT_COUNTRY, DEFAULT_DESCRIPTION, DEFAULT_REASON
from guichet.http_client import is_loopback_host
from guichet.schemas.wire import has_bad_text

_PHONE: Final = re.compile(r"\+?([0-9]{8,15})")
BAD_TEXT: Final = "Un texte de cet objet contient un caractère interdit."
_MAX_ID: Final = 2**31 - 1
#: Parsing drops some of these silently, and what is stored is what was sent.
_NOT_IN_URLS: Final = re.compile(r"[\s\\\x00-\x20\x7f]")


def refuse(sentence: str) -> PydanticCustomError:
    """A rule of ours; braces would be taken for a template."""
    return PydanticCustomError("guichet", sentence.replace("{", "(").replace("}", ")"))


def _amount(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise refuse("Un nombre est attendu." if value is not None else "Ce champ est obligatoire.")
    hundredths = money.to_hundredths(value)
    if hundredths is None or not money.MIN_AMOUNT <= hundredths <= money.MAX_AMOUNT:
        raise refuse("Le montant doit être compris entre 1 et 99 999 999, avec deux décimales au plus.")
    return hundredths


def check_decimals(amount: int, currency: str) -> int:
    if not money.has_whole_units(amount, currency):
        raise refuse(f"Le {currency} n'a pas de décimales : envoyez un montant entier.")
    return amount


def _integer(value: object) -> object:
    """12.0 is an integer; true is not (D2)."""
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < 30 and value == int(value):
        return int(value)
    return value


def _text(value: str) -> str:
    if has_bad_text(value):
        raise refuse("Ce texte contient un caractère interdit.")
    return value


def _phone(value: str) -> str:
    match = _PHONE.fullmatch(value)
    if not match:
        raise refuse("Le numéro doit comporter de 8 à 15 chiffres, indicatif compris, sans espace ni tiret.")
    return match[1]


def _email(value: str) -> str:
    if is_plain_email(value):
        return value
    try:
        validate_email(value, check_deliverability=False)
    except EmailNotValidError:
        raise refuse("L'adresse e-mail n'est pas valide.") from None
    return value


def _url(value: str, schemes: tuple[str, ...]) -> str:
    try:
        parts = urlsplit(value)
        valid = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0 and not _NOT_IN_URLS.search(value)
    except ValueError:
        valid = False
    if not valid:
        raise refuse(f"Une adresse {' ou '.join(schemes)} complète est attendue.")
    return value


def _return_url(value: str) -> str:
    return _url(value, ("http", "https"))


def _webhook_url(value: str, info: ValidationInfo) -> str:
    """https; the development profile also accepts http to a loopback host (D14)."""
    development = bool(info.context and info.context.get("development"))
    if development and value.startswith("http://"):
        host = urlsplit(_url(value, ("http",))).hostname
        if host and is_loopback_host(host):
            return value
    return _url(value, ("https",))


def _date(value: object) -> Instant | None:
    if value is None:
        return None
    instant = read_date(value) if isinstance(value, str) else None
    if instant is None:
        raise refuse("Une date ISO-8601 est attendue, par exemple 2026-11-20T10:15:30Z.")
    return instant


#: After a `Field` of lengths, never before: pydantic's own string counts them, and its sentence is a French one.
CLEAN: Final = AfterValidator(_text)
Text = Annotated[str, CLEAN]
Integer = Annotated[int, BeforeValidator(_integer)]
Amount = Annotated[
    int,
    PlainValidator(_amount),
    WithJsonSchema({"type": "number", "minimum": 1, "maximum": 99_999_999, "examples": [5000]}),
]
Url = Annotated[str, Field(max_length=2048, json_schema_extra={"format": "uri"}), CLEAN, AfterValidator(_return_url)]
WebhookUrl = Annotated[
    str, Field(max_length=255, json_schema_extra={"format": "uri"}), CLEAN, AfterValidator(_webhook_url)
]
Date = Annotated[
    Instant | None, PlainValidator(_date), WithJsonSchema({"type": ["string", "null"], "format": "date-time"})
]
CurrencyCode = Annotated[
    Currency,
    BeforeValidator(lambda value: money.DEFAULT_CURRENCY if value is None else value),
    WithJsonSchema({"type": ["string", "null"], "enum": [*money.CURRENCIES, None]}),
]


class Body(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", validate_default=True, use_attribute_docstrings=True)


class Customer(Body):
    """Who pays; required for cards."""

    firstname: Annotated[Annotated[str, Field(max_length=100), CLEAN] | None, Field(examples=["Awa"])] = None
    """Prénom. Obligatoire pour une carte."""
    lastname: Annotated[Annotated[str, Field(max_length=100), CLEAN] | None, Field(examples=["Diallo"])] = None
    """Nom. Obligatoire pour une carte."""
    email: Annotated[
        Annotated[str, Field(max_length=150), CLEAN] | None, Field(json_schema_extra={"format": "email"})
    ] = None
    """Adresse e-mail, qui sert à rapprocher vos clients. Obligatoire pour une carte."""
    address: Annotated[str, Field(max_length=255), CLEAN] | None = None
    """Adresse postale."""
    country: Annotated[
        Annotated[str, Field(max_length=60), CLEAN] | None, Field(json_schema_extra={"default": DEFAULT_COUNTRY})
    ] = None
    """Pays, pour les cartes."""

    @field_validator("email")
    @classmethod
    def _is_email(cls, value: str | None) -> str | None:
        return None if value is None else _email(value)


class ModeBody(Body):
    """A mode is named by its operator code or by its catalogue id (both only if they agree, D1)."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["operator"]}, {"required": ["payment_mode_id"]}]}
    )

    operator: Annotated[Annotated[str, Field(max_length=32), CLEAN] | None, Field(examples=["mtn"])] = None
    """Code de l'opérateur, sans égard à la casse. Obligatoire sans `payment_mode_id` ; si les deux sont envoyés, ils
    doivent désigner le même moyen de paiement."""
    payment_mode_id: Integer | None = None
    """Identifiant du moyen de paiement dans le catalogue. Obligatoire sans `operator`."""

    @field_validator("payment_mode_id")
    @classmethod
    def _one_of_both(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is None and "operator" in info.data and info.data["operator"] is None:
            raise refuse("Indiquez operator ou payment_mode_id.")
        return value


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
    otp: Annotated[str, Field(max_length=16), CLEAN] | None = None
    """Code de validation obtenu par le client auprès de son opérateur. Obligatoire quand le catalogue dit
    `requires_otp`."""
    description: Annotated[
        Annotated[str, Field(max_length=255), CLEAN] | None, Field(json_schema_extra={"default": DEFAULT_DESCRIPTION})
    ] = None
    """Libellé de la commande."""
    external_id: Annotated[
        Annotated[str, Field(min_length=1, max_length=100), CLEAN] | None, Field(examples=["commande-1042"])
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
        return None if value is None else _phone(value)

    @field_validator("metadata", mode="before")
    @classmethod
    def _clean(cls, value: object, info: ValidationInfo) -> object:
        if info.context and info.context.get("suspect") and has_bad_text(value):
            raise refuse(BAD_TEXT)
        return value


class RefundBody(Body):
    """POST /payments/{reference}/refund."""

    reason: Annotated[
        Annotated[str, Field(max_length=255), CLEAN] | None, Field(json_schema_extra={"default": DEFAULT_REASON})
    ] = None
    """Motif, pour vos archives."""


class FeeBody(ModeBody):
    """POST /payment-modes/fees."""

    amount: Amount
    """Le montant que vous voulez encaisser."""


class LinkBody(Body):
    """POST /payment-links."""

    amount: Amount
    """Ce que vous encaissez à chaque paiement, dans la devise par défaut de votre compte."""
    description: Annotated[str, Field(max_length=255), CLEAN]
    """Libellé montré au client."""
    type: Annotated[
        Literal["permanent", "limité"],
        BeforeValidator(lambda value: PERMANENT if value is None else value),
        WithJsonSchema({"type": ["string", "null"], "enum": [*LINK_TYPES, None]}),
    ] = "permanent"
    """`limité` s'écrit avec l'accent, en UTF-8 ; toute autre écriture est refusée."""
    max_uses: Annotated[Integer | None, Field(json_schema_extra={"minimum": 1, "maximum": _MAX_ID})] = None
    """Nombre d'utilisations. Obligatoire pour un lien `limité`, ignoré sinon."""
    starts_at: Date = None
    """Ouverture. Sans fuseau, la date est lue en UTC."""
    expires_at: Date = None
    """Fermeture, postérieure à `starts_at`."""

    @field_validator("max_uses", mode="before")
    @classmethod
    def _only_when_limited(cls, value: object, info: ValidationInfo) -> object:
        return value if info.data.get("type") == LIMITED else None

    @field_validator("max_uses")
    @classmethod
    def _enough_uses(cls, value: int | None, info: ValidationInfo) -> int | None:
        if info.data.get("type") != LIMITED:
            return None
        if value is None:
            raise refuse(f"Ce champ est obligatoire pour un lien de type {LIMITED}.")
        if not 1 <= value <= _MAX_ID:
            raise refuse(f"La valeur doit être comprise entre 1 et {_MAX_ID}.")
        return value

    @field_validator("expires_at")
    @classmethod
    def _in_order(cls, value: Instant | None, info: ValidationInfo) -> Instant | None:
        starts_at = info.data.get("starts_at")
        if value is not None and starts_at is not None and value <= starts_at:
            raise refuse("La fermeture doit être postérieure à l'ouverture (starts_at).")
        return value


class EndpointBody(Body):
    """PUT /webhooks/endpoint. `url` must be present, even when null."""

    url: WebhookUrl | None = Field()
    """Adresse HTTPS publique. Le champ doit être présent ; `null` désactive les webhooks."""
    rotate_secret: Annotated[
        bool,
        BeforeValidator(lambda value: False if value is None else value),
        WithJsonSchema({"type": ["boolean", "null"]}),
    ] = False
    """`true` remplace le secret ; l'ancien cesse aussitôt de valoir."""
