"""Hostile requests, each a function of the seed and its number: spoiled recordings of real traffic, and raw bytes.

`probe(seed, number, known)` is the only entrance: the same numbers make the same request again.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Final
from urllib.parse import quote, urlencode

from reliability.fuzz import callbacks
from reliability.fuzz.known import Known
from reliability.fuzz.mutations import damaged, encoded, gzip_bomb, odd_object, odd_segment, odd_value
from reliability.fuzz.raw_requests import noise, odd_framing, odd_line
from reliability.fuzz.recorded import (
    FORM,
    JSON,
    Probe,
    any_recorded,
    callback,
    client,
    form_token,
    pages,
    reads,
    wire,
    writes,
)

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "PURGE")
_CONTENT_TYPES: Final = (
    "text/plain",
    "application/xml",
    "multipart/form-data; boundary=x",
    "application/json;",
    "\xe9",
)
_QUERY_NAMES: Final = ("status", "external_id", "from", "to", "per_page", "page", "country", "type", "currency", "lang")


def probe(seed: int, number: int, known: Known) -> Probe:
    random = Random(f"{seed}:{number}")
    make = random.choices(_MAKERS, _WEIGHTS)[0]
    return make(random, known)


def _odd_body(random: Random, known: Known) -> Probe:
    found = writes(random, known)
    text = odd_object(random, found.members or {})
    if random.random() < 0.05:
        text = odd_value(random)
    body = encoded(random, text)
    if random.random() < 0.1:
        body = damaged(random, body)
    if random.random() < 0.02:
        body = b'{"description":"' + b"a" * random.choice((65_500, 65_540, 200_000)) + b'"}'
    return wire("JSON bodies", found.method, found.target, found.headers, body)


def _odd_query(random: Random, known: Known) -> Probe:
    found = random.choice((reads, reads, pages))(random, known)
    pairs = []
    for _ in range(random.randint(1, 5)):
        name = random.choice(_QUERY_NAMES) if random.random() < 0.8 else odd_segment(random)
        value = (
            odd_segment(random)
            if random.random() < 0.5
            else quote(odd_value(random).strip('"')[:3000], errors="replace")
        )
        pairs.append(f"{name}={value}")
    if random.random() < 0.02:
        pairs *= random.choice((50, 500))
    target = f"{found.target}?{random.choice('&&&;').join(pairs)}"[:30_000]
    return wire("queries", found.method, _sendable(target), found.headers, found.body)


def _odd_path(random: Random, known: Known) -> Probe:
    found = any_recorded(random, known)
    parts = found.target.split("/")
    at = random.randrange(1, len(parts))
    how = random.random()
    if how < 0.7:
        parts[at] = odd_segment(random)
    elif how < 0.85:
        parts.insert(at, odd_segment(random))
    else:
        parts.append("")
    return wire("paths", found.method, _sendable("/".join(parts)), found.headers, found.body)


def _sendable(target: str) -> str:
    """Without what would end the request line: the request stays well framed."""
    return "".join(character for character in target if character.isprintable() and character not in ' \\{}<>"^`|#')


def _odd_method(random: Random, known: Known) -> Probe:
    found = any_recorded(random, known)
    return wire("methods", random.choice(_METHODS), found.target, found.headers, found.body)


def _odd_headers(random: Random, known: Known) -> Probe:
    found = any_recorded(random, known)
    headers = list(found.headers)
    for _ in range(random.randint(1, 3)):
        headers.insert(random.randint(0, len(headers)), _odd_header(random, known))
    if random.random() < 0.2 and headers:
        headers *= 2
    body = found.body
    if any(value == "gzip" for name, value in headers if name == "Content-Encoding"):
        body = gzip_bomb()
    return wire("headers", found.method, found.target, headers, body)


def _odd_header(random: Random, known: Known) -> tuple[str, str]:
    key = known["test_key"]
    texts = (
        "",
        " ",
        "a" * 4000,
        "\xff\xfe",
        "é",
        "\u2028",
        "a\tb",
        "0",
        "-1",
        "NaN",
        "*/*;q=9e9",
        "x,y,,z",
        "%00",
        "..",
    )
    name, values = random.choice(
        (
            (
                "Authorization",
                ("", "Bearer", "Bearer ", "Basic eDp5", f"bearer {key}", f"Bearer  {key}", f"Bearer {key} x"),
            ),
            ("Authorization", (f"Bearer {key[:-1]}", f"Bearer {key.upper()}", "Bearer sk_test_" + "9" * 3000, *texts)),
            ("Content-Type", (*_CONTENT_TYPES, *texts)),
            ("Content-Encoding", ("gzip", "br", "deflate", "identity", "zstd", "gzip, gzip")),
            ("Accept-Encoding", ("gzip;q=0", "br;q=x", "*", ",,,", "gzip" * 500, *texts)),
            ("Accept-Language", ("xx", "fr;q=1e400", "en-" + "x" * 3000, "*;q=", *texts)),
            ("X-Forwarded-For", ("::1%eth0", "1.2.3.4.5", "unknown", ",,,", "::ffff:1.2.3.4", "9" * 300, *texts)),
            ("X-Request-Id", ("../../etc", "a" * 65, "é" * 20, "x\ty", *texts)),
            ("Origin", ("null", "https://evil.example", *texts)),
            ("Sec-Fetch-Site", ("cross-site", "same-origin", *texts)),
            ("Expect", ("100-continue", "200-maybe")),
            ("Connection", ("close", "keep-alive, close", "TE", "X-Forwarded-For")),
            ("Cookie", ("a=b; c", "=" * 2000, *texts)),
            ("Range", ("bytes=0-", "bytes=9-1", "bytes=" + "0-1," * 300)),
            ("If-None-Match", ("*", '"x"', *texts)),
            ("X-" + "n" * random.choice((1, 200)), texts),
        )
    )
    return name, random.choice(values)


def _odd_form(random: Random, known: Known) -> Probe:
    found = replace(pages(random, known), method="POST")
    form = dict(found.form or {"token": form_token(random, known), "operator": "mtn"})
    for _ in range(random.randint(1, 3)):
        form[random.choice((*form, "x" * 50))] = odd_value(random).strip('"')[:20_000]
    text = urlencode(form, errors="replace")
    if random.random() < 0.3:
        text += "&" + "&".join(f"{odd_segment(random)}={odd_segment(random)}" for _ in range(random.choice((1, 3, 25))))
    headers = [FORM]
    if random.random() < 0.3:
        headers.append(_odd_header(random, known))
    return wire("forms", "POST", found.target, headers, text.encode("utf-8", "surrogatepass"))


def _odd_callback(random: Random, known: Known) -> Probe:
    found = callback(random, known)
    assert found.members is not None
    body = encoded(random, odd_object(random, found.members))
    if random.random() < 0.25:
        body = damaged(random, found.body)
    if random.random() < 0.02:
        body = b'{"reference":"' + b"a" * random.choice((60_000, 70_000)) + b'"}'
    headers = list(found.headers)
    if random.random() < 0.6:  # Signed as it is: it must be refused for what it says.
        provider = next(
            name for name in callbacks.PROVIDERS if callbacks.target(name, known, named=False) in found.target
        )
        headers = [JSON, client(random), *callbacks.signature(provider, body).items()]
    elif random.random() < 0.5:
        headers.append(_odd_header(random, known))
    return wire("callbacks", found.method, found.target, headers, body)


def _damaged_request(random: Random, known: Known) -> Probe:
    found = any_recorded(random, known)
    return Probe(
        "damaged recordings", damaged(random, wire("", found.method, found.target, found.headers, found.body).raw)
    )


def _genuine(random: Random, known: Known) -> Probe:
    """Unspoiled: shows that the service still serves, and keeps the payments, links and webhooks coming."""
    found = any_recorded(random, known)
    return wire("genuine", found.method, found.target, found.headers, found.body)


_KINDS: Final[Mapping[Callable[[Random, Known], Probe], int]] = {
    _odd_body: 26,
    _odd_query: 10,
    _odd_path: 9,
    _odd_method: 4,
    _odd_headers: 12,
    _odd_form: 9,
    _odd_callback: 12,
    _damaged_request: 6,
    odd_framing: 4,
    odd_line: 2,
    noise: 1,
    _genuine: 5,
}
_MAKERS: Final = tuple(_KINDS)
_WEIGHTS: Final = tuple(_KINDS.values())
