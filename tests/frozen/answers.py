"""The answers of every endpoint of the contract, and one of each error code: a developer's session with the service."""

import json
from dataclasses import dataclass, field
from typing import Any, Final

from tests.frozen.recording import Placeholders, as_json, chosen
from tests.frozen.service import MerchantKeys, RunningService, Settings, running_service
from tests.frozen.webhooks import ALL_FIELDS, CARD, FEWEST_FIELDS, encoded

HEADERS: Final = (
    "content-type", "content-length", "allow", "www-authenticate", "retry-after", "x-ratelimit-remaining",
    "x-request-id",
)  # fmt: skip
#: Requests a minute for the last calls of the recording; the others have no limit.
RATE_LIMIT: Final = 2


@dataclass
class Session:
    """Calls in order; each is recorded under a name."""

    service: RunningService
    merchant: MerchantKeys
    env: str = "test"
    recorded: list[dict[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._placeholders = Placeholders(
            base_url=self.service.url,
            simulator_url=self.service.simulator_url,
            receiver_url=self.service.receiver.url(),
        )

    async def call(self, name: str, method: str, path: str, body: Any = None, *, key: str | None = None) -> Any:
        """The decoded answer. `body`: bytes as they are, else as JSON; `key` is the merchant's own unless given."""
        raw = body if body is None or isinstance(body, bytes) else encoded(body)
        key = self.merchant.keys[self.env] if key is None else key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        answer = await self.service.call(method, path, raw, headers)
        request: dict[str, object] = {"key": self.env if key else None, "line": f"{method} {self._placeholders(path)}"}
        if raw is not None:
            request["body"] = self._placeholders(raw.decode("utf-8", "backslashreplace"))
        shown = chosen(answer.headers, HEADERS, self._placeholders)
        if "retry-after" in shown:
            assert 1 <= int(shown["retry-after"]) <= 60
            shown["retry-after"] = "{seconds}"
        text = self._placeholders(answer.body.decode())
        if answer.body != text.encode():
            shown.pop("content-length")  # It counts what placeholders stand for.
        self.recorded.append(
            {"case": name, "request": request, "status": answer.status, "headers": shown, "body": text}
        )
        return json.loads(answer.body)

    async def pay(self, name: str, body: Any) -> str:
        """A payment's reference, once the worker did what was due."""
        created = await self.call(name, "POST", "/v1/payments", body)
        await self.later()
        reference: str = created["data"]["reference"]
        return reference

    async def later(self, seconds: float = 10) -> None:
        self.service.clock.advance(seconds)
        await self.service.work()


async def record(settings: Settings) -> str:
    """`answers.json`, on a database that has its schema already."""
    async with running_service(settings) as service:
        session = Session(service, await service.merchant())
        for part in (_payments, _refunds, _lists, _catalogue, _webhooks, _live, _links, _faults, _refusals):
            await part(session)
        await service.damage()
        await session.call("with a broken database", "GET", "/v1/payments")
    async with running_service(settings, RATE_LIMIT) as service:
        limited = Session(service, await service.merchant())
        for name in ("first of two requests a minute", "second of two", "one too many"):
            await limited.call(name, "GET", "/v1/balance")
    return as_json([*session.recorded, *limited.recorded])


async def _payments(session: Session) -> None:
    reference = await session.pay("payment with every field", ALL_FIELDS)
    await session.call("payment created again", "POST", "/v1/payments", ALL_FIELDS)
    await session.call("payment by reference", "GET", f"/v1/payments/{reference}")
    await session.call("payment by external_id", "GET", "/v1/payments/commande%2F1042")
    await session.pay("payment with the fewest fields", FEWEST_FIELDS | {"phone_number": "2290197000002"})
    await session.pay("payment that fails", FEWEST_FIELDS | {"phone_number": "2290197000003"})
    await session.pay("payment by card", CARD | {"return_url": "https://boutique.example/merci"})
    null = dict.fromkeys(("payment_mode_id", "otp", "description", "external_id", "metadata", "customer"))
    await session.pay("payment with nulls, by mode", FEWEST_FIELDS | null | {"operator": None, "payment_mode_id": 8})


async def _refunds(session: Session) -> None:
    path = "/v1/payments/commande%2F1042/refund"
    await session.call("proposed refund", "POST", f"{path}-proposal", {"reason": "Abîmé"})
    refund = await session.call("refund", "POST", path, {"reason": "Article indisponible"})
    await session.call("proposed refund that was made", "GET", f"{path}-proposal")
    await session.later()
    await session.call("refund by reference", "GET", f"/v1/refunds/{refund['data']['reference']}")
    await session.call("refunded payment", "GET", "/v1/payments/commande%2F1042")
    reference = await session.pay("payment to refund without a body", FEWEST_FIELDS)
    await session.call("refund without a body", "POST", f"/v1/payments/{reference}/refund")


async def _lists(session: Session) -> None:
    await session.call("payments", "GET", "/v1/payments")
    await session.call("payments filtered", "GET", "/v1/payments?status=failed&from=2026-11-20&to=2026-11-21")
    await session.call("payments of an external_id", "GET", "/v1/payments?external_id=commande%2F1042")
    await session.call("payments, second page", "GET", "/v1/payments?per_page=2&page=2")
    await session.call("payments, past the end", "GET", "/v1/payments?page=9")
    await session.call("refunds", "GET", "/v1/refunds?per_page=1")
    await session.call("balance", "GET", "/v1/balance")
    await session.call("balance of another currency", "GET", "/v1/balance?currency=eur")


async def _catalogue(session: Session) -> None:
    await session.call("payment modes", "GET", "/v1/payment-modes")
    await session.call("payment modes filtered", "GET", "/v1/payment-modes?country=sn&type=mobile_money")
    await session.call("fees by operator", "POST", "/v1/payment-modes/fees", {"amount": 5000, "operator": "MTN"})
    await session.call("fees by mode", "POST", "/v1/payment-modes/fees", {"amount": 87.55, "payment_mode_id": 20})


async def _webhooks(session: Session) -> None:
    path, url = "/v1/webhooks/endpoint", session.service.receiver.url()
    await session.call("webhook endpoint, none yet", "GET", path)
    await session.call("test event without an endpoint", "POST", "/v1/webhooks/test")
    await session.call("webhook endpoint set", "PUT", path, {"url": url})
    await session.call("webhook endpoint", "GET", path)
    await session.call("webhook secret changed", "PUT", path, {"url": url, "rotate_secret": True})
    await session.call("test event", "POST", "/v1/webhooks/test")
    await session.call("deliveries, one waiting", "GET", "/v1/webhooks/deliveries")
    await session.later()
    made = await session.call("deliveries, one made", "GET", "/v1/webhooks/deliveries")
    again = f"/v1/webhooks/deliveries/{made['data'][0]['id']}/resend"
    await session.call("delivery made again", "POST", again)
    await session.call("delivery that waits, made again", "POST", again)
    await session.later()
    await session.call("events", "GET", "/v1/events?type=payment.failed&per_page=1")
    await session.call("disputes", "GET", "/v1/disputes")
    await session.call("webhooks disabled", "PUT", path, {"url": None})


async def _live(session: Session) -> None:
    session.env = "live"
    await session.service.provider_will("no_callback", "debit", "mtn")
    reference = await session.pay("live payment", ALL_FIELDS)
    await session.call("live payment that succeeded", "GET", f"/v1/payments/{reference}")
    await session.service.provider_will("no_callback", "credit", "mtn")
    refund = await session.call("live refund", "POST", f"/v1/payments/{reference}/refund", {})
    await session.call("live refund, waiting", "GET", f"/v1/refunds/{refund['data']['reference']}")
    await session.service.work()
    await session.later()
    await session.call("live refund that succeeded", "GET", f"/v1/refunds/{refund['data']['reference']}")
    await session.service.provider_will("no_callback", "debit", "wave")
    redirected = FEWEST_FIELDS | {"operator": "wave_sn", "phone_number": "221770000000", "external_id": "wave-1"}
    await session.call("live payment confirmed on the provider's page", "POST", "/v1/payments", redirected)
    await session.call("live payment that waits for the customer", "GET", "/v1/payments/wave-1")
    await session.later()
    await session.call("live payment that the customer confirmed", "GET", "/v1/payments/wave-1")
    await session.pay("live payment by card", CARD | {"return_url": "https://boutique.example/merci"})
    await session.service.provider_will("refused", "debit", "mtn")
    await session.call("live payment refused at once", "POST", "/v1/payments", FEWEST_FIELDS)
    await session.service.provider_will("unauthorized", "debit", "feexpay")
    celtiis = FEWEST_FIELDS | {"operator": "celtiis_bj"}
    await session.call("live payment without a route that works", "POST", "/v1/payments", celtiis)
    await session.call("live balance", "GET", "/v1/balance")


async def _links(session: Session) -> None:
    link = {"amount": 10000, "description": "Cotisation 2026"}
    limited = {"type": "limité", "max_uses": 50, "starts_at": "2026-11-01", "expires_at": "2026-12-31T23:59:59+01:00"}
    await session.call("payment link", "POST", "/v1/payment-links", link)
    made = await session.call("limited payment link", "POST", "/v1/payment-links", link | limited)
    ours = {"external_id": "cotisation/2026", "metadata": "{metadata}", "return_url": "https://boutique.example/merci"}
    await session.call("payment link with every field", "POST", "/v1/payment-links", link | limited | ours)
    await session.call("payment link created again", "POST", "/v1/payment-links", link | ours)
    await session.call("payment links", "GET", "/v1/payment-links?per_page=5")
    await session.call("payment link by id", "GET", f"/v1/payment-links/{made['data']['id']}")
    await session.call("payment link closed", "POST", f"/v1/payment-links/{made['data']['id']}/close")
    session.env = "test"
    await session.call("payment link with a test key", "POST", "/v1/payment-links", link)
    order = {"amount": 5000, "description": "Commande 1042", "external_id": "commande/1042"}
    named: dict[str, object] = {
        "external_id": "commande/1043",
        "cancel_url": "https://boutique.example/",
        "operators": ["MTN", "VISA"],
    }
    made = await session.call("checkout session", "POST", "/v1/checkout-sessions", order)
    await session.call("checkout session with every field", "POST", "/v1/checkout-sessions", order | ours | named)
    await session.call("checkout session created again", "POST", "/v1/checkout-sessions", order | {"amount": 6000})
    await session.call("checkout session by external_id", "GET", "/v1/checkout-sessions/commande%2F1042")
    await session.call("checkout session ended", "POST", f"/v1/checkout-sessions/{made['data']['id']}/expire")


async def _faults(session: Session) -> None:
    """422, with every sentence that a faulty field can get."""
    path = "/v1/payments"
    await session.call("empty body", "POST", path, b"")
    await session.call("body that is not UTF-8", "POST", path, b'{"amount": "\xff"}')
    await session.call("body that is no object", "POST", path, b"[]")
    await session.call("payment without fields", "POST", path, {})
    wrong = {
        "amount": "5000", "currency": "GBP", "operator": 7, "payment_mode_id": "1", "phone_number": "97 00 00 00",
        "otp": "1" * 17, "description": "x" * 256, "external_id": "", "return_url": "boutique", "metadata": [],
        "callback_url": "http://boutique.example/", "customer": {"firstname": 1, "email": "awa"},
    }  # fmt: skip
    await session.call("payment with every field wrong", "POST", path, wrong)
    faults: dict[str, dict[str, object]] = {
        "too small": {"amount": 0},
        "too large": {"amount": 100000000},
        "with decimals": {"amount": 10.5},
        "below the debit's minimum": {"amount": 1},
        "above the debit's maximum": {"amount": 1000000},
        "by an unknown operator": {"operator": "orange_fr"},
        "by an unknown mode": {"operator": None, "payment_mode_id": 999},
        "by two modes": {"payment_mode_id": 2},
        "without its OTP": {"operator": "coris"},
        "without its return_url": {"operator": "free_sn"},
        "with a NUL": {"description": "a\0b"},
    }
    for name, fields in faults.items():
        await session.call(f"payment {name}", "POST", path, {**FEWEST_FIELDS, **fields})
    await session.call("card without a customer", "POST", path, {"amount": 5000, "operator": "VISA"})
    await session.call("lists out of range", "GET", "/v1/payments?per_page=101&page=0&from=hier&to=2026-13-01")
    await session.call("refund with a wrong reason", "POST", "/v1/payments/commande%2F1042/refund", {"reason": 5})
    await session.call("fees without fields", "POST", "/v1/payment-modes/fees", {})
    await session.call("modes of an unknown type", "GET", "/v1/payment-modes?type=cash")
    await session.call("balance of an unknown currency", "GET", "/v1/balance?currency=GBP")
    await session.call("endpoint without its address", "PUT", "/v1/webhooks/endpoint", {})
    await session.call(
        "endpoint with a wrong address", "PUT", "/v1/webhooks/endpoint", {"url": "ftp://boutique.example"}
    )
    session.env = "live"
    await session.call("link without fields", "POST", "/v1/payment-links", {})
    link = {"amount": 0.5, "description": "", "type": "limite", "starts_at": "x", "expires_at": "2026-02-30"}
    await session.call("link with every field wrong", "POST", "/v1/payment-links", link)
    link = {"amount": 100, "description": "Don", "starts_at": "2026-12-02", "expires_at": "2026-12-01"}
    await session.call("link that ends before it starts", "POST", "/v1/payment-links", link)
    await session.call("limited link without a limit", "POST", "/v1/payment-links", link | {"type": "limité"})
    session.env = "test"


async def _refusals(session: Session) -> None:
    """Every other error code that needs neither a broken database nor a rate limit."""
    await session.call("without a key", "GET", "/v1/balance", key="")
    await session.call("with an unknown key", "GET", "/v1/balance", key="sk_test_" + "x" * 32)
    key = await session.service.key_that_ends(session.merchant, 5)
    await session.call("with a key that is good", "GET", "/v1/refunds?page=2", key=key)
    session.service.clock.advance(5)
    await session.call("with a key that expired", "GET", "/v1/refunds?page=2", key=key)
    suspended = await session.service.merchant("suspended")
    await session.call("live key of a suspended merchant", "GET", "/v1/balance", key=suspended.keys["live"])
    elsewhere = await session.service.restricted_key(session.merchant, networks="203.0.113.7")
    await session.call("live key from an address that is not its own", "GET", "/v1/balance", key=elsewhere)
    reader = await session.service.restricted_key(session.merchant, ["payments:read"])
    await session.call("key without the scope", "POST", "/v1/payment-links", {}, key=reader)
    refused = FEWEST_FIELDS | {"phone_number": "2290197000001", "external_id": "refused"}
    await session.call("payment refused at once", "POST", "/v1/payments", refused)
    await session.call("refused payment, created again", "POST", "/v1/payments", refused)
    await session.call("refund of a payment that failed", "POST", "/v1/payments/refused/refund")
    await session.call("second refund", "POST", "/v1/payments/commande%2F1042/refund")
    for name in ("payments", "refunds", "payment-links"):
        await session.call(f"nothing among {name}", "GET", f"/v1/{name}/0")
    await session.call("refund of nothing", "POST", "/v1/payments/0/refund")
    await session.call("no such address", "GET", "/v1/nothing")
    await session.call("no such verb", "DELETE", "/v1/payments")
    await session.call("no such verb on one payment", "PUT", "/v1/payments/commande%2F1042")
