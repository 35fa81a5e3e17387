"""Hostile requests, each a function of the seed and its number: spoiled recordings of real traffic, and raw bytes.

`probe(seed, number, known)` is the only entrance: the same numbers make the same request again.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final
from urllib.parse import quote, urlencode

from reliability.fuzz import callbacks
from reliability.fuzz.known import Known
from reliability.fuzz.mutations import damaged, encoded, gzip_bomb, odd_object, odd_segment, odd_value

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "PURGE")
_FORM: Final = ("Content-Type", "application/x-www-form-urlencoded")
_JSON: Final = ("Content-Type", "application/json")
_CONTENT_TYPES: Final = (
    "text/plain",
    "application/xml",
    "multipart/form-data; boundary=x",
    "application/json;",
    "\xe9",
)
_QUERY_NAMES: Final = ("status", "external_id", "from", "to", "per_page", "page", "country", "type", "currency", "lang")


@dataclass(frozen=True, slots=True)
class Probe:
    """One request as it goes over the wire.

    `whole`: well framed, so exactly one answer must come. `target` and `method` are empty where the bytes may be
    anything.
    """

    kind: str
    raw: bytes
    method: str = ""
    target: str = ""

    @property
    def whole(self) -> bool:
        return self.method != ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request of real traffic, before it is spoiled. `members`: of its body, where that is a JSON object."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    members: Mapping[str, Any] | None = None
    form: Mapping[str, str] | None = None

    @property
    def body(self) -> bytes:
        if self.members is not None:
            return json.dumps(self.members).encode()
        return urlencode(self.form).encode() if self.form is not None else b""


def probe(seed: int, number: int, known: Known) -> Probe:
    random = Random(f"{seed}:{number}")
    make = random.choices(_MAKERS, _WEIGHTS)[0]
    return make(random, known)


def _wire(
    kind: str,
    method: str,
    target: str,
    headers: Sequence[tuple[str, str]] = (),
    body: bytes = b"",
) -> Probe:
    """A well-framed request."""
    lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", *(f"{name}: {value}" for name, value in headers)]
    if body or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(body)}")
    return Probe(kind, "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + body, method, target)


# --- Real traffic -----------------------------------------------------------------------------------------------------


def _key(known: Known, env: str) -> tuple[tuple[str, str], ...]:
    return (("Authorization", f"Bearer {known[f'{env}_key']}"),)


def _writes(random: Random, known: Known) -> Recorded:
    """A request of the API with a body."""
    order = f"e{random.randrange(10**9)}"
    mobile = {"amount": 5000, "operator": "mtn", "phone_number": "22997000000", "external_id": order}
    customer = {"firstname": "Awa", "lastname": "Diallo", "email": "awa@shop.example", "country": "BJ", "address": "1"}
    card = {"amount": 9000, "operator": "VISA", "return_url": "https://shop.example/x", "customer": customer}
    optional = {"callback_url": f"{known['receiver']}/hook", "metadata": {"a": [1, {"b": 1.0}]}, "description": "é"}
    orange = {"amount": 2500, "operator": "orange_sn", "phone_number": "221771230000", "otp": "123456"}
    link = {"amount": 2000, "description": "Don", "type": "limité", "max_uses": 3, "expires_at": "2030-12-31"}
    env = random.choice(("test", "test", "live"))
    method, path, members = random.choice(
        (
            *(("POST", "/payments", mobile | optional), ("POST", "/payments", card), ("POST", "/payments", orange)),
            ("POST", f"/payments/{known['payment']}/refund", {"reason": "Article indisponible"}),
            ("POST", "/payment-links", link),
            ("POST", "/payment-modes/fees", {"amount": 5000, "operator": "mtn", "payment_mode_id": 1}),
            ("PUT", "/webhooks/endpoint", {"url": f"{known['receiver']}/hook", "rotate_secret": False}),
            ("POST", "/webhooks/test", {}),
        )
    )
    return Recorded(method, f"/v1{path}", (*_key(known, env), _JSON), members)


def _reads(random: Random, known: Known) -> Recorded:
    paths = (
        *("/payments", f"/payments/{known['payment']}", f"/payments/{known['external_id']}", "/refunds"),
        *(f"/refunds/{known['refund']}", "/payment-links", f"/payment-links/{known['link']}", "/payment-modes"),
        *("/balance", "/webhooks/endpoint", "/webhooks/deliveries"),
    )
    return Recorded("GET", f"/v1{random.choice(paths)}", _key(known, random.choice(("test", "live"))))


def _pages(random: Random, known: Known) -> Recorded:
    form = {"operator": random.choice(("mtn", "wave_sn", "orange_sn", "VISA")), "phone_number": "22997009009"}
    form |= {"token": _form_token(random, known), "otp": "123456", "firstname": "A", "lastname": "B", "email": "a@b.c"}
    link, payment = known["link_page"], known["payment_page"]
    return random.choice(
        (
            *(Recorded("GET", link), Recorded("GET", f"{link}/qr"), Recorded("GET", payment)),
            *(
                Recorded("GET", f"{payment}/status"),
                Recorded("GET", known["card_page"]),
                Recorded("GET", known["asset"]),
            ),
            *(
                Recorded("POST", link, (_FORM,), form=form),
                Recorded("POST", link, (_FORM,), form={**form, "send": "1"}),
            ),
            Recorded("POST", known["card_page"], (_FORM,), form={"outcome": random.choice(("succeeded", "x"))}),
            *(
                Recorded("GET", "/docs"),
                Recorded("GET", "/openapi.json"),
                Recorded("GET", "/healthz"),
                Recorded("GET", "/"),
            ),
        )
    )


def _form_token(random: Random, known: Known) -> str:
    return random.choice([value for name, value in known.items() if name.startswith("form_token_")])


def _callback(random: Random, known: Known) -> Recorded:
    provider = random.choice(callbacks.PROVIDERS)
    body = callbacks.genuine_body(provider, known)
    headers = (_JSON, _client(random), *callbacks.signature(provider, body).items())
    target = callbacks.target(provider, known, named=random.random() < 0.5)
    return Recorded(random.choice(("POST", "PUT")), target, headers, callbacks.members(provider, known))


def _client(random: Random) -> tuple[str, str]:
    """One of many client addresses: callbacks are limited for each of them, whatever the settings."""
    return ("X-Forwarded-For", f"10.{random.randrange(256)}.{random.randrange(256)}.7")


def _recorded(random: Random, known: Known) -> Recorded:
    return random.choice((_writes, _writes, _reads, _pages, _callback))(random, known)


# --- Kinds of hostile requests ----------------------------------------------------------------------------------------


def _odd_body(random: Random, known: Known) -> Probe:
    found = _writes(random, known)
    text = odd_object(random, found.members or {})
    if random.random() < 0.05:
        text = odd_value(random)
    body = encoded(random, text)
    if random.random() < 0.1:
        body = damaged(random, body)
    if random.random() < 0.02:
        body = b'{"description":"' + b"a" * random.choice((65_500, 65_540, 200_000)) + b'"}'
    return _wire("JSON bodies", found.method, found.target, found.headers, body)


def _odd_query(random: Random, known: Known) -> Probe:
    found = random.choice((_reads, _reads, _pages))(random, known)
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
    return _wire("queries", found.method, _sendable(target), found.headers, found.body)


def _odd_path(random: Random, known: Known) -> Probe:
    found = _recorded(random, known)
    parts = found.target.split("/")
    at = random.randrange(1, len(parts))
    how = random.random()
    if how < 0.7:
        parts[at] = odd_segment(random)
    elif how < 0.85:
        parts.insert(at, odd_segment(random))
    else:
        parts.append("")
    return _wire("paths", found.method, _sendable("/".join(parts)), found.headers, found.body)


def _sendable(target: str) -> str:
    """Without what would end the request line: the request stays well framed."""
    return "".join(character for character in target if character.isprintable() and character not in ' \\{}<>"^`|#')


def _odd_method(random: Random, known: Known) -> Probe:
    found = _recorded(random, known)
    return _wire("methods", random.choice(_METHODS), found.target, found.headers, found.body)


def _odd_headers(random: Random, known: Known) -> Probe:
    found = _recorded(random, known)
    headers = list(found.headers)
    for _ in range(random.randint(1, 3)):
        headers.insert(random.randint(0, len(headers)), _odd_header(random, known))
    if random.random() < 0.2 and headers:
        headers *= 2
    body = found.body
    if any(value == "gzip" for name, value in headers if name == "Content-Encoding"):
        body = gzip_bomb()
    return _wire("headers", found.method, found.target, headers, body)


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
    found = replace(_pages(random, known), method="POST")
    form = dict(found.form or {"token": _form_token(random, known), "operator": "mtn"})
    for _ in range(random.randint(1, 3)):
        form[random.choice((*form, "x" * 50))] = odd_value(random).strip('"')[:20_000]
    text = urlencode(form, errors="replace")
    if random.random() < 0.3:
        text += "&" + "&".join(f"{odd_segment(random)}={odd_segment(random)}" for _ in range(random.choice((1, 3, 25))))
    headers = [_FORM]
    if random.random() < 0.3:
        headers.append(_odd_header(random, known))
    return _wire("forms", "POST", found.target, headers, text.encode("utf-8", "surrogatepass"))


def _odd_callback(random: Random, known: Known) -> Probe:
    found = _callback(random, known)
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
        headers = [_JSON, _client(random), *callbacks.signature(provider, body).items()]
    elif random.random() < 0.5:
        headers.append(_odd_header(random, known))
    return _wire("callbacks", found.method, found.target, headers, body)


def _damaged_request(random: Random, known: Known) -> Probe:
    found = _recorded(random, known)
    return Probe(
        "damaged recordings", damaged(random, _wire("", found.method, found.target, found.headers, found.body).raw)
    )


def _odd_framing(random: Random, known: Known) -> Probe:
    found = _writes(random, known)
    body = found.body
    head = f"{found.method} {found.target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {known['test_key']}\r\n"
    inner = b"GET /v1/balance HTTP/1.1\r\nHost: x\r\n\r\n"
    size = f"{len(body):x}".encode()
    lines, content = random.choice(
        (
            (f"Content-Length: {len(body)}\r\nTransfer-Encoding: chunked", b"0\r\n\r\n" + inner),
            (f"Transfer-Encoding: chunked\r\nContent-Length: {len(body)}", size + b"\r\n" + body + b"\r\n0\r\n\r\n"),
            ("Transfer-Encoding: chunked, identity", b"0\r\n\r\n"),
            ("Transfer-Encoding: \x0bchunked", b"0\r\n\r\n"),
            ("Transfer-Encoding: xchunked", b"0\r\n\r\n"),
            (f"Content-Length: {len(body)}\r\nContent-Length: {len(body) + 1}", body + b"x"),
            (f"Content-Length: {random.choice((len(body) - 1, len(body) + 9, 0, 10**18))}", body),
            ("Content-Length: " + random.choice(("-1", "+5", "0x10", "1e3", "9" * 40, "٣", "", "5, 5")), body),
            ("Transfer-Encoding: chunked", size + b";ext=" + b"a" * 500 + b"\r\n" + body + b"\r\n0\r\nX: y\r\n\r\n"),
            (
                "Transfer-Encoding: chunked",
                random.choice((b"zz", b"-1", b"f" * 20, b" 5", b"")) + b"\r\n" + body + b"\r\n0\r\n\r\n",
            ),
            (
                "Transfer-Encoding: chunked",
                b"1\r\n" + b"\r\n1\r\n".join(bytes([byte]) for byte in body) + b"\r\n0\r\n\r\n",
            ),
            (f"Content-Length: {len(body)}\r\nUpgrade: websocket\r\nConnection: Upgrade", body),
            (f"Content-Length: {len(body)}\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings", body),
            (f"Content-Length: {len(body)}\r\n X-Folded: y", body),
            (f"Content-Length : {len(body)}", body),
            (f"Content-Length: {len(body)}\r\nX\0Y: z", body),
            (f"Content-Length: {len(body)}\nX-Bare: lf", body),
            (f"Content-Length: {len(body)}", body + inner * random.choice((1, 3, 20))),
        )
    )
    return Probe("framing", head.encode() + lines.encode() + b"\r\n\r\n" + content)


def _odd_line(random: Random, known: Known) -> Probe:
    path = known["link_page"]
    line = random.choice(
        (
            *(f"GET {path}", "GET /", f"GET {path} HTTP/0.9", f"GET {path} HTTP/1.0", f"GET {path} HTTP/2.0", "GET"),
            *(f"GET {path} HTTP/1.1 x", f"get {path} HTTP/1.1", f"GET  {path}  HTTP/1.1", f"GET\t{path}\tHTTP/1.1"),
            *(f"X{'Y' * 300} / HTTP/1.1", "OPTIONS * HTTP/1.1", "CONNECT a.example:443 HTTP/1.1", "CONNECT / HTTP/1.1"),
            *(
                f"GET http://evil.example{path} HTTP/1.1",
                "GET //evil.example/v1/balance HTTP/1.1",
                f"GET {path}#x HTTP/1.1",
            ),
            *(
                "GET v1/balance HTTP/1.1",
                "GET /v1/\xe9 HTTP/1.1",
                "GET /\0 HTTP/1.1",
                "PRI * HTTP/2.0",
                "GET ? HTTP/1.1",
            ),
            *("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "\0\0\0\0", "\r\n\r\n\r\nGET / HTTP/1.1", "{}", "é" * 50),
        )
    )
    hosts = (
        "Host: 127.0.0.1\r\n",
        "",
        "Host: a\r\nHost: b\r\n",
        "Host: [::1\r\n",
        "Host: \xff\r\n",
        "Host: a:99999999\r\n",
    )
    return Probe("request lines", f"{line}\r\n{random.choice(hosts)}\r\n".encode("latin-1", "replace"))


def _noise(random: Random, known: Known) -> Probe:
    return Probe("noise", random.randbytes(random.choice((1, 5, 50, 2_000))) + random.choice((b"", b"\r\n\r\n")))


def _genuine(random: Random, known: Known) -> Probe:
    """Unspoiled: shows that the service still serves, and keeps the payments, links and webhooks coming."""
    found = _recorded(random, known)
    return _wire("genuine", found.method, found.target, found.headers, found.body)


_KINDS: Final[Mapping[Callable[[Random, Known], Probe], int]] = {
    _odd_body: 26,
    _odd_query: 10,
    _odd_path: 9,
    _odd_method: 4,
    _odd_headers: 12,
    _odd_form: 9,
    _odd_callback: 12,
    _damaged_request: 6,
    _odd_framing: 4,
    _odd_line: 2,
    _noise: 1,
    _genuine: 5,
}
_MAKERS: Final = tuple(_KINDS)
_WEIGHTS: Final = tuple(_KINDS.values())
