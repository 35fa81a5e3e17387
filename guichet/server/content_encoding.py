"""Which compression a client accepts (RFC 9110, "Accept-Encoding")."""

import re
from collections.abc import Sequence
from typing import Final

_REFUSED: Final = re.compile(r"q=0(\.0{0,3})?")


def accepted_encoding(accept_encoding: str, supported: Sequence[str]) -> str | None:
    """The first of `supported` that an `Accept-Encoding` header accepts by name; None: send it uncompressed."""
    accepted = {
        name.strip().lower()
        for name, _, quality in (part.partition(";") for part in accept_encoding.split(","))
        if not _REFUSED.fullmatch(quality.replace(" ", "").lower())
    }
    return next((encoding for encoding in supported if encoding in accepted), None)
