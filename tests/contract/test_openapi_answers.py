"""The service answers what `/openapi.json` says, in both directions, and accepts its examples."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from msgspec import structs

from guichet.api.endpoint import Endpoint
from guichet.api.endpoint_table import ENDPOINTS
from guichet.clock import DAY, Instant, later
from guichet.domain.events import DISPUTE_EVENTS, EVENTS, SESSION_EVENTS, WEBHOOK_TEST
from guichet.providers.base import Accepted, Refused
from guichet.providers.capabilities import DisputedStatus, DisputeFacts
from guichet.settings import Settings
from tests.contract.openapi_document import operation_of, resolved, schemas_of, success_of, validator
from tests.fakes.clock import ManualClock
from tests.fakes.http_server import ScriptedServer
from tests.fakes.scripted_provider import ScriptedProvider, done
from tests.frozen.curl import curl_calls
from tests.service_fixture import MerchantClient, ServiceFixture, open_service


@pytest.mark.parametrize("endpoint", [each for each in ENDPOINTS if each.body], ids=lambda each: each.handler.__name__)
async def test_what_the_examples_send_is_accepted(sqlite_service: ServiceFixture, endpoint: Endpoint) -> None:
    """The curl samples, word for word, by the merchant they are written for."""
    document = (await sqlite_service.call("GET", "/openapi.json")).body
    merchant = await sqlite_service.merchant()
    samples = operation_of(document, endpoint)["x-codeSamples"]
    assert len(samples) == len(endpoint.requests)
    for number, sample in enumerate(samples):
        if endpoint.path.startswith("/payments/{reference}/refund"):
            merchant = await sqlite_service.merchant(f"R{number}")
            await merchant.pay("0000", external_id="commande-1042")
            await sqlite_service.run_worker()
        answer = await _run(
            merchant.live if endpoint.path == "/payment-links" else merchant,
            sample["source"],
            document["servers"][0]["url"],
        )
        assert answer.status == endpoint.status, answer.raw


async def _run(merchant: MerchantClient, source: str, server: str) -> Any:
    [call] = curl_calls(source, {"CLE": merchant.keys[merchant.env]})
    return await merchant.call(call.method, call.url.removeprefix(server), call.body, headers=call.headers)


@pytest.mark.parametrize(
    "endpoint", [each for each in ENDPOINTS if not each.body and "{" not in each.path], ids=lambda each: each.path
)
async def test_the_samples_without_a_body_are_accepted(shared_service: ServiceFixture, endpoint: Endpoint) -> None:
    document = (await shared_service.call("GET", "/openapi.json")).body
    [sample] = operation_of(document, endpoint)["x-codeSamples"]

    answer = await _run(await shared_service.merchant(), sample["source"], document["servers"][0]["url"])

    assert answer.status == endpoint.status, answer.raw


class Seen:
    """Every answer of a day, held to the document; what was filled, and what was null."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.filled: set[str] = set()
        self.empty: set[str] = set()

    def answer(self, endpoint: Endpoint, body: Any) -> None:
        schema = success_of(self.document, endpoint)["schema"]
        validator(self.document, schema).validate(body)
        self._walk(schema, body)

    def notification(self, body: Any) -> None:
        hook = self.document["webhooks"][body["event"]]["post"]
        schema = hook["requestBody"]["content"]["application/json"]["schema"]
        validator(self.document, schema).validate(body)
        self._walk(schema, body)

    def _walk(self, schema: Mapping[str, Any], value: Any, name: str = "") -> None:
        if "$ref" in schema or "anyOf" in schema:
            if value is not None:
                reference = schema.get("$ref") or schema["anyOf"][0]["$ref"]
                self._walk(resolved(self.document, schema), value, reference.rpartition("/")[2])
        elif "items" in schema:
            for item in value or ():
                self._walk(schema["items"], item)
        elif "properties" in schema:
            assert set(value) <= set(schema["properties"]), f"{name} answers what is not documented"
            for field, item in value.items():
                (self.empty if item is None else self.filled).add(f"{name}.{field}")
                self._walk(schema["properties"][field], item)


class WithDisputes(ScriptedProvider):
    """A provider whose bank contests the first payment that it took, and decides for the merchant."""

    decided: bool = False

    async def disputes(self, since: Instant) -> list[DisputeFacts]:
        if not self.charges:
            return []
        charge = self.charges[0]
        status: DisputedStatus = "won" if self.decided else "open"
        due = later(charge.payment.created_at, 7 * DAY)
        facts = DisputeFacts(
            "du_1",
            charge.payment.reference,
            status,
            charge.amount,
            "XOF",
            "fraudulent",
            charge.payment.created_at,
            due,
            is_live=True,
        )
        if self.decided:
            return [facts, structs.replace(facts, provider_reference="du_2", status="lost", evidence_due_at=None)]
        return [facts]


async def test_every_documented_field_is_answered_and_every_answered_field_is_documented(
    sqlite_settings: Settings, receiver: ScriptedServer
) -> None:
    operator = WithDisputes()
    operator.script("initiate", Accepted(redirect_url="https://operator.example/confirm"))
    operator.script("status", done)
    operator.script("refund", Refused())
    clock = ManualClock()
    async with open_service(
        sqlite_settings, clock, accounts={"scripted": operator}, routes={"mtn": ["scripted"]}
    ) as service:
        seen = Seen((await service.call("GET", "/openapi.json")).body)
        await _a_day(service, await service.merchant(), seen, receiver, operator)

    documented = {
        f"{name}.{field}": member
        for name, schema in schemas_of(seen.document).items()
        if not name.endswith("Body") and name not in ("Customer", "ErrorEnvelope", "Failure")
        for field, member in schema["properties"].items()
    }
    nullable = {
        name
        for name, member in documented.items()
        if "null" in member.get("type", ()) or {"type": "null"} in member.get("anyOf", ())
    }
    filled = {name for name in seen.filled if not name.startswith(".")}
    # The packaged catalogue has no pictures.
    assert set(documented) - filled == {"PaymentMode.logo"}
    assert nullable - seen.empty <= {"Payment.payment_mode"}


async def _pay_link(service: ServiceFixture, url: str) -> None:
    """As a customer does, by the form of the page."""
    path = urlsplit(url).path
    page = (await service.call("GET", path)).raw.decode()
    token = re.search(r'name="token" value="([^"]+)"', page)
    assert token is not None
    form = urlencode({"token": token[1], "operator": "mtn", "phone_number": "0197000045"}).encode()
    answer = await service.call("POST", path, form, {"Content-Type": "application/x-www-form-urlencoded"})
    assert answer.status == 303, answer.raw


async def _a_day(
    service: ServiceFixture, merchant: MerchantClient, seen: Seen, receiver: ScriptedServer, operator: WithDisputes
) -> None:
    """Everything a merchant does, with either key; each answer is looked at."""

    async def do(account: MerchantClient, name: str, path: str, body: object = None) -> Any:
        [endpoint] = [each for each in ENDPOINTS if each.handler.__name__ == name]
        answer = await account.call(endpoint.method, path, body)
        assert answer.status == endpoint.status, answer.raw
        seen.answer(endpoint, answer.body)
        return answer.data

    async def look(account: MerchantClient) -> None:
        for endpoint in ENDPOINTS:
            if endpoint.method == "GET" and "{" not in endpoint.path:
                await do(account, endpoint.handler.__name__, endpoint.path)

    mobile = {"amount": 5000, "operator": "mtn", "phone_number": "2290197000000"}
    customer = {"firstname": "Awa", "lastname": "Diallo", "email": "awa@example.com"}
    await look(merchant)
    await do(merchant, "send_test", "/webhooks/test")
    await do(merchant, "configure_endpoint", "/webhooks/endpoint", {"url": None})
    await do(merchant, "configure_endpoint", "/webhooks/endpoint", {"url": receiver.url("127.0.0.1")})
    await do(merchant, "send_test", "/webhooks/test")
    await do(merchant, "list_deliveries", "/webhooks/deliveries")
    await do(merchant, "create_payment", "/payments", {**mobile, "phone_number": "2290197000003"})
    await do(
        merchant, "create_payment", "/payments", {**mobile, "external_id": "a", "metadata": {}, "customer": customer}
    )
    await do(merchant, "create_payment", "/payments", {"amount": 15000, "operator": "VISA", "customer": customer})
    another = {**mobile, "amount": 6000, "external_id": "a", "callback_url": "http://127.0.0.1:9/nobody-listens"}
    await do(merchant, "create_payment", "/payments", another)
    await service.run_worker()
    await do(merchant, "read_balance", "/balance?devise=XOF")
    await do(merchant, "read_payment", "/payments/a")
    await do(merchant, "propose_refund", "/payments/a/refund-proposal", {})
    refund = await do(merchant, "create_refund", "/payments/a/refund", {"reason": "Retour"})
    await do(merchant, "read_refund_proposal", "/payments/a/refund-proposal")
    await do(merchant, "read_refund", f"/refunds/{refund['reference']}")
    await service.run_worker(1)
    await do(merchant, "quote_fees", "/payment-modes/fees", {"amount": 5000, "operator": "mtn"})
    await look(merchant)
    await do(merchant.live, "configure_endpoint", "/webhooks/endpoint", {"url": receiver.url("127.0.0.1")})
    await do(merchant.live, "create_payment", "/payments", {**mobile, "external_id": "b"})
    await service.run_worker(60)
    await do(merchant.live, "propose_refund", "/payments/b/refund-proposal", {"reason": "Retour"})
    await do(merchant.live, "create_refund", "/payments/b/refund", {})
    await service.run_worker(60)
    for decided in (False, True):
        operator.decided = decided
        await service.run_worker(15 * 60)
    link = {"amount": 2000, "description": "Don"}
    permanent = await do(merchant.live, "create_link", "/payment-links", link)
    limits = {"type": "limité", "max_uses": 3, "starts_at": "2026-01-01", "expires_at": "2026-12-31"}
    ours = {"external_id": "don-2026", "metadata": {"a": 1}, "return_url": "https://shop.example/merci"}
    limited = await do(merchant.live, "create_link", "/payment-links", {**link, **limits, **ours})
    for made in (permanent, limited):
        await _pay_link(service, made["url"])
    ours |= {"cancel_url": "https://shop.example/panier", "operators": ["mtn"]}
    for given in (ours, {}):
        session = await do(merchant, "create_session", "/checkout-sessions", {**link, **given})
        await _pay_link(service, session["url"])
        await service.run_worker(11)
        await do(merchant, "read_session", f"/checkout-sessions/{session['id']}")
    session = await do(merchant.live, "create_session", "/checkout-sessions", link)
    await do(merchant.live, "expire_session", f"/checkout-sessions/{session['id']}/expire")
    await look(merchant)
    await do(merchant, "create_payment", "/payments", {**another, "external_id": "unheard"})
    await service.run_worker(1)
    await do(merchant, "list_deliveries", "/webhooks/deliveries?statut=failed")
    await do(merchant, "list_events", "/events?statut=failed")
    await do(merchant.live, "read_link", f"/payment-links/{permanent['id']}")
    await look(merchant.live)
    assert {json.loads(request.body)["event"] for request in receiver.received} == {
        *EVENTS,
        WEBHOOK_TEST,
        *DISPUTE_EVENTS,
        *SESSION_EVENTS,
    }
    for request in receiver.received:
        seen.notification(json.loads(request.body))
