"""Which payment or payout a callback of PayDunya names (docs/providers/paydunya.md, "Callbacks").

It has come in five forms: a form with `data[invoice][token]=…`, a form whose `data` is JSON text, JSON with and without
`data`, and flat fields. None is signed: the digest in it is the same in all of them.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from guichet.providers.base import Callback, CallbackReference
from guichet.providers.paydunya.responses import as_token
from guichet.providers.shared.fields import clean_text, decode_json, text_or_none, value_at
from guichet.providers.shared.signatures import constant_time_equal

#: Fields of a form that are read; a real one has about forty.
_MAX_FIELDS: Final = 200


def read_callback(callback: Callback, master_key: str) -> CallbackReference | None:
    """None when it is not readable. Before it takes a payout, PayDunya tries the address with an empty body: that is
    about whatever the address names."""
    if not callback.body.strip():
        return CallbackReference()
    fields = _fields(callback.body)
    if fields is None:
        return None
    reference = text_or_none(value_at(fields, "custom_data", "reference")) or text_or_none(fields.get("disburse_id"))
    token = as_token(text_or_none(value_at(fields, "invoice", "token")) or text_or_none(fields.get("token")))
    return CallbackReference(reference, token if _knows(fields, master_key) else None)


def _knows(fields: Mapping[str, Any], master_key: str) -> bool:
    """Whether the sender saw a message of PayDunya once. The token of anybody else is not even asked about."""
    expected = hashlib.sha512(master_key.encode()).hexdigest()
    return constant_time_equal(expected, text_or_none(fields.get("hash")) or "")


def _fields(body: bytes) -> dict[str, Any] | None:
    """The fields of the message, those in `data` before those beside it."""
    message = decode_json(body)
    if not isinstance(message, dict):
        message = _form(body)
    data = message.get("data")
    if isinstance(data, str):
        data = decode_json(data.encode()) or decode_json(unquote(data).encode())
    nested = data if isinstance(data, dict) else {}
    return {**message, **nested} if message else None


def _form(body: bytes) -> dict[str, Any]:
    """A form in PHP's way of writing: `data[invoice][token]=x` is {"data": {"invoice": {"token": "x"}}}."""
    form: dict[str, Any] = {}
    try:
        pairs = parse_qsl(body.decode(), max_num_fields=_MAX_FIELDS)
    except ValueError:  # Not UTF-8, or too many fields.
        return {}
    for name, value in pairs:
        first, *rest = name.replace("]", "").split("[")
        place = form
        for part in [first, *rest][:-1]:
            inner = place.setdefault(part, {})
            place = inner if isinstance(inner, dict) else {}
        place[[first, *rest][-1]] = clean_text(value)
    return form
