"""What exists in the service under trial, so that hostile requests get far: keys, payments, links, forms, pages."""

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from guichet.back_office.merchants import create_merchant
from guichet.bootstrap import service
from guichet.db.postgres.pool import WRITE_CONNECTIONS
from guichet.domain.merchants import Environment
from guichet.settings import Settings
from reliability.fuzz.sockets import Answer, BrokenAnswer, Connection

#: Tokens of payment forms: each of them can create one payment.
_FORMS: Final = 12
#: Merchants of the trial of answers: each has its own share of the webhooks that are on their way.
MERCHANTS: Final = 24

#: Names and values, such as "payment" and a reference; `--replay` puts the values of its own run in their place.
Known = Mapping[str, str]


def keys(seed: int, number: int) -> dict[Environment, str]:
    """The API keys of one merchant: the same in every run of a seed."""
    digest = hashlib.sha256(f"{seed}:{number}".encode()).hexdigest()
    return {"test": f"sk_test_{digest[:32]}", "live": f"sk_live_{digest[:32]}"}


async def create_merchants(settings: Settings, seed: int) -> None:
    async with service(settings) as opened:
        for number in range(MERCHANTS):
            await create_merchant(opened.ctx, f"Boutique {number}", keys=keys(seed, number))


@dataclass
class Caller:
    """A merchant that calls properly. Raises BrokenAnswer when it is answered an error of ours, or cannot read what
    exists."""

    port: int
    key: str

    def __post_init__(self) -> None:
        self._connection = Connection(self.port)

    async def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        content = b"" if body is None else json.dumps(body).encode()
        answer = await self.raw(method, f"/v1{path}", content, f"Authorization: Bearer {self.key}\r\n")
        if answer.status >= 500 or (method == "GET" and answer.status != 200):
            raise BrokenAnswer(f"{method} {path} with {content[:300]!r}: {answer.status} {answer.body[:300]!r}")
        return answer.status, json.loads(answer.body)

    async def raw(self, method: str, target: str, body: bytes = b"", headers: str = "") -> Answer:
        head = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
        return await self._connection.ask(head.encode() + body, method)

    async def made(self, path: str, body: object) -> Any:
        status, answer = await self.call("POST", path, body)
        assert status == 201, answer
        return answer["data"]

    async def close(self) -> None:
        await self._connection.close()


async def prepare(port: int, seed: int, receiver: str) -> Known:
    """Makes one of everything through the service itself. `receiver`: the address of the merchants' server."""
    found: dict[str, str] = {"receiver": receiver}
    for env, key in keys(seed, 0).items():
        found[f"{env}_key"] = key
        caller = Caller(port, key)
        await caller.call("PUT", "/webhooks/endpoint", {"url": f"{receiver}/hook"})
        await caller.close()
    test, live = Caller(port, found["test_key"]), Caller(port, found["live_key"])
    mobile = {"amount": 5000, "operator": "mtn", "phone_number": "22997000000"}
    found["external_id"] = "commande-1042"
    found["payment"] = (await test.made("/payments", {**mobile, "external_id": found["external_id"]}))["reference"]
    refunded = (await test.made("/payments", mobile))["reference"]
    await _succeeded(test, refunded)
    found["refund"] = (await test.made(f"/payments/{refunded}/refund", {}))["reference"]
    card = {"amount": 9000, "operator": "VISA", "external_id": "carte", "return_url": "https://shop.example/merci"}
    customer = {"firstname": "Awa", "lastname": "Diallo", "email": "awa@shop.example"}
    found["card_page"] = _path((await test.made("/payments", {**card, "customer": customer}))["payment_url"])
    found["live_payment"] = (await live.made("/payments", {**mobile, "phone_number": "22997009009"}))["reference"]
    link = await live.made("/payment-links", {"amount": 2000, "description": "Don"})
    found["link"], found["link_page"] = str(link["id"]), _path(link["url"])
    for number in range(_FORMS):
        page = (await test.raw("GET", found["link_page"])).body.decode()
        found[f"form_token_{number}"] = _one(r'name="token" value="([^"]+)"', page)
    form = f"operator=mtn&phone_number=22997009009&token={found['form_token_0']}".encode()
    answer = await test.raw("POST", found["link_page"], form, "Content-Type: application/x-www-form-urlencoded\r\n")
    found["payment_page"] = _path(answer.header("location") or "")
    waiting = (await test.raw("GET", found["payment_page"])).body.decode()
    found["asset"] = _one(r'"(/pay/assets/[^"]+)"', waiting)
    await test.close()
    await live.close()
    return found


async def open_connections(port: int, known: Known) -> None:
    """Writes that wait for each other open all the connections that the service keeps to PostgreSQL: payments share
    two, and those that something else opens later would look like a leak."""
    callers = [Caller(port, known["test_key"]) for _ in range(2 * WRITE_CONNECTIONS)]
    for method, body in (("PUT", {"url": f"{known['receiver']}/hook"}), ("GET", None)):
        await asyncio.gather(*(each.call(method, "/webhooks/endpoint", body) for each in callers))
    for caller in callers:
        await caller.close()


async def _succeeded(caller: Caller, reference: str) -> None:
    async with asyncio.timeout(20):
        while (await caller.call("GET", f"/payments/{reference}"))[1]["data"]["status"] != "succeeded":
            await asyncio.sleep(0.05)


def _path(url: str) -> str:
    return "/" + url.split("/", 3)[3] if "://" in url else url


def _one(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, f"{pattern} is not in the page"
    return found[1]
