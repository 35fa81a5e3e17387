"""Requests of real traffic, before they are spoiled, and how a request goes over the wire."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final
from urllib.parse import urlencode

from reliability.fuzz import callbacks
from reliability.fuzz.known import Known

FORM: Final = ("Content-Type", "application/x-www-form-urlencoded")
JSON: Final = ("Content-Type", "application/json")


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


def wire(
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


def _key(known: Known, env: str) -> tuple[tuple[str, str], ...]:
    return (("Authorization", f"Bearer {known[f'{env}_key']}"),)


def writes(random: Random, known: Known) -> Recorded:
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
    return Recorded(method, f"/v1{path}", (*_key(known, env), JSON), members)


def reads(random: Random, known: Known) -> Recorded:
    paths = (
        *("/payments", f"/payments/{known['payment']}", f"/payments/{known['external_id']}", "/refunds"),
        *(f"/refunds/{known['refund']}", "/payment-links", f"/payment-links/{known['link']}", "/payment-modes"),
        *("/balance", "/webhooks/endpoint", "/webhooks/deliveries"),
    )
    return Recorded("GET", f"/v1{random.choice(paths)}", _key(known, random.choice(("test", "live"))))


def pages(random: Random, known: Known) -> Recorded:
    form = {"operator": random.choice(("mtn", "wave_sn", "orange_sn", "VISA")), "phone_number": "22997009009"}
    form |= {"token": form_token(random, known), "otp": "123456", "firstname": "A", "lastname": "B", "email": "a@b.c"}
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
                Recorded("POST", link, (FORM,), form=form),
                Recorded("POST", link, (FORM,), form={**form, "send": "1"}),
            ),
            Recorded("POST", known["card_page"], (FORM,), form={"outcome": random.choice(("succeeded", "x"))}),
            *(
                Recorded("GET", "/docs"),
                Recorded("GET", "/openapi.json"),
                Recorded("GET", "/healthz"),
                Recorded("GET", "/"),
            ),
        )
    )


def form_token(random: Random, known: Known) -> str:
    return random.choice([value for name, value in known.items() if name.startswith("form_token_")])


def callback(random: Random, known: Known) -> Recorded:
    provider = random.choice(callbacks.PROVIDERS)
    body = callbacks.genuine_body(provider, known)
    headers = (JSON, client(random), *callbacks.signature(provider, body).items())
    target = callbacks.target(provider, known, named=random.random() < 0.5)
    return Recorded(random.choice(("POST", "PUT")), target, headers, callbacks.members(provider, known))


def client(random: Random) -> tuple[str, str]:
    """One of many client addresses: callbacks are limited for each of them, whatever the settings."""
    return ("X-Forwarded-For", f"10.{random.randrange(256)}.{random.randrange(256)}.7")


def any_recorded(random: Random, known: Known) -> Recorded:
    return random.choice((writes, writes, reads, pages, callback))(random, known)
