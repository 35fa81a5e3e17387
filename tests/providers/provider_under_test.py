"""One provider of ours against a scripted HTTP server on a real socket: what result does a response become?"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import structs

from guichet.clock import SECOND, Instant
from guichet.domain.money import Hundredths
from guichet.domain.payments import unstored_payment
from guichet.http_client import HttpClient
from guichet.providers.base import Callback, Charge, Provider, RefundRequest
from guichet.providers.provider_types import PROVIDER_TYPES
from guichet.providers.shared.client import ProviderAccount
from tests.fakes.clock import ManualClock
from tests.fakes.http_server import ReceivedRequest, ScriptedServer
from tests.providers.provider_cases import PROVIDER_CASES

TOKEN = {"access_token": "token-of-the-provider", "expires_in": 3600}
REFERENCE = "5f0c7a10-6a54-4a8e-9d0e-2f9f6d1f6a01"
REFUND = "a3b1c2d3-0f1e-4d2c-8b3a-9e8f7d6c5b4a"
#: The number that paid; another one than the request named.
PAYEE = "22997000009"
#: The same in other countries: Wave and PayDunya pay to numbers of the operator's country only.
PAYEES = {"wave_sn": "221770000009", "orange_bf": "22670000009"}
NOW = Instant(1_795_000_000 * SECOND)

#: A status and a body: bytes as they are, anything else as JSON.
Scripted = tuple[int, object]


def charge(operator: str = "mtn", **changes: Any) -> Charge:
    """A charge of 5 000 XOF, sent just now and not answered yet."""
    of_call = {name: value for name, value in changes.items() if name in Charge.__struct_fields__}
    payment = unstored_payment(
        reference=REFERENCE,
        operator=operator,
        total_amount=Hundredths(5000_00),
        currency="XOF",
        description="Panier n° 12 — l'été",
        created_at=NOW,
        phone_number="22997000001",
        email="awa@example.com",
        firstname="Awa",
        lastname="N'Diaye",
    )
    payment = structs.replace(payment, **{name: value for name, value in changes.items() if name not in of_call})
    notify_url = f"https://pay.example.com/providers/x/callback/{REFERENCE}"
    return structs.replace(Charge(payment, payment.total_amount, notify_url=notify_url), **of_call)


def refund_request(operator: str = "mtn", *, taken: Mapping[str, Any] | None = None, **changes: Any) -> RefundRequest:
    """The whole 5 000 back; `taken` changes the debit."""
    of_debit, payee = charge(operator, **(taken or {})), PAYEES.get(operator, PAYEE)
    known = RefundRequest(REFUND, of_debit, Hundredths(5000_00), "XOF", payee_number=payee, sent_at=NOW)
    return structs.replace(known, **changes)


@dataclass
class ProviderUnderTest:
    provider: Provider
    clock: ManualClock
    answers: list[Scripted] = field(default_factory=list)
    received: list[ReceivedRequest] = field(default_factory=list)
    tokens: int = 0
    #: While it is cleared, the server reads requests and does not answer.
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    def sent(self, number: int = -1) -> Any:
        """The JSON of a request, tokens not counted."""
        return msgspec.json.decode(self.received[number].body)

    def path(self, number: int = -1) -> str:
        return self.received[number].line.split(" ")[1]


@asynccontextmanager
async def provider_under_test(
    provider_type: str, *answers: Scripted, token: object = TOKEN, **settings: str
) -> AsyncIterator[ProviderUnderTest]:
    """A provider whose server gives these responses, the last one again and again; it always gives `token`."""
    found: list[ProviderUnderTest] = []

    async def script(writer: Any, request: ReceivedRequest) -> None:
        one = found[0]
        if "token" in request.line and "transactionstatus" not in request.line:
            one.tokens += 1
            status, body = 200, token
        else:
            one.received.append(request)
            await one.may_answer.wait()
            status, body = one.answers.pop(0) if len(one.answers) > 1 else one.answers[0]
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        writer.write(f"HTTP/1.1 {status} Said\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw)
        await writer.drain()

    clock = ManualClock(NOW)
    async with ScriptedServer(script) as server:
        http_client = HttpClient(loopback=True)
        known = {**PROVIDER_CASES[provider_type].settings, **settings}
        account = ProviderAccount(f"{provider_type}_one", provider_type, server.url("127.0.0.1", ""), known)
        provider = PROVIDER_TYPES[provider_type].build(account, http_client, clock)
        found.append(ProviderUnderTest(provider, clock, list(answers)))
        found[0].may_answer.set()
        try:
            yield found[0]
        finally:
            await http_client.aclose()


def callback(body: object, headers: Mapping[str, str] | None = None, path: str = "/providers/x/callback") -> Callback:
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return Callback("POST", path, {"content-type": "application/json", **(headers or {})}, raw)
