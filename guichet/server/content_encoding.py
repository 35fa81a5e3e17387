"""Which compression a client accepts (RFC 9110, `Accept-Encoding`), and the compression itself."""

import gzip
import re
import struct
import zlib
from functools import lru_cache
from typing import Final

import brotli

#: In our order of preference.
ENCODINGS: Final = ("br", "gzip")
_ZERO_QUALITY: Final = re.compile(r"q=0(\.0{0,3})?")
#: Of a content that is made for one request: it is 6 % larger than by zlib's and brotli's usual levels, in a third and
#: in half of the time.
_GZIP_LEVEL: Final = 3
_BROTLI_QUALITY: Final = 4
#: Of what stands around a shared part, which is little.
_USUAL_LEVEL: Final = 6
#: Deflate, no name, no time, unknown system (RFC 1952).
_GZIP_HEADER: Final = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"


@lru_cache(maxsize=64)
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
        return bytes(brotli.compress(content, quality=_BROTLI_QUALITY))
    # It looks back no further than there is something, and has a quarter of the usual tables: for a small page their
    # memory is as much work, and no page of ours becomes longer.
    window = min(zlib.MAX_WBITS, max(9, len(content).bit_length()))
    page = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, window | 16, 6)
    return page.compress(content) + page.flush()


@lru_cache(maxsize=32)
def compress_once(content: bytes, encoding: str) -> bytes:
    """As small as can be, which takes long: for content that does not change while the process lives."""
    if encoding == "br":
        return bytes(brotli.compress(content, quality=11))
    return gzip.compress(content, 9, mtime=0)


class SharedPart:
    """What many contents have between parts of their own, such as the style sheet of pages: half of a page, which is
    compressed once. For `gzip`; `br` has no way to continue after a part that was compressed before."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        once = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        #: Ends with a whole byte, so that another block may follow.
        self._deflated = once.compress(content) + once.flush(zlib.Z_SYNC_FLUSH)
        #: As if it had just compressed the part: what comes after may repeat its texts. It is copied for each content,
        #: so it looks 16 KB back and not 32: no page of ours becomes longer, and half of the copy is spared.
        self._following = zlib.compressobj(_USUAL_LEVEL, zlib.DEFLATED, -14, 7, zdict=content)

    def between(self, before: bytes, after: bytes, encoding: str | None) -> bytes:
        """The whole content, compressed if there is an encoding."""
        if encoding == "gzip":
            return self._gzipped(before, after)
        content = b"".join((before, self._content, after))
        return compress(content, encoding) if encoding else content

    def _gzipped(self, before: bytes, after: bytes) -> bytes:
        # A small one: its tables are cleared first, which takes longer than the few hundred bytes before the part.
        first, last = zlib.compressobj(_USUAL_LEVEL, zlib.DEFLATED, -12, 5), self._following.copy()
        checksum = zlib.crc32(after, zlib.crc32(self._content, zlib.crc32(before)))
        length = len(before) + len(self._content) + len(after)
        return b"".join(
            (
                _GZIP_HEADER,
                first.compress(before) + first.flush(zlib.Z_SYNC_FLUSH),
                self._deflated,
                last.compress(after) + last.flush(),
                struct.pack("<LL", checksum, length & 0xFFFFFFFF),
            )
        )
