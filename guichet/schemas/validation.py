"""Request bodies: their base class, the types of their fields, and every fault at once in French.

A body is a pydantic model: it validates what was sent, and the OpenAPI document describes it. JSON types are strict
(D2), null on an optional field means absent, unknown fields are ignored. Amounts become hundredths, dates Instants. The
docstrings of fields are in French because merchants read them. Source: docs/contract.md, "Requests".
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Final, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)
from pydantic_core import PydanticCustomError

from guichet.clock import Instant, read_date
from guichet.domain import money
from guichet.domain.errors import InvalidRequest
from guichet.domain.mails import is_email
from guichet.domain.money import Currency, Hundredths
from guichet.http_client import is_loopback_host
from guichet.schemas.json_codec import has_bad_text, is_bad_text, raw_has_bad_text, raw_member
from guichet.schemas.stated_fields import Misread, misread_faults

Model = TypeVar("Model", bound="Body")


def validate(model: type[Model], values: Mapping[str, Any], context: Mapping[str, Any] | None = None) -> Model:
    """`values` as a `model`. Raises InvalidRequest with a French sentence for every fault, under dotted field names."""
    misread = {} if model.misread.keys().isdisjoint(values) else misread_faults(model.misread, values)
    try:
        body = model.model_validate(values, context=context)
    except ValidationError as error:
        details: dict[str, list[str]] = {}
        for fault in error.errors(include_url=False):
            field = ".".join(str(part) for part in fault["loc"]) or "body"
            sentence = _sentence(fault["type"], fault.get("ctx", {}), fault["msg"])
            if fault["input"] is None and fault["type"].endswith("_type"):
                sentence = _FRENCH["missing"]
            details.setdefault(field, []).append(sentence)
        raise invalid_request({**details, **misread}) from None
    if misread:
        raise invalid_request(misread)
    return body


def invalid_request(details: dict[str, list[str]]) -> InvalidRequest:
    """The error for these faults (field → sentences). Its message is the only fault, or says how many there are."""
    sentences = [sentence for field in details.values() for sentence in field]
    if len(sentences) == 1:
        return InvalidRequest(f"{next(iter(details))} : {sentences[0]}", details)
    return InvalidRequest(f"La requête comporte {len(sentences)} erreurs, détaillées champ par champ.", details)


#: pydantic's error types as French sentences; for our own rules see `refuse`.
_FRENCH: Final = {
    "missing": "Ce champ est obligatoire.",
    "int_type": "Un nombre entier est attendu.",
    "string_type": "Une chaîne de caractères est attendue.",
    "bool_type": "true ou false est attendu.",
    "model_type": "Un objet est attendu.",
    "model_attributes_type": "Un objet est attendu.",
    "dict_type": "Un objet est attendu.",
    "list_type": "Une liste est attendue.",
    "string_unicode": "Ce texte contient un caractère interdit.",
    "string_too_long": "{max_length} caractères au maximum.",
    "string_too_short": "Ce champ ne peut pas être vide.",
    "too_long": "{max_length} caractères au maximum.",
    "too_short": "Ce champ ne peut pas être vide.",
    "greater_than_equal": "La valeur minimale est {ge}.",
    "less_than_equal": "La valeur maximale est {le}.",
    "literal_error": "Valeurs acceptées : {expected}.",
}


def _sentence(kind: str, context: Mapping[str, Any], message: str) -> str:
    if template := _FRENCH.get(kind):
        facts = {name: str(value).replace(" or ", " ou ") for name, value in context.items()}
        return template.format(**facts)
    return message


#: `urlsplit` drops some of these silently, but the URL is stored as it was sent.
_BAD_URL_CHARACTER: Final = re.compile(r"[\s\\\x00-\x20\x7f]")


def refuse(sentence: str) -> PydanticCustomError:
    """The error of one of our own rules. pydantic would read braces in the sentence as placeholders."""
    return PydanticCustomError("guichet", sentence.replace("{", "(").replace("}", ")"))


def amount_or_none(value: object) -> Hundredths | None:
    """A number of a body that can be an `amount`, in hundredths."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    hundredths = money.to_hundredths(value)
    return hundredths if hundredths is not None and money.MIN_AMOUNT <= hundredths <= money.MAX_AMOUNT else None


def _amount(value: object) -> Hundredths:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise refuse("Un nombre est attendu." if value is not None else "Ce champ est obligatoire.")
    hundredths = amount_or_none(value)
    if hundredths is None:
        raise refuse("Le montant doit être compris entre 1 et 99 999 999, avec deux décimales au plus.")
    return hundredths


def check_decimals(amount: Hundredths, currency: Currency) -> Hundredths:
    """`amount` (hundredths); refused when it has decimals and the currency has none (D3)."""
    if not money.has_whole_units(amount, currency):
        raise refuse(f"Le {currency} n'a pas de décimales : envoyez un montant entier.")
    return amount


def _integer(value: object) -> object:
    """Accepts 12.0 as an integer (D2)."""
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < 30 and value == int(value):
        return int(value)
    return value


def _refuse_bad_text(value: str) -> str:
    if is_bad_text(value):
        raise refuse("Ce texte contient un caractère interdit.")
    return value


def check_email(value: str) -> str:
    """An e-mail address, as it was sent; its domain is not looked up."""
    if not is_email(value):
        raise refuse("L'adresse e-mail n'est pas valide.")
    return value


def _url(value: str, schemes: tuple[str, ...]) -> str:
    try:
        parts = urlsplit(value)
        valid = (
            parts.scheme in schemes
            and bool(parts.hostname)
            and parts.port != 0
            and not _BAD_URL_CHARACTER.search(value)
        )
    except ValueError:
        valid = False
    if not valid:
        raise refuse(f"Une adresse {' ou '.join(schemes)} complète est attendue.")
    return value


def _return_url(value: str) -> str:
    return _url(value, ("http", "https"))


def _webhook_url(value: str, info: ValidationInfo) -> str:
    """https only; the development profile also accepts http to a loopback host (D14)."""
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


def _metadata(value: object, info: ValidationInfo) -> str | None:
    """The JSON text of `metadata`, as the body in the context has it, to be stored (D8).

    The context says `suspect` when the body has an escape that could be bad text (`has_suspect_escape`): a repeated key
    can hide one.
    """
    if value is None:
        return None
    if not isinstance(value, dict):
        raise refuse("Un objet est attendu.")
    context = info.context or {}
    text = raw_member(context["raw"], "metadata")
    if context["suspect"] and (has_bad_text(value) or (text is not None and raw_has_bad_text(text))):
        raise refuse("Un texte de cet objet contient un caractère interdit.")
    return text


#: Refuses NUL and halves of surrogate pairs (D7). It stands after a `Field` with lengths, so that pydantic's own string
#: type checks those.
NO_BAD_TEXT: Final = AfterValidator(_refuse_bad_text)
Text = Annotated[str, NO_BAD_TEXT]
Integer = Annotated[int, BeforeValidator(_integer)]
Amount = Annotated[
    Hundredths,
    PlainValidator(_amount),
    WithJsonSchema({"type": "number", "format": "double", "minimum": 1, "maximum": 99_999_999, "examples": [5000]}),
]
Url = Annotated[
    str, Field(max_length=2048, json_schema_extra={"format": "uri"}), NO_BAD_TEXT, AfterValidator(_return_url)
]
WebhookUrl = Annotated[
    str, Field(max_length=255, json_schema_extra={"format": "uri"}), NO_BAD_TEXT, AfterValidator(_webhook_url)
]
Date = Annotated[
    Instant | None, PlainValidator(_date), WithJsonSchema({"type": ["string", "null"], "format": "date-time"})
]
#: JSON text.
Metadata = Annotated[
    str | None,
    PlainValidator(_metadata),
    WithJsonSchema({"additionalProperties": True, "type": ["object", "null"]}),
]
#: null is accepted, as everywhere; the document does not say so here, because generated clients break on a nullable
#: `enum` that has a default.
CurrencyCode = Annotated[Currency, BeforeValidator(lambda value: money.DEFAULT_CURRENCY if value is None else value)]


class Body(BaseModel):
    """The body of a request. `misread`: names that it does not have and that are refused (`stated_fields.py`)."""

    misread: ClassVar[Mapping[str, Misread]] = {}

    model_config = ConfigDict(strict=True, extra="ignore", validate_default=True, defer_build=True)


class ModeBody(Body):
    """A body that names a payment mode by its operator code or by its catalogue id, or by both if they agree (D1).

    The document says so in words: generators lose the type of a body whose schema has an `anyOf`.
    """

    operator: Annotated[Annotated[str, Field(max_length=32), NO_BAD_TEXT] | None, Field(examples=["mtn"])] = None
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
