"""Fields of bodies that need more than a type: addresses, dates, and `metadata`, which is kept as it was written
(docs/contract.md, "Requests")."""

import json
import re
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, PlainValidator, ValidationInfo, WithJsonSchema

from guichet.clock import Instant, read_date
from guichet.domain.mails import is_email
from guichet.http_client import is_loopback_host
from guichet.schemas.validation import NO_BAD_TEXT, is_bad_text, refuse

_WHITESPACE: Final = re.compile(r"[ \t\n\r]*")
#: The escapes by which a JSON text can name a forbidden character: NUL, and either half of a surrogate pair.
_SUSPECT_ESCAPE: Final = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
#: For finding where a value ends: numbers are not converted.
_SPAN_DECODER: Final = json.JSONDecoder(parse_float=str, parse_int=str)
#: `urlsplit` drops some of these silently, but the URL is stored as it was sent.
_BAD_URL_CHARACTER: Final = re.compile(r"[\s\\\x00-\x20\x7f]")


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

    A repeated key can hide a bad text. Looking for one is dear, so it is done only where an escape could be one.
    """
    if not isinstance(value, dict):
        raise refuse("Un objet est attendu.")
    body = (info.context or {})["raw"]
    text = raw_member(body, "metadata")
    if _SUSPECT_ESCAPE.search(body) and (has_bad_text(value) or (text is not None and raw_has_bad_text(text))):
        raise refuse("Un texte de cet objet contient un caractère interdit.")
    return text


def raw_member(body: bytes, name: str) -> str | None:
    """The JSON text of a top-level member, byte for byte (D8). None when it is absent or null; the last when repeated.

    `body` must have been accepted by `parse_object`.
    """
    text = body.decode()
    raw = None
    at = _skip_whitespace(text, text.index("{") + 1)
    while text[at] != "}":
        key, at = _SPAN_DECODER.raw_decode(text, at)
        start = _skip_whitespace(text, _skip_whitespace(text, at) + 1)
        _, at = _SPAN_DECODER.raw_decode(text, start)
        if key == name:
            raw = text[start:at]
        at = _skip_whitespace(text, at)
        if text[at] == ",":
            at = _skip_whitespace(text, at + 1)
    return None if raw == "null" else raw


def _skip_whitespace(text: str, at: int) -> int:
    match = _WHITESPACE.match(text, at)
    assert match is not None
    return match.end()


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
    Annotated[str, PlainValidator(_metadata)] | None,
    WithJsonSchema({"additionalProperties": True, "type": ["object", "null"]}),
]
