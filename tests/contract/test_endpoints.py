"""Every endpoint of the contract, with either key: its status, its envelope, its resource; who may not call it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import update

from guichet.api.endpoint_table import ENDPOINTS
from guichet.db.tables import webhook_deliveries
from tests.contract.shapes import check_error, check_success, endpoint, order
from tests.contract.tables import Row, column, table
from tests.service_fixture import MerchantClient, ServiceFixture

ROWS = table("endpoints")
IDS = [f"{row['Method']} {row['Path']}" for row in ROWS]
VERBS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD")
LINK = {"amount": 2500, "description": "Cotisation"}
SESSION = LINK | {"external_id": "b"}
#: An address that there is nothing to warn of; nothing is sent to it here.
HOOK = "http://127.0.0.1:9/h"


def _at(path: str) -> str:
    return path.replace("{reference}", "nothing").replace("{id}", "1")


def _allowed(path: str) -> set[str]:
    return {row["Method"] for row in ROWS if row["Path"] == path}


def test_the_routes_are_those_of_the_contract() -> None:
    assert [(each.method, each.path) for each in ENDPOINTS] == [(row["Method"], row["Path"]) for row in ROWS]


async def test_every_endpoint_with_a_test_key(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    answered: dict[str, Any] = {}

    async def call(method: str, path: str, at: str, body: object = None, also: tuple[str, ...] = ()) -> Any:
        row = endpoint(method, path)
        answered[f"{method} {path}"] = data = check_success(await merchant.call(method, at, body), row, also=also)
        return data

    payment = await call("POST", "/payments", "/payments", order(phone_number="22997000000", external_id="a"))
    assert [each["reference"] for each in await call("GET", "/payments", "/payments")] == [payment["reference"]]
    read = await call("GET", "/payments/{reference}", f"/payments/{payment['reference']}")
    assert read == payment | {"status": "succeeded", "updated_at": read["updated_at"]}
    at = "/payments/a/refund-proposal"
    proposal = await call("POST", "/payments/{reference}/refund-proposal", at, {"reason": "Retour"})
    refund = await call("POST", "/payments/{reference}/refund", "/payments/a/refund", {"reason": "Retour"})
    confirmed = proposal | {"status": "confirmed", "refund_reference": refund["reference"]}
    assert await call("GET", "/payments/{reference}/refund-proposal", at) == confirmed
    assert await call("GET", "/refunds", "/refunds") == [refund]
    assert await call("GET", "/refunds/{reference}", f"/refunds/{refund['reference']}") == refund
    check_error(await merchant.post("/payment-links", LINK), "invalid_request")
    assert await call("GET", "/payment-links", "/payment-links") == []
    check_error(await merchant.get("/payment-links/1"), "not_found")
    modes = await call("GET", "/payment-modes", "/payment-modes")
    assert [mode["operator"] for mode in modes] == column("operators", "Code")
    await call("POST", "/payment-modes/fees", "/payment-modes/fees", {"amount": 5000, "operator": "mtn"})
    await call("GET", "/balance", "/balance")
    assert await call("GET", "/webhooks/endpoint", "/webhooks/endpoint") == {
        "url": None,
        "secret": None,
        "events": [row["Event"] for row in table("events") if row["Listed"] == "yes"],
        "livemode": False,
    }
    await call("POST", "/webhooks/test", "/webhooks/test", also=("message",))
    written = await call("PUT", "/webhooks/endpoint", "/webhooks/endpoint", {"url": HOOK})
    assert (written["url"], written["livemode"]) == (HOOK, False)
    sent = await call("POST", "/webhooks/test", "/webhooks/test")
    [delivery] = await call("GET", "/webhooks/deliveries", "/webhooks/deliveries")
    assert (delivery["id"], delivery["event"]) == (sent["delivery_id"], "webhook.test")
    await service.ctx.db.write(update(webhook_deliveries).values(status="failed", next_attempt_at=None))
    again = f"/webhooks/deliveries/{delivery['id']}/resend"
    assert (await call("POST", "/webhooks/deliveries/{id}/resend", again))["status"] == "pending"
    told = [event["event"] for event in await call("GET", "/events", "/events")]
    assert told == ["payment.succeeded", "refund.succeeded", "payment.refunded", "webhook.test"]
    assert await call("GET", "/disputes", "/disputes") == []
    await _session(call)
    links = {"POST /payment-links", "GET /payment-links/{id}", "POST /payment-links/{id}/close"}
    assert set(answered) == set(IDS) - links


async def _session(call: Callable[..., Awaitable[Any]]) -> None:
    session = await call("POST", "/checkout-sessions", "/checkout-sessions", SESSION)
    assert await call("GET", "/checkout-sessions/{id}", "/checkout-sessions/b") == session
    ended = await call("POST", "/checkout-sessions/{id}/expire", f"/checkout-sessions/{session['id']}/expire")
    assert ended == session | {"status": "expired", "expires_at": ended["expires_at"]}


async def test_every_endpoint_with_a_live_key_that_needs_no_operator(shared_service: ServiceFixture) -> None:
    merchant = (await shared_service.merchant()).live
    answered: set[str] = set()

    async def call(method: str, path: str, at: str, body: object = None, also: tuple[str, ...] = ()) -> Any:
        answered.add(f"{method} {path}")
        return check_success(await merchant.call(method, at, body), endpoint(method, path), also=also)

    refused = await merchant.post("/payments", order(external_id="a"))
    error = check_error(refused, "server_error")
    [payment] = await call("GET", "/payments", "/payments")
    assert (payment["status"], payment["external_id"], payment["payment_url"]) == ("failed", "a", None)
    assert (payment["reference"], payment["failure"]["code"]) == (error["reference"], "operator_unavailable")
    assert await call("GET", "/payments/{reference}", "/payments/a") == payment
    check_error(await merchant.post("/payments/a/refund"), "conflict")
    assert await call("GET", "/refunds", "/refunds") == []
    check_error(await merchant.get(f"/refunds/{payment['reference']}"), "not_found")
    link = await call("POST", "/payment-links", "/payment-links", LINK)
    assert await call("GET", "/payment-links", "/payment-links") == [link]
    assert await call("GET", "/payment-links/{id}", f"/payment-links/{link['id']}") == link
    await _session(call)
    closed = await call("POST", "/payment-links/{id}/close", f"/payment-links/{link['id']}/close")
    assert closed == link | {"expires_at": closed["expires_at"]}
    assert [m["operator"] for m in await call("GET", "/payment-modes", "/payment-modes")] == column("operators", "Code")
    await call("POST", "/payment-modes/fees", "/payment-modes/fees", {"amount": 5000, "operator": "VISA"})
    assert (await call("GET", "/balance", "/balance"))["balance"] == 0
    assert (await call("GET", "/webhooks/endpoint", "/webhooks/endpoint"))["livemode"] is True
    await call("POST", "/webhooks/test", "/webhooks/test", also=("message",))
    written = await call("PUT", "/webhooks/endpoint", "/webhooks/endpoint", {"url": HOOK})
    assert written["livemode"] is True
    assert await call("GET", "/webhooks/deliveries", "/webhooks/deliveries") == []
    told = [event["event"] for event in await call("GET", "/events", "/events")]
    assert (told, await call("GET", "/disputes", "/disputes")) == (["checkout_session.expired"], [])
    proposal = {f"{method} /payments/{{reference}}/refund-proposal" for method in ("POST", "GET")}
    unreachable = {"POST /payments", "POST /payments/{reference}/refund", "GET /refunds/{reference}", *proposal}
    assert answered == set(IDS) - unreachable - {"POST /webhooks/deliveries/{id}/resend"}


async def test_no_endpoint_answers_without_a_key_and_no_inactive_account_has_a_live_one(
    shared_service: ServiceFixture,
) -> None:
    pending = await shared_service.merchant(status="pending")
    suspended = await shared_service.merchant(status="suspended")
    for row in ROWS:
        anonymous = await shared_service.call(row["Method"], f"/v1{_at(row['Path'])}")
        check_error(anonymous, "unauthorized")
        for account in (pending, suspended):
            check_error(await account.live.call(row["Method"], _at(row["Path"])), "merchant_inactive")
            assert (await account.call(row["Method"], _at(row["Path"]))).status in (200, 404, 422), row


async def test_a_key_works_in_the_environment_it_names(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant(status="pending")
    for row in table("keys"):
        account = MerchantClient(shared_service, merchant.id, merchant.keys, row["Environment"])
        assert account.keys[row["Environment"]].startswith(row["Prefix"])
        answer = await account.get("/webhooks/endpoint")
        if row["Account not active"] == "works":
            assert answer.data["livemode"] is (row["Environment"] == "live")
        else:
            status, code = row["Account not active"].split()
            check_error(answer, code)
            assert answer.status == int(status)


@pytest.mark.parametrize("key", ["absent", "", "Bearer", "Bearer ", "Basic {key}", "{key}", "Bearer x{key}"])
async def test_a_missing_or_malformed_key_is_refused(shared_service: ServiceFixture, key: str) -> None:
    merchant = await shared_service.merchant()
    header = key.format(key=merchant.keys["test"])
    answer = await shared_service.call(
        "GET", "/v1/balance", headers={} if key == "absent" else {"Authorization": header}
    )
    check_error(answer, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


async def test_a_method_that_a_path_does_not_have_is_refused(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    for path in dict.fromkeys(column("endpoints", "Path")):
        for verb in set(VERBS) - _allowed(path):
            answer = await merchant.call(verb, _at(path))
            assert answer.status == 405, (verb, path)
            assert set(answer.headers["Allow"].split(", ")) == _allowed(path)
            if verb != "HEAD":
                check_error(answer, "method_not_allowed")


@pytest.mark.parametrize(
    "path", ["", "/", "/nothing", "/payments/", "/payments/a/b", "/payments//refund", "/%2Fbalance"]
)
async def test_an_unknown_path_is_not_found(shared_service: ServiceFixture, path: str) -> None:
    merchant = await shared_service.merchant()
    for verb in ("GET", "POST", "DELETE"):
        check_error(await merchant.call(verb, path), "not_found")


async def test_paths_outside_the_api_answer_in_the_envelope_too(shared_service: ServiceFixture) -> None:
    for path in ("/nothing", "/v2/balance", "/v1x"):
        check_error(await shared_service.call("GET", path), "not_found")


@pytest.mark.parametrize("row", [row for row in ROWS if row["Paginated"] == "yes"], ids=lambda row: str(row["Path"]))
async def test_lists_of_a_new_account_are_one_empty_page(shared_service: ServiceFixture, row: Row) -> None:
    answer = await (await shared_service.merchant()).get(row["Path"])
    assert check_success(answer, row) == []
    assert answer.body["meta"] == {"current_page": 1, "per_page": 25, "total": 0, "last_page": 1}
