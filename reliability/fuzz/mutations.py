"""Ways to spoil a text, a JSON body or raw bytes, each from a random generator that the caller seeds."""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random
from typing import Final

#: Values as JSON text: absurd numbers, texts that are none, wrong types, what is not JSON at all.
_NUMBERS: Final = (
    *("0", "-0", "-1", "1.5", "0.1", "1e2", "1E+2", "1e-400", "1e400", "-1e400", "1e99999999999999999999"),
    *("99999999", "99999999.01", "2147483648", "9223372036854775807", "9223372036854775808", "9" * 30, "9" * 5000),
    *("5000." + "0" * 60 + "1", "NaN", "Infinity", "-Infinity", "01", "+1", ".5", "5.", "0x10", "1_000"),
)
_TEXTS: Final = (
    *(r'"\u0000"', r'"a\u0000b"', r'"\ud800"', r'"a\udfff"', r'"\ude00\ud83d"', r'"\ud83d\ude00"', r'"\x"', r'"\u12"'),
    *('""', '" "', '"\x00"', '"\t"', '"é"', '"e\u0301"', '"\u202e"', '"\ufeff"', '"\U0010ffff"', '"' + "a" * 256 + '"'),
    *('"' + "é" * 20_000 + '"', '"\'; DROP TABLE payments;--"', '"${7*7}{{7*7}}"', '"<script>alert(1)</script>"'),
    *('"http://[::1"', '"https://a:b@c:99999/"', '"javascript:alert(1)"', r'"http://127.0.0.1/\r\nX: y"', '"//x"'),
    *('"9999-12-31T23:59:59-23:59"', '"0001-01-01T00:00:00+23:59"', '"2026-02-30"', '"VISA"', '"wave_sn"', '"XAF"'),
    *('"limit\u00e9"', '"limite\u0301"', '"22997000000"', '"+229 97 00 00 00"', '"' + "9" * 4000 + '"'),
)
_OTHERS: Final = ("null", "true", "false", "[]", "{}", "[[]]", '{"a":{"a":{}}}', "", "undefined", "'a'", "tru", "[1,]")
_BRACKETS: Final[Sequence[tuple[str, str]]] = (("[", "]"), ('{"a":', "}"))
_DEPTHS: Final[Sequence[int]] = (29, 31, 32, 33, 200, *range(850, 990, 15), 2_000, 30_000)
_KEYS: Final = ('"amount"', '"customer"', r'"\u0000"', r'"\ud800"', '""', '"__proto__"', r'"\u0061mount"', "amount")


def odd_value(random: Random) -> str:
    """One JSON value, or what looks like one."""
    choice = random.random()
    if choice < 0.35:
        return random.choice(_NUMBERS)
    if choice < 0.75:
        return random.choice(_TEXTS)
    if choice < 0.95:
        return random.choice(_OTHERS)
    depth = random.choice(_DEPTHS)
    opening, closing = random.choice(_BRACKETS)
    return opening * depth + "1" + closing * depth


def odd_object(random: Random, members: Mapping[str, object]) -> str:
    """The JSON object of `members` in which some values or names are odd, come twice, or are gone."""
    pairs = [(json.dumps(name), json.dumps(value)) for name, value in members.items()]
    for _ in range(random.randint(1, 3)):
        how = random.random()
        if how < 0.6 and pairs:
            at = random.randrange(len(pairs))
            pairs[at] = (pairs[at][0], odd_value(random))
        elif how < 0.75:
            pairs.insert(random.randint(0, len(pairs)), (random.choice(_KEYS), odd_value(random)))
        elif how < 0.9 and pairs:
            pairs.append((random.choice(pairs)[0], odd_value(random)))
        elif pairs:
            pairs.pop(random.randrange(len(pairs)))
    return "{" + ",".join(f"{name}:{value}" for name, value in pairs) + "}"


def encoded(random: Random, text: str) -> bytes:
    """As UTF-8 that may hold lone surrogates; seldom in another encoding."""
    if random.random() < 0.96:
        return text.encode("utf-8", "surrogatepass")
    return text.encode(random.choice(("utf-16", "utf-32", "latin-1", "utf-8-sig")), "replace")


def _flip(random: Random, raw: bytes) -> bytes:
    spoiled = bytearray(raw)
    for _ in range(random.choice((1, 1, 2, 4, 16))):
        spoiled[random.randrange(len(spoiled))] ^= 1 << random.randrange(8)
    return bytes(spoiled)


def _cut(random: Random, raw: bytes) -> bytes:
    return raw[: random.randrange(len(raw))]


def _insert(random: Random, raw: bytes) -> bytes:
    at = random.randrange(len(raw))
    piece = random.choice(
        (b"\0", b"\r\n", b"\n", b"\r", b"\xff\xfe", b"%00", b" ", b'"', b"\x80" * 9, random.randbytes(8))
    )
    return raw[:at] + piece + raw[at:]


def _repeat(random: Random, raw: bytes) -> bytes:
    start = random.randrange(len(raw))
    piece = raw[start : start + random.choice((1, 8, 64, 512))]
    return raw[:start] + piece * random.choice((2, 2, 3, 40)) + raw[start:]


def _remove(random: Random, raw: bytes) -> bytes:
    start = random.randrange(len(raw))
    return raw[:start] + raw[start + random.choice((1, 2, 8, 32)) :]


_DAMAGES: Final[Sequence[Callable[[Random, bytes], bytes]]] = (_flip, _flip, _cut, _insert, _repeat, _remove)


def damaged(random: Random, raw: bytes) -> bytes:
    """The bytes with bits flipped, a piece cut off, inserted, repeated or removed."""
    return random.choice(_DAMAGES)(random, raw) if raw else raw


def odd_segment(random: Random) -> str:
    """Text for one segment of a path or a query, percent-encoded well or badly."""
    if random.random() < 0.4:
        return "".join(f"%{byte:02X}" for byte in random.randbytes(random.randint(1, 30)))
    return random.choice(
        (
            *("%00", "%ED%A0%80", "%", "%zz", "%2e%2e", "..%2f..%2fetc%2fpasswd", "a;b=c", "~", "*", "'--", "%252F"),
            *("%C4%B1", "%F0%9F%98%80", "9" * 30, "9" * 4000, "-1", "0", "1e9", "\\", "{}", "a" * 3000, "%0d%0aX:y"),
        )
    )


@cache
def gzip_bomb() -> bytes:
    """16 KB that become 16 MB."""
    return gzip.compress(b" " * (16 * 1024 * 1024), 9, mtime=0)
