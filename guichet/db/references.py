"""References of payments, refunds and deliveries: UUIDs that rise with time, so an index grows at one end."""

import re
from os import urandom
from typing import Final
from uuid import UUID

from guichet.clock import Instant

_VARIANT: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
_CANONICAL: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def new_reference(now: Instant) -> str:
    """48 bits of milliseconds, then 74 random bits, in the form of a UUID version 4, which providers ask for.

    Rows that are created together are then stored together. With purely random keys every creation would touch another
    page of each index, and cost more the more payments there are.
    """
    digits = ((now // 1000).to_bytes(6) + urandom(10)).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-{_VARIANT[digits[15]]}{digits[16:19]}-{digits[19:31]}"


def parse_reference(text: str) -> str | None:
    """The canonical form of a UUID written in full; None for any other text. What has that form is ours as a rule, and
    `UUID` takes ten times as long to see it."""
    if _CANONICAL.fullmatch(text):
        return text
    try:
        return str(UUID(text)) if len(text) == 36 else None
    except ValueError:
        return None
