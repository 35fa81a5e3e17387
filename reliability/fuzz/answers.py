"""Hostile answers to our own calls: raw bytes that a provider or a merchant's server could send, well-formed or not.

`hostile(random, genuine)` makes one. `genuine`: the raw answer of the simulated provider, which some kinds spoil.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final, Literal

from reliability.fuzz.mutations import damaged, encoded, gzip_bomb, odd_object, odd_value

Ending = Literal["keep", "close", "reset"]
_STATUSES: Final = (
    *(200, 200, 200, 201, 202, 204, 301, 302, 304, 307),
    *(400, 401, 403, 404, 409, 422, 429),
    *(500, 502, 503, 504),
)
_STATUS_TEXTS: Final = ("0", "1", "99", "100", "101", "600", "999", "1000", "-1", "20", "abc", "٢٠٠", "")


@dataclass(frozen=True, slots=True)
class Hostile:
    """What is sent. `pieces` go out one after another, `pause` seconds apart; `status`: 0 where there is none."""

    kind: str
    pieces: tuple[bytes, ...]
    ending: Ending = "close"
    pause: float = 0.0
    status: int = 0

    @property
    def may_refuse(self) -> bool:
        """Whether a provider means by it that it took nothing: a 4xx, or a 500, which some send with a code."""
        return 400 <= self.status <= 500


def plain(status: int, body: bytes, *lines: str, kind: str, ending: Ending = "keep") -> Hostile:
    """A well-framed answer."""
    head = "\r\n".join([f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *lines, "", ""])
    return Hostile(kind, (head.encode("latin-1", "replace") + body,), ending, status=status)


def hostile(random: Random, genuine: bytes) -> Hostile:
    return random.choices(_MAKERS, _WEIGHTS)[0](random, genuine)


def _ending(random: Random) -> Ending:
    endings: tuple[Ending, ...] = ("keep", "close", "reset")
    return random.choice(endings)


def _status_of(raw: bytes) -> int:
    text = raw[9:12]
    return int(text) if text.isdigit() else 0


def _damaged_genuine(random: Random, genuine: bytes) -> Hostile:
    """The provider's true answer with flipped bits, or cut off."""
    raw = damaged(random, genuine)
    return Hostile("damaged genuine answers", (raw,), random.choice(("close", "reset")), status=_status_of(genuine))


def _odd_genuine(random: Random, genuine: bytes) -> Hostile:
    """The provider's true answer, with odd values in some of its members."""
    body = genuine.partition(b"\r\n\r\n")[2]
    try:
        members = json.loads(body)
    except ValueError:
        members = {}
    text = odd_object(random, members if isinstance(members, dict) else {})
    status = _status_of(genuine) or 200
    return plain(
        status, encoded(random, text), "Content-Type: application/json", kind="genuine answers with odd values"
    )


def _odd_json(random: Random, _: bytes) -> Hostile:
    names = ("id", "status", "reference", "amount", "access_token", "code", "expires_in", "transactionId", "data")
    text = odd_object(random, {name: random.choice(("x", 1, None)) for name in random.sample(names, 3)})
    if random.random() < 0.4:
        text = odd_value(random)
    status = random.choice(_STATUSES)
    return plain(
        status, encoded(random, text), "Content-Type: application/json", kind="odd JSON", ending=_ending(random)
    )


def _odd_status(random: Random, _: bytes) -> Hostile:
    text = random.choice(_STATUS_TEXTS) if random.random() < 0.4 else str(random.randrange(1000))
    raw = f"HTTP/1.1 {text} {'r' * random.choice((0, 3, 3000))}\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    status = int(text) if text.isascii() and text.isdigit() else 0
    # After an informational answer our client rightly waits for another one.
    return Hostile("statuses 0 to 999", (raw,), "close" if status < 200 else _ending(random), status=status)


def _wrong_length(random: Random, _: bytes) -> Hostile:
    length = random.choice(("-1", "1e3", "9" * 30, "0x2", "99", "1", "5, 2", "", "+2", "2\r\nContent-Length: 3"))
    raw = f'HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{{"status":"PENDING"}}'.encode()
    return Hostile("wrong lengths", (raw,), random.choice(("close", "reset")), status=200)


def _odd_chunks(random: Random, _: bytes) -> Hostile:
    content = random.choice(
        (
            b"zz\r\nab\r\n0\r\n\r\n",
            b"-1\r\n",
            b"f" * 40 + b"\r\nx",
            b"2\r\nabc\r\n0\r\n\r\n",
            b"2;" + b"e=1;" * 2000 + b"\r\n{}\r\n0\r\n\r\n",
            b"0\r\n" + b"X: y\r\n" * 3000 + b"\r\n",
            b"2\r\n{}\r\n",
            b"\r\n\r\n",
            b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
        )
    )
    length = random.choice(("", "Content-Length: 2\r\n"))
    raw = f"HTTP/1.1 200 OK\r\n{length}Transfer-Encoding: chunked\r\n\r\n".encode() + content
    return Hostile("odd chunks", (raw,), random.choice(("close", "reset")), status=200)


def _noise(random: Random, _: bytes) -> Hostile:
    raw = random.choice(
        (random.randbytes(400), b"\x15\x03\x01\x00\x02\x02\x28", b"SSH-2.0-x\r\n", b"HTTP/0.9\r\n", b"\0" * 3000, b"{}")
    )
    return Hostile("noise and TLS records", (raw,), random.choice(("close", "reset")))


def _half_head(random: Random, _: bytes) -> Hostile:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"
    return Hostile("half heads", (head[: random.randrange(len(head))],), random.choice(("close", "reset")))


def _endless_head(random: Random, _: bytes) -> Hostile:
    line = random.choice((b"X-Padding: " + b"x" * 900 + b"\r\n", b"y" * 1000))
    return Hostile("endless heads", (b"HTTP/1.1 200 OK\r\nX: ", *([line * 40] * 20)), "reset")


def _endless_body(random: Random, _: bytes) -> Hostile:
    first = random.choice((b"Content-Length: 99999999999\r\n\r\n", b"\r\n", b"Transfer-Encoding: chunked\r\n\r\n"))
    piece = b"400\r\n" + b"x" * 1024 + b"\r\n"
    return Hostile("endless bodies", (b"HTTP/1.1 200 OK\r\n" + first, *([piece * 16] * 20)), "reset", status=200)


def _odd_headers(random: Random, _: bytes) -> Hostile:
    lines = random.choice(
        (
            ["Content-Type: application/json; charset=utf-16", "Content-Encoding: gzip"],
            ["Set-Cookie: " + "a" * 6000] * 3,
            ["X\0Y: z"], [" folded: x"], ["No colon here"], [": empty"], ["X: \xff\xfe"],
            ["Connection: close, keep-alive"], ["Transfer-Encoding: gzip, chunked"],
            ["Keep-Alive: timeout=-1, max=1e9"], ["Retry-After: " + "9" * 400],
        )
    )  # fmt: skip
    return plain(random.choice(_STATUSES), b"{}", *lines, kind="odd headers", ending=_ending(random))


def _gzip_bomb(_: Random, __: bytes) -> Hostile:
    return plain(200, gzip_bomb(), "Content-Encoding: gzip", "Content-Type: application/json", kind="gzip bombs")


def _redirect(random: Random, _: bytes) -> Hostile:
    to = random.choice(("http://127.0.0.1:1/", "//x.example", "file:///etc/passwd", "/", "", "http://[::1", "\\\\x"))
    return plain(random.choice((301, 302, 303, 307, 308)), b"", f"Location: {to}", kind="redirects")


def _informational(random: Random, _: bytes) -> Hostile:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * random.choice((1, 50, 3000))
    return Hostile("floods of 1xx", (early, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), status=200)


def _several(random: Random, genuine: bytes) -> Hostile:
    """Several answers at once: the second must not be taken for that of the next request."""
    second = b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n" + b'{"status":"FAILED"}  '
    first = genuine if random.random() < 0.5 else b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
    return Hostile("several answers", (first + second * random.choice((1, 4)),), "keep", status=_status_of(first))


def _silence(random: Random, _: bytes) -> Hostile:
    return Hostile("no answer", (), random.choice(("close", "reset")))


def _trickle(random: Random, genuine: bytes) -> Hostile:
    raw = genuine[:600] or b"HTTP/1.1 200 OK\r\n\r\n"
    step = max(1, len(raw) // 8)
    pieces = tuple(raw[at : at + step] for at in range(0, len(raw), step))
    return Hostile("trickles", pieces, "close", pause=0.1, status=_status_of(raw))


_KINDS: Final[Mapping[Callable[[Random, bytes], Hostile], int]] = {
    _damaged_genuine: 20,
    _odd_genuine: 20,
    _odd_json: 16,
    _odd_status: 8,
    _wrong_length: 5,
    _odd_chunks: 5,
    _noise: 4,
    _half_head: 4,
    _endless_head: 1,
    _endless_body: 1,
    _odd_headers: 5,
    _gzip_bomb: 1,
    _redirect: 3,
    _informational: 2,
    _several: 3,
    _silence: 3,
    _trickle: 1,
}
_MAKERS: Final = tuple(_KINDS)
_WEIGHTS: Final = tuple(_KINDS.values())
