"""JSON out: amounts as exact number text, instants as text, and the envelope of a success and of an error."""

from decimal import Decimal
from typing import Final

import msgspec

from guichet.clock import Instant, iso
from guichet.domain.catalogue import RATE_PLACES
from guichet.domain.errors import GuichetError
from guichet.domain.money import plain
from guichet.schemas.error import error_object
from guichet.schemas.page import MetaObject

JSON: Final = "application/json"
encode: Final = msgspec.json.Encoder().encode


def success(data: object, meta: MetaObject | None = None) -> bytes:
    """The body of a success; `meta` is for lists."""
    answer: dict[str, object] = {"success": True, "data": data}
    if meta is not None:
        answer["meta"] = meta
    return encode(answer)


def failure(error: GuichetError) -> bytes:
    """The body of an error."""
    return encode(error_object(error))


def number(hundredths: int) -> msgspec.Raw:
    """An amount as JSON number text in the main unit: exact, and without a fraction when it is whole (D5)."""
    return msgspec.Raw(plain(hundredths).encode())


def percent(rate: int) -> msgspec.Raw:
    """A fee rate (ten-thousandths of a percent) as JSON number text, in percent."""
    return msgspec.Raw(f"{Decimal(rate).scaleb(-RATE_PLACES).normalize():f}".encode())


def timestamp(instant: Instant | None) -> str | None:
    """An instant in the form of `iso`; None, which becomes null, when there is none."""
    return None if instant is None else iso(instant)
