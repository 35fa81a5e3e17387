"""The examples of the documentation, made by a real run: what the curl samples of the OpenAPI document are answered,
one answer of each error code, and each event as a merchant's server receives it.

The service answers on a real port, on a clock that stands still; what chance makes is replaced by lasting values.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from tests.frozen.curl import CurlCall, curl_calls
from tests.frozen.lasting_values import PAGES, SECRET, LastingValues
from tests.frozen.recording import as_json
from tests.frozen.service import (
    DELIVERY_ID,
    ENDPOINTS,
    REFUND_REFERENCE,
    SESSION_ID,
    WEBHOOK_URL,
    MerchantKeys,
    RunningService,
    Settings,
    curl,
    running_service,
    sign,
)

PROVIDER_PAGE: Final = "https://operateur.example/confirmer/3f2a"
BY_NAME: Final = {endpoint.handler.__name__: endpoint for endpoint in ENDPOINTS}
_MOBILE: Final = {"amount": 5000, "operator": "mtn", "phone_number": "2290197001234"}
_CARD: Final = BY_NAME["create_payment"].requests["Carte"]
#: Seconds until the samples' payment has succeeded, and until its webhook is sent: dates that read well.
_VALIDATED_AFTER, _SENT_AFTER = 11.111111, 0.111111
#: Seconds after which the worker polls the provider again, and between two readings of the disputes.
_POLLED_AFTER, _DISPUTES_READ_EVERY = 10, 900


@dataclass
class Recorder:
    """Collects the examples; `as_text` is the file of them."""

    service: RunningService
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: dict[str, Any] = field(default_factory=dict)
    webhooks: dict[str, Any] = field(default_factory=dict)
    values: LastingValues = field(default_factory=LastingValues)

    def __post_init__(self) -> None:
        self.values.show(self.service.url, PAGES)
        self.values.show(self.service.receiver.url(), WEBHOOK_URL)

    def webhook(self, event: str, about: str = "", lasting: str | None = None) -> None:
        """Records the latest delivery of this event whose body names `about`; its id is shown as `lasting`."""
        received = self.service.receiver.received
        found = [each for each in received if each.headers["x-service-event"] == event and about in each.body.decode()]
        if lasting is not None:
            self.values.show(found[-1].headers["x-service-delivery"], lasting)
        body = self.shown(json.loads(found[-1].body))
        moment = found[-1].headers["x-service-signature"].partition(",")[0].removeprefix("t=")
        self.webhooks[event] = {"signature": sign(SECRET, int(moment), compact(body).encode()), "body": body}

    def shown(self, answer: Any) -> Any:
        """The answer as the documentation shows it."""
        return json.loads(self.values.hide(compact(answer)))

    async def later(self, seconds: float) -> None:
        """The clock is turned, and the worker does what is due."""
        self.service.clock.advance(seconds)
        await self.service.work()

    def as_text(self) -> str:
        errors = {code: self.errors[code] for code in sorted(self.errors)}
        return as_json({"answers": self.answers, "errors": errors, "webhooks": self.webhooks})


@dataclass
class Shop:
    """A merchant who does what the documentation shows."""

    recorder: Recorder
    merchant: MerchantKeys

    async def send(self, call: CurlCall) -> Any:
        """The decoded answer."""
        path = self.recorder.values.real(call.url).removeprefix(self.recorder.service.url)
        body = None if call.body is None else self.recorder.values.real(call.body.decode()).encode()
        answer = await self.recorder.service.call(call.method, path, body, call.headers)
        return json.loads(answer.body)

    async def call(
        self, method: str, path: str, body: object = None, *, env: str = "test", key: str | None = None
    ) -> Any:
        """As `send`, with the merchant's key of this environment, or another."""
        headers = {"Authorization": f"Bearer {self.merchant.keys[env] if key is None else key}"}
        sent = None if body is None else json.dumps(body).encode()
        return await self.send(CurlCall(method, f"{self.recorder.service.url}/v1{path}", headers, sent))

    async def sample(self, name: str, title: str, env: str = "test") -> Any:
        """What the document's sample of this title is answered."""
        endpoint = BY_NAME[name]
        source = curl(f"{self.recorder.service.url}/v1", endpoint, endpoint.requests.get(title))
        [call] = curl_calls(source, {"CLE": self.merchant.keys[env]})
        return await self.send(call)

    def keep(self, name: str, title: str, answer: Any, lasting: str | None = None) -> None:
        """Records a success as an example; its reference is shown as `lasting`."""
        assert answer["success"] is True, answer
        if lasting is not None:
            self.recorder.values.show(answer["data"]["reference"], lasting)
        self.recorder.answers.setdefault(name, {})[title] = self.recorder.shown(answer)

    async def record(self, *names: str, env: str = "test") -> None:
        """Runs every sample of these operations, and records the answers under the samples' titles."""
        for name in names:
            for title in titles(name):
                self.keep(name, title, await self.sample(name, title, env))

    def keep_error(self, answer: Any) -> None:
        assert answer["success"] is False, answer
        self.recorder.errors[answer["error"]["code"]] = self.recorder.shown(answer)

    async def pay_on_page(self, url: str) -> None:
        """What a customer does whose number pays at once."""
        path, service = url.removeprefix(self.recorder.service.url), self.recorder.service
        page = (await service.call("GET", path)).body.decode()
        token = page.partition('name="token" value="')[2].partition('"')[0]
        form = {"token": token, "operator": "mtn", "phone_number": "0197000000"}
        typed = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = await service.call("POST", path, urlencode(form).encode(), typed)
        assert answer.status == 303, answer.body

    async def follow_payment(self) -> Any:
        """The first sample's payment, succeeded."""
        payment = await self.sample("create_payment", titles("create_payment")[0])
        await self.recorder.later(_VALIDATED_AFTER)
        return payment["data"]


def compact(value: Any) -> str:
    """As JSON without spaces: the text whose signature is shown."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def titles(name: str) -> list[str]:
    """The samples of an operation; one without a body has its summary as title."""
    return list(BY_NAME[name].requests) or [BY_NAME[name].summary]


async def record(settings: Settings) -> str:
    """`guichet/data/examples.json`, on a database that has its schema already."""
    async with running_service(settings) as service:
        recorder = Recorder(service)
        shop = Shop(recorder, await service.merchant())
        for part in (_test_environment, _refunds, _refused_later, _live, _links, _sessions, _errors):
            await part(shop)
        await service.damage()
        shop.keep_error(await shop.call("GET", "/payments"))
    async with running_service(settings, rate_limit=1) as service:
        limited = Shop(Recorder(service, errors=recorder.errors), await service.merchant())
        await limited.call("GET", "/balance")
        limited.keep_error(await limited.call("GET", "/balance"))
    return recorder.as_text()


async def _test_environment(shop: Shop) -> None:
    recorder = shop.recorder
    await shop.record("list_modes", "quote_fees")
    shop.keep("send_test", "Sans adresse", await shop.call("POST", "/webhooks/test"))
    await shop.sample("configure_endpoint", titles("configure_endpoint")[0])
    await shop.record("read_endpoint", "create_payment")
    recorder.service.clock.advance(_VALIDATED_AFTER)
    await shop.record("read_payment")
    await recorder.later(_SENT_AFTER)
    recorder.webhook("payment.succeeded", "commande-1042", DELIVERY_ID)
    await shop.record("list_payments", "read_balance", "list_deliveries", "list_events", "resend_delivery", "send_test")
    await recorder.later(0)
    recorder.webhook("webhook.test")


async def _refunds(shop: Shop) -> None:
    """A payment is refunded once only, so each sample but the first has a merchant of its own."""
    for number, title in enumerate(titles("create_refund")):
        if number == 0:
            shop.keep("propose_refund", title, await shop.sample("propose_refund", title))
            await shop.record("read_refund_proposal")
            refund = await shop.sample("create_refund", title)
            shop.keep("create_refund", title, refund, REFUND_REFERENCE)
            await shop.recorder.later(0)
            await shop.record("list_refunds", "read_refund")
            shop.recorder.webhook("refund.succeeded")
            shop.recorder.webhook("payment.refunded")
        else:
            other = Shop(shop.recorder, await shop.recorder.service.merchant())
            await other.follow_payment()
            shop.keep("propose_refund", title, await other.sample("propose_refund", title))
            shop.keep("create_refund", title, await other.sample("create_refund", title))
    await shop.record("configure_endpoint")


async def _refused_later(shop: Shop) -> None:
    await shop.sample("configure_endpoint", titles("configure_endpoint")[0])
    await shop.call("POST", "/payments", {**_MOBILE, "phone_number": "2290197000003"})
    await shop.recorder.later(_POLLED_AFTER)
    shop.recorder.webhook("payment.failed")


async def _live(shop: Shop) -> None:
    recorder, service = shop.recorder, shop.recorder.service
    await shop.call("PUT", "/webhooks/endpoint", {"url": WEBHOOK_URL}, env="live")
    await service.provider_will("no_callback", "debit", "wave")
    wave = {"amount": 2500, "operator": "wave_sn", "phone_number": "221770001234", "external_id": "commande-1045"}
    redirected = await shop.call("POST", "/payments", wave, env="live")
    recorder.values.show(redirected["data"]["redirect_url"], PROVIDER_PAGE)
    shop.keep("create_payment", "Confirmation sur la page de l'opérateur, en production", redirected)
    await service.provider_will("no_callback", "debit", "mtn")
    paid = await shop.call("POST", "/payments", _MOBILE, env="live")
    await recorder.later(_POLLED_AFTER)
    await service.provider_will("refused", "credit", "mtn")
    await shop.call("POST", f"/payments/{paid['data']['reference']}/refund", {}, env="live")
    await recorder.later(0)
    await recorder.later(_POLLED_AFTER)
    recorder.webhook("refund.failed")
    for decision in ("won", "lost"):
        await service.provider_will("no_callback", "debit", "stripe")
        await shop.call("POST", "/payments", {**_CARD, "external_id": f"commande-{decision}"}, env="live")
        await recorder.later(_POLLED_AFTER)
        for status, event in (("needs_response", "dispute.opened"), (decision, f"dispute.{decision}")):
            await service.bank_says(status)
            await recorder.later(_DISPUTES_READ_EVERY)
            recorder.webhook(event)
    await shop.record("list_disputes", env="live")


async def _links(shop: Shop) -> None:
    await shop.record("create_link", "list_links", "read_link", "close_link", env="live")


async def _sessions(shop: Shop) -> None:
    recorder = shop.recorder
    first = await shop.sample("create_session", titles("create_session")[0])
    recorder.values.show(first["data"]["id"], SESSION_ID)
    await shop.record("create_session", "read_session")
    other = await shop.call("POST", "/checkout-sessions", {"amount": 5000, "description": "Commande 1044"})
    await shop.pay_on_page(other["data"]["url"])
    await recorder.later(_POLLED_AFTER)
    recorder.webhook("checkout_session.completed")
    await shop.record("expire_session")
    await recorder.later(0)
    recorder.webhook("checkout_session.expired")


async def _errors(shop: Shop) -> None:
    """One of each code that needs neither a broken database nor a rate limit."""
    service = shop.recorder.service
    expired = await service.key_that_ends(shop.merchant, 1)
    service.clock.advance(1)
    elsewhere = await service.restricted_key(shop.merchant, networks="203.0.113.7")
    reader = await service.restricted_key(shop.merchant, ["payments:read"])
    suspended = Shop(shop.recorder, await service.merchant("suspended"))
    requests: tuple[tuple[Shop, str, str, object, Mapping[str, Any]], ...] = (
        (shop, "GET", "/balance", None, {"key": "sk_test_inconnue"}),
        (shop, "GET", "/balance", None, {"key": expired}),
        (suspended, "GET", "/balance", None, {"env": "live"}),
        (shop, "GET", "/balance", None, {"key": elsewhere}),
        (shop, "POST", "/payment-links", {}, {"key": reader}),
        (shop, "POST", "/payments", {"amount": 5000, "operator": "VISA"}, {}),
        (shop, "POST", "/payments", {**_MOBILE, "phone_number": "2290197000001"}, {}),
        (shop, "GET", "/payments/commande-9999", None, {}),
        (shop, "POST", "/payments/commande-1042/refund", {}, {}),
        (shop, "DELETE", "/payments", None, {}),
    )
    for sender, method, path, body, key in requests:
        shop.keep_error(await sender.call(method, path, body, **key))
