"""JSON in and out. The API and the webhooks share it, so a resource looks the same everywhere.

In:  `parse_object` turns a body into a dict (floats as Decimal, so that no amount passes through a float) and
     `validate` turns that into a model, with every fault at once, in French, under dotted field names.
Out: one `render_*` per resource of the contract. Amounts leave as exact number text, `metadata` as the very bytes sent.
"""

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, NoReturn, TypeVar
from uuid import UUID

import msgspec
from pydantic import BaseModel, ValidationError

from guichet.clock import Instant, iso
from guichet.domain.catalogue import RATE_PLACES, PaymentMode, Quote
from guichet.domain.errors import GuichetError, InvalidRequest
from guichet.domain.events import EVENTS, Delivery
from guichet.domain.money import plain
from guichet.domain.payment_links import PaymentLink
from guichet.domain.payments import Payment, Refund
from guichet.domain.posting_rules import Wallet

MAX_BODY: Final = 64 * 1024
MAX_DEPTH: Final = 32
_MOST_DIGITS: Final = 40
_MALFORMED: Final = (
    "Le corps de la requête doit être un objet JSON valide, en UTF-8, "
    "de 64 Kio au plus et de 32 niveaux d'imbrication au plus."
)
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
#: Written as an escape in a JSON text: NUL, or half of a surrogate pair.
_SUSPECT: Final = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")

_BAD_TEXT: Final = re.compile("[\0\ud800-\udfff]")

Model = TypeVar("Model", bound=BaseModel)
encode: Final = msgspec.json.Encoder().encode


# --- in ---------------------------------------------------------------------------------------------------------------


def parse_object(body: bytes) -> dict[str, Any]:
    """The object a body holds; an absent body is an empty one. Raises InvalidRequest without details (D6)."""
    if not body.strip():
        return {}
    if len(body) > MAX_BODY or _depth(body) > MAX_DEPTH:
        raise InvalidRequest(_MALFORMED)
    try:
        value = _decoded(body)
    except (ValueError, ArithmeticError, RecursionError):
        raise InvalidRequest(_MALFORMED) from None
    if not isinstance(value, dict):
        raise InvalidRequest(_MALFORMED)
    return value


def raw_member(body: bytes, name: str) -> str | None:
    """The JSON text of a top-level member, byte for byte (D8); None when absent or null, the last one when repeated.

    `body` went through `parse_object`, and both decoders there agree with this one on what is JSON.
    """
    text = body.decode()
    found = None
    at = _skipped(text, text.index("{") + 1)
    while text[at] != "}":
        key, at = _SPANS.raw_decode(text, at)
        start = _skipped(text, _skipped(text, at) + 1)
        _, at = _SPANS.raw_decode(text, start)
        if key == name:
            found = text[start:at]
        at = _skipped(text, at)
        if text[at] == ",":
            at = _skipped(text, at + 1)
    return None if found == "null" else found


_SPACE: Final = re.compile(r"[ \t\n\r]*")
#: Only where values end matters, so that no number is converted.
_SPANS: Final = json.JSONDecoder(parse_float=str, parse_int=str)


def _skipped(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def has_bad_text(value: object) -> bool:
    """Whether a parsed JSON value holds a NUL or a lone surrogate anywhere (D7)."""
    match value:
        case str():
            return "\0" in value if value.isascii() else _BAD_TEXT.search(value) is not None
        case dict():
            return any(has_bad_text(key) or has_bad_text(item) for key, item in value.items())
        case list() | tuple():
            return any(has_bad_text(item) for item in value)
        case _:
            return False


def repeats_bad_text(raw: str) -> bool:
    """`has_bad_text` of a JSON text as a whole, with what a repeated key hides: all of it goes out again (D8)."""
    return has_bad_text(json.loads(raw, object_pairs_hook=list))


def has_suspect_escape(body: bytes) -> bool:
    """A cheap first look before `has_bad_text`."""
    return _SUSPECT.search(body) is not None


def validate(model: type[Model], values: Mapping[str, Any], context: Mapping[str, Any] | None = None) -> Model:
    """Raises InvalidRequest with a sentence for each faulty field, all of them at once."""
    try:
        return model.model_validate(values, context=context)
    except ValidationError as error:
        details: dict[str, list[str]] = {}
        for fault in error.errors(include_url=False):
            field = ".".join(str(part) for part in fault["loc"]) or "body"
            sentence = _sentence(fault["type"], fault.get("ctx", {}), fault["msg"])
            if fault["input"] is None and fault["type"].endswith("_type"):
                sentence = _FRENCH["missing"]
            details.setdefault(field, []).append(sentence)
        raise refusal(details) from None


def refusal(details: dict[str, list[str]]) -> InvalidRequest:
    """One fault speaks for itself; several are announced."""
    sentences = [sentence for field in details.values() for sentence in field]
    if len(sentences) == 1:
        return InvalidRequest(f"{next(iter(details))} : {sentences[0]}", details)
    return InvalidRequest(f"La requête comporte {len(sentences)} erreurs, détaillées champ par champ.", details)


#: pydantic's error types as French sentences; our own rules raise `PydanticCustomError`, whose message is the sentence.
_FRENCH: Final = {
    "missing": "Ce champ est obligatoire.",
    "int_type": "Un nombre entier est attendu.",
    "string_type": "Une chaîne de caractères est attendue.",
    "bool_type": "true ou false est attendu.",
    "model_type": "Un objet est attendu.",
    "model_attributes_type": "Un objet est attendu.",
    "dict_type": "Un objet est attendu.",
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


def _whole(text: str) -> int | Decimal:
    """Python converts no endless integers; as a Decimal each is refused by its field, and free in `metadata` (D8)."""
    return int(text) if len(text) <= _MOST_DIGITS else _fraction(text)


def _fraction(text: str) -> Decimal:
    """An exponent beyond every Decimal is no amount either; it is not malformed JSON."""
    try:
        return Decimal(text)
    except ArithmeticError:
        return Decimal("NaN")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


_EXACT: Final = json.JSONDecoder(parse_float=_fraction, parse_int=_whole, parse_constant=_no_constant)
_FAST: Final = msgspec.json.Decoder(float_hook=_fraction)
_DIGITS: Final = bytes(ord("0") if 0x30 <= byte <= 0x39 else ord(" ") for byte in range(256))
_ENDLESS: Final = b"0" * _MOST_DIGITS


def _decoded(body: bytes) -> object:
    """What `_EXACT` reads. The fast decoder reads the same (held by a test) but for endless integers, which it
    converts, and halves of surrogate pairs, which it refuses: those, and whatever else it refuses, are not its own."""
    if _ENDLESS not in body.translate(_DIGITS):
        try:
            return _FAST.decode(body)
        except ValueError:  # Malformed, or only to it.
            pass
    return _EXACT.decode(body.decode("utf-8"))


def _depth(body: bytes) -> int:
    if body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
        return 0
    deepest = depth = 0
    for byte in _STRING.sub(b"", body):
        if byte in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"}]":
            depth -= 1
    return deepest


def as_uuid(text: str) -> str | None:
    """The canonical form of a UUID written in full; None for any other text."""
    try:
        return str(UUID(text)) if len(text) == 36 else None
    except ValueError:
        return None


# --- out --------------------------------------------------------------------------------------------------------------


def success(data: object, meta: Mapping[str, int] | None = None, **extra: object) -> bytes:
    answer: dict[str, object] = {"success": True, "data": data, **extra}
    if meta is not None:
        answer["meta"] = meta
    return encode(answer)


def failure(error: GuichetError) -> bytes:
    described: dict[str, object] = {"code": error.code, "message": error.message}
    if error.details:
        described["details"] = error.details
    return encode({"success": False, "error": described})


def number(hundredths: int) -> msgspec.Raw:
    """An amount as JSON number text: exact, and whole numbers without a fraction."""
    return msgspec.Raw(plain(hundredths).encode())


def percent(rate: int) -> msgspec.Raw:
    """A fee rate (ten-thousandths of a percent) as JSON number text."""
    return msgspec.Raw(f"{Decimal(rate).scaleb(-RATE_PLACES).normalize():f}".encode())


def render_payment(payment: Payment, mode: PaymentMode | None, payment_url: str | None = None) -> dict[str, object]:
    """A payment object; `payment_url` only in the answer that creates a card payment."""
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
        "payment_mode": None if mode is None else _mode_summary(mode),
        "customer": {
            "firstname": payment.firstname,
            "lastname": payment.lastname,
            "email": payment.email,
            "phone_number": payment.phone_number,
        },
        "payment_url": payment_url,
        "metadata": None if payment.metadata is None else msgspec.Raw(payment.metadata.encode()),
        "created_at": created_at,
        "updated_at": created_at if payment.updated_at == payment.created_at else iso(payment.updated_at),
    }


def _mode_summary(mode: PaymentMode) -> dict[str, object]:
    return {
        "id": mode.id,
        "name": mode.name,
        "type": mode.type,
        "operator": mode.operator,
        "country": mode.country,
        "country_code": mode.country_code,
    }


def render_refund(refund: Refund) -> dict[str, object]:
    return {
        "reference": refund.reference,
        "payment_reference": refund.payment_reference,
        "amount": number(refund.amount),
        "currency": refund.currency,
        "status": refund.status,
        "reason": refund.reason,
        "processed_at": _date(refund.processed_at),
        "created_at": iso(refund.created_at),
    }


def render_link(link: PaymentLink, base: str) -> dict[str, object]:
    """`base` is {link_base}."""
    return {
        "id": link.id,
        "url": f"{base}/{link.path}",
        "type": link.type,
        "amount": number(link.amount),
        "description": link.description,
        "max_uses": link.max_uses,
        "uses_count": link.completed_uses,
        "uses_left": link.uses_left,
        "starts_at": _date(link.starts_at),
        "expires_at": _date(link.expires_at),
        "created_at": iso(link.created_at),
    }


def render_mode(mode: PaymentMode) -> dict[str, object]:
    return {
        **_mode_summary(mode),
        "fee_percent": percent(mode.fee_percent),
        "fee_fixed": number(mode.fee_fixed),
        "requires_otp": mode.requires_otp,
        "logo": mode.logo,
    }


def render_quote(quoted: Quote) -> dict[str, object]:
    return {
        "payment_mode_id": quoted.mode.id,
        "operator": quoted.mode.operator,
        "amount": number(quoted.amount),
        "fee_amount": number(quoted.fee_amount),
        "total_amount": number(quoted.total_amount),
        "fee_percent": percent(quoted.mode.fee_percent),
        "fee_fixed": number(quoted.mode.fee_fixed),
    }


def render_wallet(wallet: Wallet) -> dict[str, object]:
    """`balance_minor` is our own unit: hundredths, in every currency."""
    return {
        "currency": wallet.currency,
        "balance": number(wallet.balance),
        "balance_minor": wallet.balance,
        "status": wallet.status,
        "updated_at": iso(wallet.updated_at),
    }


def render_endpoint(url: str | None, secret: str | None, *, livemode: bool) -> dict[str, object]:
    """Without a configured URL the secret is not shown (D33)."""
    return {"url": url, "secret": secret if url else None, "events": list(EVENTS), "livemode": livemode}


def render_configured(url: str | None, secret: str | None, *, livemode: bool) -> dict[str, object]:
    """What writing an endpoint answers: the contract lists no events here."""
    return {"url": url, "secret": secret if url else None, "livemode": livemode}


def render_delivery(delivery: Delivery) -> dict[str, object]:
    return {
        "id": delivery.reference,
        "event": delivery.event,
        "url": delivery.url,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "response_code": delivery.response_code,
        "created_at": iso(delivery.created_at),
        "delivered_at": _date(delivery.delivered_at),
    }


def webhook_body(reference: str, event: str, data: object, created_at: Instant, *, livemode: bool) -> str:
    """The notification envelope, frozen as text when it is queued."""
    return encode(
        {"id": reference, "event": event, "livemode": livemode, "created_at": iso(created_at), "data": data}
    ).decode()


def _date(instant: Instant | None) -> str | None:
    return None if instant is None else iso(instant)
