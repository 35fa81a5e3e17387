"""The `Idempotency-Key` header: a repeated request creates nothing more, and is answered with what became of the first
(docs/contract.md, "Repeated requests")."""

import asyncio

import pytest
from sqlalchemy import func, select

from guichet.clock import DAY, later
from guichet.db import tables
from guichet.domain.posting_rules import FROZEN
from guichet.ledger import wallets
from guichet.worker.pruning import Pruning
from tests.contract.shapes import check_error, order
from tests.contract.test_key_scopes import key_with
from tests.fakes.scripted_provider import ScriptedProvider, done
from tests.service_fixture import Answer, MerchantClient, ServiceFixture

LINK = {"amount": 2500, "description": "Cotisation"}


async def post(merchant: MerchantClient, path: str, body: object, key: str = "k") -> Answer:
    return await merchant.post(path, body, headers={"Idempotency-Key": key})


async def total(merchant: MerchantClient, path: str = "/payments") -> int:
    return int((await merchant.get(path)).body["meta"]["total"])


async def kept(service: ServiceFixture) -> int:
    [row] = await service.ctx.db.all(select(func.count()).select_from(tables.idempotency_keys))
    return int(row[0])


async def test_a_repeated_payment_is_answered_as_it_is_now(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    first = await post(merchant, "/payments", order())
    assert (first.status, "warnings" in first.body) == (201, False)
    service.clock.advance(10)
    await service.run_worker()
    again = await post(merchant, "/payments", order())
    assert again.status == 201
    assert again.data == (await merchant.get(f"/payments/{first.data['reference']}")).data
    assert (again.data["status"], await total(merchant)) == ("succeeded", 1)


async def test_without_either_a_warning_says_that_a_repetition_would_debit_twice(
    shared_service: ServiceFixture,
) -> None:
    merchant = await shared_service.merchant()
    assert [each["code"] for each in (await merchant.post("/payments", order())).body["warnings"]] == ["no_external_id"]
    assert "warnings" not in (await merchant.post("/payments", order(external_id="a"))).body


@pytest.mark.both_databases
async def test_the_same_request_many_times_at_once(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    requests = [post(merchant, "/payments", order(), f"k{n % 4}") for n in range(32)]
    answers = await asyncio.gather(*requests)
    assert {answer.status for answer in answers} == {201}
    assert len({answer.data["reference"] for answer in answers}) == 4
    assert await total(merchant) == 4


@pytest.mark.both_databases
async def test_a_live_provider_gets_one_request(live_service: ServiceFixture, operator: ScriptedProvider) -> None:
    merchant = (await live_service.merchant()).live
    answers = await asyncio.gather(*(post(merchant, "/payments", order()) for _ in range(16)))
    assert {answer.status for answer in answers} == {201}
    assert (len({answer.data["reference"] for answer in answers}), len(operator.charges)) == (1, 1)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("again", "is_same"),
    [
        (b'{"phone_number":"2290197001234","operator":"mtn","amount":5.0e3}', True),
        (b' {"operator": "\\u006dtn", "amount": 5000, "phone_number": "2290197001234"}\n', True),
        (b'{"amount": 5001, "operator": "mtn", "phone_number": "2290197001234"}', False),
        (b'{"amount": 5000, "operator": "mtn", "phone_number": "2290197001234", "metadata": {}}', False),
    ],
)
async def test_bodies_are_compared_by_what_they_say(service: ServiceFixture, again: bytes, is_same: bool) -> None:
    merchant = await service.merchant()
    first = await post(merchant, "/payments", b'{"amount": 5000, "operator": "mtn", "phone_number": "2290197001234"}')
    answer = await post(merchant, "/payments", again)
    if is_same:
        assert answer.data["reference"] == first.data["reference"]
    else:
        check_error(answer, "conflict")
        assert answer.error["reason"] == "idempotency_key_reused"
    assert await total(merchant) == 1


@pytest.mark.parametrize(
    ("first", "again", "is_same"),
    [
        (b"1234567890123456789012345678901", b"1234567890123456789012345678902", False),
        (b"1", b'["1"]', False),
        (b"1", b'"1"', False),
        (b"1.50", b"15e-1", True),
        (b"1e9999999", b"1e9999998", False),
        (b'{"b": 1, "a": 2}', b'{"a": 2.0, "\\u0062": 1}', True),
    ],
)
async def test_numbers_are_compared_exactly(
    shared_service: ServiceFixture, first: bytes, again: bytes, is_same: bool
) -> None:
    merchant = await shared_service.merchant()
    body = b'{"amount": 5000, "operator": "mtn", "phone_number": "2290197001234", "metadata": {"x": %b}}'
    answers = [await post(merchant, "/payments", body % value) for value in (first, again)]
    assert [answer.status for answer in answers] == [201, 201 if is_same else 409]


@pytest.mark.both_databases
async def test_a_key_that_came_at_once_with_an_old_order_and_with_new_ones(service: ServiceFixture) -> None:
    """What the first claims, the others may use, because it creates nothing: one of them gets it."""
    merchant = await service.merchant()
    await merchant.post("/payments", order(external_id="old"))
    bodies = [order(external_id="old"), order(amount=700), order(amount=800), order(external_id="new")]
    answers = await asyncio.gather(*(post(merchant, "/payments", bodies[n % 4]) for n in range(24)))
    refused = {answer.error["reason"] for answer in answers if answer.status != 201}
    assert (refused, await total(merchant)) == ({"idempotency_key_reused"}, 2)


async def test_a_refused_initiation_is_refused_again(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    refused = order(phone_number="2290197000001")
    first, again = [await post(merchant, "/payments", refused) for _ in range(2)]
    assert (again.status, again.error) == (402, first.error)
    # With an external_id it is the payment, as without a key.
    named = {**refused, "external_id": "a"}
    assert (await post(merchant, "/payments", named, "k2")).status == 402
    again = await post(merchant, "/payments", named, "k2")
    assert (again.status, again.data["status"]) == (201, "failed")


async def test_a_payment_that_failed_later_is_answered_as_it_is(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    fails = order(phone_number="2290197000003")
    assert (await post(merchant, "/payments", fails)).data["status"] == "pending"
    await service.run_worker()
    again = await post(merchant, "/payments", fails)
    assert (again.status, again.data["status"]) == (201, "failed")


async def test_what_created_nothing_uses_no_key(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    check_error(await post(merchant, "/payments", order(amount=0)), "invalid_request")
    assert (await post(merchant, "/payments", order())).status == 201
    check_error(await post(merchant, "/payments/unknown/refund", {}), "not_found")
    assert await kept(service) == 1
    # An external_id is looked up first, and the key stays free.
    await merchant.post("/payments", order(external_id="a", amount=700))
    assert (await post(merchant, "/payments", order(external_id="a"), "k2")).data["amount"] == 700
    assert await kept(service) == 1
    assert (await post(merchant, "/payments", order(external_id="b"), "k2")).data["amount"] == 5000


async def test_a_frozen_wallet_uses_no_key(live_service: ServiceFixture) -> None:
    merchant = (await live_service.merchant()).live
    async with live_service.ctx.db.transaction() as tx:
        await wallets.set_wallet_status(tx, merchant.id, "live", "XOF", FROZEN, live_service.clock.now())
    for _ in range(2):
        answer = await post(merchant, "/payments", order())
        check_error(answer, "conflict")
        assert answer.error["reason"] == "wallet_not_active"
    assert await kept(live_service) == 0


async def test_keys_are_a_merchants_of_one_environment_and_route(
    live_service: ServiceFixture, operator: ScriptedProvider
) -> None:
    merchant, other = await live_service.merchant(), await live_service.merchant()
    clients = (merchant, merchant.live, other)
    payments = [(await post(each, "/payments", order())).data["reference"] for each in clients]
    assert len(set(payments)) == 3
    assert (await post(merchant.live, "/payment-links", LINK)).status == 201
    # Another key of the merchant is the same caller.
    rotated = await key_with(live_service, merchant, "live")
    assert (await post(rotated, "/payments", order())).data["reference"] == payments[1]


@pytest.mark.both_databases
@pytest.mark.parametrize("external_id", [None, "cotisation"])
async def test_a_repeated_link(service: ServiceFixture, external_id: str | None) -> None:
    merchant = (await service.merchant()).live
    body = {**LINK, "external_id": external_id}
    answers = await asyncio.gather(*(post(merchant, "/payment-links", body) for _ in range(8)))
    assert {(answer.status, answer.data["id"]) for answer in answers} == {(201, answers[0].data["id"])}
    assert await total(merchant, "/payment-links") == 1
    other = await post(merchant, "/payment-links", {**LINK, "amount": 2600})
    check_error(other, "conflict")
    assert (other.error["reason"], await total(merchant, "/payment-links")) == ("idempotency_key_reused", 1)


@pytest.mark.both_databases
async def test_a_repeated_refund(live_service: ServiceFixture, operator: ScriptedProvider) -> None:
    merchant = (await live_service.merchant()).live
    operator.script("status", done)
    for name in ("a", "b"):
        await merchant.pay(external_id=name)
        await merchant.get(f"/payments/{name}")
    answers = await asyncio.gather(*(post(merchant, "/payments/a/refund", None) for _ in range(8)))
    assert {(answer.status, answer.data["reference"]) for answer in answers} == {(201, answers[0].data["reference"])}
    # Of another payment: another request. Without the key: the payment has its refund.
    other = await post(merchant, "/payments/b/refund", None)
    assert (other.status, other.error["reason"]) == (409, "idempotency_key_reused")
    without = await merchant.post("/payments/a/refund")
    assert (without.status, without.error["reason"]) == (409, "already_refunded")
    await live_service.run_worker()
    again = await post(merchant, "/payments/a/refund", {})
    assert again.data == (await merchant.get(f"/refunds/{answers[0].data['reference']}")).data
    assert len(operator.refund_requests) == 1


@pytest.mark.parametrize("key", ["", "é", "x" * 256, "a\tb"])
async def test_a_malformed_key_is_refused(shared_service: ServiceFixture, key: str) -> None:
    merchant = await shared_service.merchant()
    answer = await post(merchant, "/payments", order(), key)
    check_error(answer, "invalid_request")
    assert list(answer.error["details"]) == ["Idempotency-Key"]


@pytest.mark.both_databases
async def test_keys_are_kept_for_a_day_at_least(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await post(merchant, "/payments", order())
    for days, left in ((1.9, 1), (2.1, 0)):
        pruning = Pruning(service.ctx.db, service.ctx.settings)
        await pruning.step(later(service.clock.now(), round(days * DAY)))
        assert await kept(service) == left
