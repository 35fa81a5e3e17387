"""Which compression a client accepts (RFC 9110, `Accept-Encoding`), and the compression itself."""

import gzip
import re
from functools import lru_cache
from typing import Final

import brotli

#: In our order of preference.
ENCODINGS: Final = ("br", "gzip")
_ZERO_QUALITY: Final = re.compile(r"q=0(\.0{0,3})?")


def choose_encoding(accept_encoding: str) -> str | None:
    """The best of `ENCODINGS` that the header names, unless with `q=0`; None when the content is sent as it is."""
    accepted = set()
    for part in accept_encoding.lower().split(","):
        name, _, quality = part.partition(";")
        if not _ZERO_QUALITY.fullmatch(quality.replace(" ", "")):
            accepted.add(name.strip())
    return next((encoding for encoding in ENCODINGS if encoding in accepted), None)


def compress(content: bytes, encoding: str) -> bytes:
    """Soon done: for a page that is made for one request. `encoding` is one of `ENCODINGS`."""
    if encoding == "br":
        return bytes(brotli.compress(content, quality=5))
    return gzip.compress(content, 6, mtime=0)


@lru_cache(maxsize=16)
def compress_once(content: bytes, encoding: str) -> bytes:
    """As small as can be, which takes long: for content that does not change while the process lives."""
    if encoding == "br":
        return bytes(brotli.compress(content, quality=11))
    return gzip.compress(content, 9, mtime=0)
