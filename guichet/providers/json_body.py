"""The only decoder of providers' JSON: numbers with a fraction become Decimal, so that no amount becomes a float."""

from decimal import Decimal
from typing import Any, Final

import msgspec

_DECODER: Final = msgspec.json.Decoder(float_hook=Decimal)
#: A body that is nested too deeply is as unreadable as one that is not JSON.
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode_json(body: bytes) -> Any:
    """The value in `body`; None when it is not JSON."""
    try:
        return _DECODER.decode(body)
    except _UNREADABLE:
        return None


def decode_json_object(body: bytes) -> dict[str, Any] | None:
    """The object in `body`; None when it is anything else."""
    value = decode_json(body)
    return value if isinstance(value, dict) else None
