"""Every event of the contract as a merchant's server receives it: for payments with all fields, with the fewest, by
card; in the test environment and live, where the simulator stands for the providers.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.fakes.http_server import ReceivedRequest
from tests.frozen.recording import Placeholders, as_json, chosen
from tests.frozen.service import MerchantKeys, RunningService, Settings, running_service

#: Those of the contract, and no others: what an HTTP client adds for the transport is its own business.
HEADERS: Final = (
    "content-type", "user-agent", "x-service-event", "x-service-delivery", "x-service-signature",
)  # fmt: skip
ALL_FIELDS: Final = {
    "amount": 5000,
    "currency": "XOF",
    "operator": "mtn",
    "payment_mode_id": 1,
    "phone_number": "+2290197000000",
    "otp": "123456",
    "description": 'Commande n° 1042 — « pagne » "wax" / 2 pièces',
    "external_id": "commande/1042",
    "return_url": "https://boutique.example/merci?panier=77",
    "metadata": "{metadata}",
    "customer": {
        "firstname": "Awa",
        "lastname": "N'Diaye",
        "email": "awa@example.com",
        "address": "12 rue du Marché",
        "country": "Sénégal",
    },
}
#: Goes out and comes back byte for byte.
METADATA: Final = '{"panier":77,  "prix": 1.50,"é":["à", null, true], "\\u00e9": {}}'
FEWEST_FIELDS: Final = {"amount": 150, "operator": "mtn", "phone_number": "2290197000000"}
CARD: Final = {
    "amount": 87.5,
    "currency": "EUR",
    "operator": "VISA",
    "customer": {"firstname": "Awa", "lastname": "Diallo", "email": "awa@example.com"},
}
#: Scenarios of the simulator: a success after two seconds without a callback, a refusal.
_SUCCEEDS, _DECLINED, _REFUSED = "no_callback", "declined", "refused"
#: Seconds after which the worker polls the provider again.
_ASKED_AFTER: Final = 10
#: Seconds between two readings of the disputes.
_DISPUTES_READ_EVERY: Final = 900


def encoded(body: object) -> bytes:
    return json.dumps(body, ensure_ascii=False).replace('"{metadata}"', METADATA).encode()


@dataclass
class Merchant:
    """A merchant whose webhooks go to the service's receiver."""

    service: RunningService
    merchant: MerchantKeys
    env: str
    secret: str = ""

    async def call(self, method: str, path: str, body: object = None) -> Any:
        """The `data` of a success."""
        raw = None if body is None else encoded(body)
        headers = {"Authorization": f"Bearer {self.merchant.keys[self.env]}"}
        answer = await self.service.call(method, f"/v1{path}", raw, headers)
        assert answer.status in (200, 201), answer.body
        return json.loads(answer.body)["data"]

    async def pass_time(self) -> None:
        self.service.clock.advance(_ASKED_AFTER)
        await self.service.work()

    async def pay(self, body: object) -> Any:
        """A payment, once the worker did what was due."""
        payment = await self.call("POST", "/payments", body)
        await self.pass_time()
        return payment

    async def refund(self, payment: Any, reason: str | None = None) -> None:
        body = {} if reason is None else {"reason": reason}
        await self.call("POST", f"/payments/{payment['reference']}/refund", body)
        await self.service.work()
        await self.pass_time()


async def _full(merchant: Merchant) -> None:
    await merchant.refund(await merchant.pay(ALL_FIELDS), "Article indisponible")


async def _fewest(merchant: Merchant) -> None:
    await merchant.refund(await merchant.pay(FEWEST_FIELDS))


async def _refused_later(merchant: Merchant) -> None:
    await merchant.pay(FEWEST_FIELDS | {"phone_number": "2290197000003"})


async def _callback_url(merchant: Merchant) -> None:
    await merchant.pay(FEWEST_FIELDS | {"callback_url": merchant.service.receiver.url(path="/callback?order=7")})


async def _card(merchant: Merchant) -> None:
    for outcome in ("succeeded", "failed"):
        payment = await merchant.call("POST", "/payments", CARD)
        page = payment["payment_url"].removeprefix(merchant.service.url)
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = await merchant.service.call("POST", page, f"outcome={outcome}".encode(), form)
        assert answer.status == 303, answer.body
        await merchant.service.work()
        if outcome == "succeeded":
            await merchant.refund(payment)


async def _test_event(merchant: Merchant) -> None:
    await merchant.call("POST", "/webhooks/test")
    await merchant.service.work()


async def _live(merchant: Merchant, body: object, provider: str, *, debit: str, credit: str | None = None) -> None:
    await merchant.service.provider_will(debit, "debit", provider)
    payment = await merchant.pay(body)
    if credit is not None:
        await merchant.service.provider_will(credit, "credit", provider)
        await merchant.refund(payment, "Article indisponible")


async def _live_refunded(merchant: Merchant) -> None:
    await _live(merchant, ALL_FIELDS, "mtn", debit=_SUCCEEDS, credit=_SUCCEEDS)


async def _live_refund_refused(merchant: Merchant) -> None:
    await _live(merchant, FEWEST_FIELDS, "mtn", debit=_SUCCEEDS, credit=_REFUSED)


async def _live_declined(merchant: Merchant) -> None:
    await _live(merchant, FEWEST_FIELDS, "mtn", debit=_DECLINED)


async def _live_link(merchant: Merchant) -> None:
    link = {
        "amount": 5000,
        "description": "Cotisation 2026",
        "external_id": "cotisation/2026",
        "metadata": "{metadata}",
    }
    created = await merchant.call("POST", "/payment-links", link)
    await merchant.service.provider_will(_SUCCEEDS, "debit", "mtn")
    await _pay_on_page(merchant, created["url"])


async def _pay_on_page(merchant: Merchant, url: str) -> None:
    page = url.removeprefix(merchant.service.url)
    shown = await merchant.service.call("GET", page)
    token = re.search(rb'name="token" value="([^"]+)"', shown.body)
    assert token is not None
    form = b"operator=mtn&phone_number=0197000000&token=" + token[1]
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await merchant.service.call("POST", page, form, headers)
    assert answer.status == 303, answer.body
    await merchant.pass_time()


async def _checkout_sessions(merchant: Merchant) -> None:
    for name in ("commande/1042", "commande/1043"):
        order = {"amount": 5000, "description": "Commande", "external_id": name, "metadata": "{metadata}"}
        created = await merchant.call("POST", "/checkout-sessions", order)
        if name == "commande/1042":
            await _pay_on_page(merchant, created["url"])
    await merchant.call("POST", f"/checkout-sessions/{created['id']}/expire")
    await merchant.pass_time()


async def _live_card(merchant: Merchant) -> None:
    body = CARD | {"return_url": "https://boutique.example/merci"}
    await _live(merchant, body, "stripe", debit=_SUCCEEDS, credit=_SUCCEEDS)


async def _live_card_disputed(merchant: Merchant) -> None:
    body = CARD | {"return_url": "https://boutique.example/merci"}
    for decision in ("won", "lost"):
        await _live(merchant, body, "stripe", debit=_SUCCEEDS)
        for status in ("needs_response", decision):
            await merchant.service.bank_says(status)
            merchant.service.clock.advance(_DISPUTES_READ_EVERY)
            await merchant.service.work()


CASES: Final[dict[str, tuple[str, Callable[[Merchant], Awaitable[None]]]]] = {
    "Mobile Money with every field, refunded": ("test", _full),
    "Mobile Money with the fewest fields, refunded": ("test", _fewest),
    "Mobile Money, refused after the request": ("test", _refused_later),
    "Mobile Money with an address of its own": ("test", _callback_url),
    "card, both choices, the success refunded": ("test", _card),
    "test event": ("test", _test_event),
    "live Mobile Money with every field, refunded": ("live", _live_refunded),
    "live Mobile Money with the fewest fields, the refund refused": ("live", _live_refund_refused),
    "live Mobile Money, declined by the provider": ("live", _live_declined),
    "live Mobile Money through a payment link": ("live", _live_link),
    "live card, refunded": ("live", _live_card),
    "live card, contested with the bank, won and lost": ("live", _live_card_disputed),
    "live test event": ("live", _test_event),
    "checkout sessions, one paid and one ended": ("test", _checkout_sessions),
}


async def record(settings: Settings) -> str:
    """`webhooks.json`, on a database that has its schema already."""
    async with running_service(settings) as service:
        return as_json([await _recorded(service, name, env, case) for name, (env, case) in CASES.items()])


async def _recorded(
    service: RunningService, name: str, env: str, case: Callable[[Merchant], Awaitable[None]]
) -> dict[str, object]:
    """One case with a merchant of its own; placeholders are numbered anew."""
    merchant = Merchant(service, await service.merchant(), env)
    written = await merchant.call("PUT", "/webhooks/endpoint", {"url": service.receiver.url()})
    merchant.secret = written["secret"]
    service.receiver.received.clear()
    await case(merchant)
    placeholders = Placeholders(base_url=service.url)
    deliveries = [_delivery(received, merchant, placeholders) for received in service.receiver.received]
    return {"case": name, "deliveries": deliveries}


def _delivery(received: ReceivedRequest, merchant: Merchant, placeholders: Placeholders) -> dict[str, object]:
    _check_signature(received, merchant)
    body = placeholders(received.body.decode())
    return {"line": received.line, "headers": chosen(received.headers, HEADERS, placeholders), "body": body}


def _check_signature(received: ReceivedRequest, merchant: Merchant) -> None:
    """The header's form and its HMAC, as the contract has them."""
    moment, _, signature = received.headers["x-service-signature"].partition(",v1=")
    signed = moment.removeprefix("t=").encode() + b"." + received.body
    assert signature == hmac.new(merchant.secret.encode(), signed, hashlib.sha256).hexdigest()
