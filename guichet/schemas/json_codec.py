"""JSON in and out.

In: the body of a request as a dict, and the exact text of one of its members. Numbers with a fraction become Decimals,
so that no amount passes through a float. Out: amounts as exact number text, and instants as text.
"""

import json
import re
from array import array
from decimal import Decimal
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final, NoReturn

import msgspec

from guichet.clock import Instant, iso
from guichet.domain.catalogue import RATE_PLACES
from guichet.domain.errors import InvalidRequest
from guichet.domain.money import plain

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
_WHITESPACE: Final = re.compile(r"[ \t\n\r]*")
#: The escapes by which a JSON text can name a forbidden character: NUL, and either half of a surrogate pair.
_SUSPECT_ESCAPE: Final = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_BAD_CHARACTER: Final = re.compile("[\0\ud800-\udfff]")


def parse_optional_object(body: bytes) -> dict[str, Any]:
    """As `parse_object`, where no field is required: `null` and `[]`, which PHP makes of an empty array, are no "
    "body."""
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


def raw_member(body: bytes, name: str) -> str | None:
    """The JSON text of a top-level member, byte for byte (D8). None when it is absent or null; the last when repeated.

    `body` must have been accepted by `parse_object`.
    """
    text = body.decode()
    found = None
    at = _skip_whitespace(text, text.index("{") + 1)
    while text[at] != "}":
        key, at = _SPAN_DECODER.raw_decode(text, at)
        start = _skip_whitespace(text, _skip_whitespace(text, at) + 1)
        _, at = _SPAN_DECODER.raw_decode(text, start)
        if key == name:
            found = text[start:at]
        at = _skip_whitespace(text, at)
        if text[at] == ",":
            at = _skip_whitespace(text, at + 1)
    return None if found == "null" else found


def is_bad_text(text: str) -> bool:
    """Whether it holds a NUL or half of a surrogate pair (D7)."""
    return "\0" in text if text.isascii() else _BAD_CHARACTER.search(text) is not None


def has_bad_text(value: object) -> bool:
    """Whether a text anywhere in a parsed JSON value is a bad one."""
    match value:
        case str():
            return is_bad_text(value)
        case dict():
            return any(has_bad_text(key) or has_bad_text(item) for key, item in value.items())
        case list() | tuple():
            return any(has_bad_text(item) for item in value)
        case _:
            return False


def raw_has_bad_text(raw: str) -> bool:
    """`has_bad_text` of a JSON text, including the members that a repeated key hides: they are sent out again (D8)."""
    return has_bad_text(json.loads(raw, object_pairs_hook=list, parse_int=str))


def has_suspect_escape(body: bytes) -> bool:
    """Whether `has_bad_text` can be true of the body: a cheap test that most bodies fail."""
    return _SUSPECT_ESCAPE.search(body) is not None


def _skip_whitespace(text: str, at: int) -> int:
    match = _WHITESPACE.match(text, at)
    assert match is not None
    return match.end()


def _integer(text: str) -> int | Decimal:
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


_DECODER: Final = json.JSONDecoder(parse_float=_decimal, parse_int=_integer, parse_constant=_refuse_constant)
#: For finding where a value ends: numbers are not converted.
_SPAN_DECODER: Final = json.JSONDecoder(parse_float=str, parse_int=str)


def _depth(body: bytes) -> int:
    """How deeply objects and arrays are nested; 0 when there are too few brackets to reach the limit.

    No pattern looks for the strings: one that begins anew at each quotation mark of a string without an end takes
    seconds for a body that a stranger wrote so. Without its escapes a JSON text has strings between every other two
    quotation marks. In what is not JSON, everything is right up to the character at which the decoder stops.
    """
    if body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
        return 0
    outside_strings = b"".join(body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    return max(accumulate(array("b", outside_strings.translate(_STEPS, _NOT_BRACKETS))), default=0)


JSON: Final = "application/json"
encode: Final = msgspec.json.Encoder().encode


@lru_cache(maxsize=1024)  # A shop's amounts and their fees come again and again: 5 % of a list.
def number(hundredths: int) -> int | msgspec.Raw:
    """An amount as a JSON number in the main unit: exact, and without a fraction when it is whole (D5)."""
    return hundredths // 100 if not hundredths % 100 else msgspec.Raw(plain(hundredths))


def percent(rate: int) -> msgspec.Raw:
    """A fee rate (ten-thousandths of a percent) as JSON number text, in percent."""
    return msgspec.Raw(f"{Decimal(rate).scaleb(-RATE_PLACES).normalize():f}".encode())


def timestamp(instant: Instant | None) -> str | None:
    """An instant in the form of `iso`; None, which becomes null, when there is none."""
    return None if instant is None else iso(instant)
