"""A part that was compressed beforehand stands in a content as if all of it had been compressed at once."""

import gzip

import brotli
import pytest

from guichet.server.content_encoding import SharedPart, compress

STYLE = "".join(f".c{number}{{color:#{number:06x}}}" for number in range(600)).encode()
SHARED = SharedPart(STYLE)
CONTENTS = [
    (b"", b""),
    (b"<html>", b"</html>"),
    # What comes after repeats the part, and goes on for longer than a compressor looks back.
    ("<title>é</title>".encode() * 50, STYLE[:3000] + bytes(range(256)) * 400 + STYLE[:3000]),
]


@pytest.mark.parametrize(("before", "after"), CONTENTS)
def test_every_encoding_has_the_whole_content(before: bytes, after: bytes) -> None:
    whole = before + STYLE + after
    assert SHARED.between(before, after, None) == whole
    assert brotli.decompress(SHARED.between(before, after, "br")) == whole
    for _ in range(2):  # The first one leaves nothing behind.
        packed = SHARED.between(before, after, "gzip")
        assert gzip.decompress(packed) == whole
    assert len(packed) < 1.01 * len(compress(whole, "gzip")) + 40
