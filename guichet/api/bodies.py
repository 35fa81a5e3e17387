"""The request bodies of the contract as models: they validate, and `/openapi.json` is made from them.

JSON types are strict (D2), null on an optional field means absent, unknown fields are ignored. Amounts become
hundredths, dates Instants.
"""

import re
from datetime import datetime
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

from guichet.clock import Instant, from_datetime
from guichet.domain import money
from guichet.domain.links import LIMITED, PERMANENT
from guichet.domain.money import Currency
from guichet.egress import is_loopback_host
from guichet.wire import has_bad_text

_PHONE: Final = re.compile(r"\+?([0-9]{8,15})")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}([Tt ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?([Zz]|[+-]\d{2}:?\d{2})?)?")
_MAX_ID: Final = 2**31 - 1


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
    try:
        validate_email(value, check_deliverability=False)
    except EmailNotValidError:
        raise refuse("L'adresse e-mail n'est pas valide.") from None
    return value


def _url(value: str, schemes: tuple[str, ...]) -> str:
    try:
        parts = urlsplit(value)
        valid = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0 and not re.search(r"[\s\\]", value)
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
    if not isinstance(value, str) or not (instant := read_date(value)):
        raise refuse("Une date ISO-8601 est attendue, par exemple 2026-11-20T10:15:30Z.")
    return instant


def read_date(text: str) -> Instant | None:
    """An ISO-8601 date or date-time, UTC unless it says otherwise (D13); None if it is not one."""
    if not _DATE.fullmatch(text):
        return None
    try:
        return from_datetime(datetime.fromisoformat(text.upper().replace(",", ".")))
    except (ValueError, OverflowError):
        return None


Text = Annotated[str, AfterValidator(_text)]
Integer = Annotated[int, BeforeValidator(_integer)]
Amount = Annotated[
    int,
    PlainValidator(_amount),
    WithJsonSchema({"type": "number", "minimum": 1, "maximum": 99_999_999, "examples": [5000]}),
]
Url = Annotated[Text, Field(max_length=2048), AfterValidator(_return_url)]
WebhookUrl = Annotated[Text, Field(max_length=255), AfterValidator(_webhook_url)]
Date = Annotated[
    Instant | None, PlainValidator(_date), WithJsonSchema({"type": ["string", "null"], "format": "date-time"})
]
CurrencyCode = Annotated[Currency, BeforeValidator(lambda value: money.DEFAULT_CURRENCY if value is None else value)]


class Body(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", validate_default=True)


class Customer(Body):
    """Who pays; required for cards."""

    firstname: Annotated[Text | None, Field(max_length=100)] = None
    lastname: Annotated[Text | None, Field(max_length=100)] = None
    email: Annotated[Text | None, Field(max_length=150, json_schema_extra={"format": "email"})] = None
    address: Annotated[Text | None, Field(max_length=255)] = None
    country: Annotated[Text | None, Field(max_length=60)] = None

    @field_validator("email")
    @classmethod
    def _is_email(cls, value: str | None) -> str | None:
        return None if value is None else _email(value)


class ModeBody(Body):
    """A mode is named by its operator code or by its catalogue id (both only if they agree, D1)."""

    operator: Annotated[Text | None, Field(max_length=32, examples=["mtn"])] = None
    payment_mode_id: Integer | None = None

    @field_validator("payment_mode_id")
    @classmethod
    def _one_of_both(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is None and "operator" in info.data and info.data["operator"] is None:
            raise refuse("Indiquez operator ou payment_mode_id.")
        return value


class PaymentBody(ModeBody):
    """POST /payments."""

    currency: CurrencyCode = "XOF"
    amount: Amount
    phone_number: Annotated[Text | None, Field(examples=["22997000000"])] = None
    otp: Annotated[Text | None, Field(max_length=16)] = None
    description: Annotated[Text | None, Field(max_length=255)] = None
    external_id: Annotated[Text | None, Field(min_length=1, max_length=100)] = None
    return_url: Url | None = None
    callback_url: WebhookUrl | None = None
    metadata: dict[str, Any] | None = None
    customer: Customer | None = None

    @field_validator("amount")
    @classmethod
    def _whole_units(cls, value: int, info: ValidationInfo) -> int:
        return check_decimals(value, info.data["currency"]) if "currency" in info.data else value

    @field_validator("phone_number")
    @classmethod
    def _digits(cls, value: str | None) -> str | None:
        return None if value is None else _phone(value)

    @field_validator("metadata")
    @classmethod
    def _clean(cls, value: dict[str, Any] | None, info: ValidationInfo) -> dict[str, Any] | None:
        if info.context and info.context.get("suspect") and has_bad_text(value):
            raise refuse("Un texte de cet objet contient un caractère interdit.")
        return value


class RefundBody(Body):
    """POST /payments/{reference}/refund."""

    reason: Annotated[Text | None, Field(max_length=255)] = None


class FeeBody(ModeBody):
    """POST /payment-modes/fees."""

    amount: Amount


class LinkBody(Body):
    """POST /payment-links."""

    amount: Amount
    description: Annotated[Text, Field(max_length=255)]
    type: Annotated[
        Literal["permanent", "limité"], BeforeValidator(lambda value: PERMANENT if value is None else value)
    ] = "permanent"
    max_uses: Integer | None = None
    starts_at: Date = None
    expires_at: Date = None

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
    rotate_secret: Annotated[bool, BeforeValidator(lambda value: False if value is None else value)] = False
