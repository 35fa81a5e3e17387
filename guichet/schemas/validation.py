"""Request bodies: from their bytes to a model, and every fault at once in French.

The JSON text becomes a dict in which numbers with a fraction are Decimals, so that no amount passes through a float. A
body is a pydantic model: it validates what was sent, and the OpenAPI document describes it. JSON types are strict
(D2), null on an optional field means absent, unknown fields are ignored. Amounts become hundredths. The docstrings of
fields are in French because merchants read them. Source: docs/contract.md, "Requests".
"""

import json
import re
from array import array
from collections.abc import Mapping
from decimal import Decimal
from itertools import accumulate
from typing import Annotated, Any, ClassVar, Final, NoReturn, TypeVar

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

from guichet.domain import money
from guichet.domain.errors import InvalidRequest
from guichet.domain.money import Currency, Hundredths
from guichet.schemas.stated_fields import Misread, misread_faults

Model = TypeVar("Model", bound="Body")

MAX_BODY: Final = 64 * 1024
MAX_DEPTH: Final = 32
_MAX_DIGITS: Final = 40
_MALFORMED: Final = (
    "Le corps de la requête doit être un objet JSON valide, en UTF-8, "
    "de 64 Kio au plus et de 32 niveaux d'imbrication au plus."
)
#: What a bracket adds to the depth, as a signed byte.
_STEPS: Final = bytes.maketrans(b"{[]}", b"\x01\x01\xff\xff")
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"{[]}"))
_BAD_CHARACTER: Final = re.compile("[\0\ud800-\udfff]")


def parse_optional_object(body: bytes) -> dict[str, Any]:
    """As `parse_object`, where no field is required: `null` and `[]`, which PHP makes of an empty array, are no
    body."""
    return {} if body.strip() in (b"null", b"[]") else parse_object(body)


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body holds; an empty body is an empty one. Raises InvalidRequest without details (D6)."""
    if not body.strip():
        return {}
    if len(body) > MAX_BODY or _depth(body) > MAX_DEPTH:
        raise InvalidRequest(_MALFORMED)
    try:
        value = _DECODER.decode(body.decode("utf-8"))
    except (ValueError, ArithmeticError, RecursionError):
        raise InvalidRequest(_MALFORMED) from None
    if not isinstance(value, dict):
        raise InvalidRequest(_MALFORMED)
    return value


def _depth(body: bytes) -> int:
    """How deeply objects and arrays are nested; 0 when there are too few brackets to reach the limit.

    No pattern looks for the strings: one that begins again at each quotation mark of a string without an end takes
    seconds for a body that an attacker made so. Without its escapes a JSON text has strings between every other two
    quotation marks. In what is not JSON, everything is right up to the character at which the decoder stops.
    """
    if body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
        return 0
    outside_strings = b"".join(body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    return max(accumulate(array("b", outside_strings.translate(_STEPS, _NOT_BRACKETS))), default=0)


def _int_or_decimal(text: str) -> int | Decimal:
    """A very long integer becomes a Decimal: Python refuses to convert it, and `metadata` may hold one (D8)."""
    return int(text) if len(text) <= _MAX_DIGITS else _decimal(text)


def _decimal(text: str) -> Decimal:
    """NaN when the exponent is beyond every Decimal: its field refuses it, but the JSON is not malformed."""
    try:
        return Decimal(text)
    except ArithmeticError:
        return Decimal("NaN")


def _refuse_constant(name: str) -> NoReturn:
    """`NaN` and `Infinity` are not JSON."""
    raise ValueError(name)


_DECODER: Final = json.JSONDecoder(parse_float=_decimal, parse_int=_int_or_decimal, parse_constant=_refuse_constant)


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


def refuse(sentence: str) -> PydanticCustomError:
    """The error of one of our own rules. pydantic would read braces in the sentence as placeholders."""
    return PydanticCustomError("guichet", sentence.replace("{", "(").replace("}", ")"))


def amount_or_none(value: object) -> Hundredths | None:
    """A number of a body that can be an `amount`, in hundredths."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    hundredths = money.to_hundredths(value)
    return hundredths if hundredths is not None and money.MIN_AMOUNT <= hundredths <= money.MAX_AMOUNT else None


def _amount(value: object, info: ValidationInfo) -> Hundredths:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise refuse("Un nombre est attendu." if value is not None else "Ce champ est obligatoire.")
    hundredths = amount_or_none(value)
    if hundredths is None:
        raise refuse("Le montant doit être compris entre 1 et 99 999 999, avec deux décimales au plus.")
    return check_decimals(hundredths, info.data["currency"]) if "currency" in info.data else hundredths


def check_decimals(amount: Hundredths, currency: Currency) -> Hundredths:
    """`amount` (hundredths); refused when it has decimals and the currency has none (D3)."""
    if not money.has_whole_units(amount, currency):
        raise refuse(f"Le {currency} n'a pas de décimales : envoyez un montant entier.")
    return amount


def is_bad_text(text: str) -> bool:
    """Whether it holds a NUL or half of a surrogate pair (D7)."""
    return "\0" in text if text.isascii() else _BAD_CHARACTER.search(text) is not None


def _integer(value: object) -> object:
    """Accepts 12.0 as an integer (D2)."""
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < 30 and value == int(value):
        return int(value)
    return value


def _refuse_bad_text(value: str) -> str:
    if is_bad_text(value):
        raise refuse("Ce texte contient un caractère interdit.")
    return value


#: Refuses NUL and halves of surrogate pairs (D7). It stands after a `Field` with lengths, so that pydantic's own string
#: type checks those.
NO_BAD_TEXT: Final = AfterValidator(_refuse_bad_text)
Text = Annotated[str, NO_BAD_TEXT]
Text255 = Annotated[str, Field(max_length=255), NO_BAD_TEXT]
#: Of a person.
Name = Annotated[str, Field(max_length=100), NO_BAD_TEXT]
OperatorCode = Annotated[str, Field(max_length=32), NO_BAD_TEXT]
ExternalId = Annotated[str, Field(min_length=1, max_length=100), NO_BAD_TEXT]
Integer = Annotated[int, BeforeValidator(_integer)]
Amount = Annotated[
    Hundredths,
    PlainValidator(_amount),
    WithJsonSchema({"type": "number", "format": "double", "minimum": 1, "maximum": 99_999_999, "examples": [5000]}),
]
#: null is accepted, as everywhere; the document does not say so here, because generated clients break on a nullable
#: `enum` that has a default.
RequestedCurrency = Annotated[
    Currency,
    BeforeValidator(lambda value: money.DEFAULT_CURRENCY if value is None else value),
    Field(validate_default=False),
]


class Body(BaseModel):
    """The body of a request. `misread`: names that it does not have and that are refused (`stated_fields.py`)."""

    misread: ClassVar[Mapping[str, Misread]] = {}

    model_config = ConfigDict(strict=True, extra="ignore", validate_default=True, defer_build=True)


class ModeBody(Body):
    """A body that names a payment mode by its operator code or by its catalogue id, or by both if they agree (D1).

    The document says so in words: generators lose the type of a body whose schema has an `anyOf`.
    """

    operator: Annotated[OperatorCode | None, Field(examples=["mtn"])] = None
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
