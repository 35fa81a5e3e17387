"""What a payment says about itself (why it failed, what is debited), and what 402 and 409 say, over HTTP."""

import json
from typing import Any

import pytest

from guichet.clock import SECOND
from guichet.domain.failures import REFUSAL_REASONS, RefusalReason
from guichet.domain.posting_rules import FROZEN
from guichet.ledger import wallets
from guichet.providers.base import Accepted, NotProcessed, Refused
from tests.contract.shapes import check_error, check_resource, order
from tests.contract.webhooks import listen, notifications
from tests.fakes.http_server import ScriptedServer
from tests.fakes.scripted_provider import ScriptedProvider, done
from tests.service_fixture import MerchantClient, ServiceFixture

#: What can be the result of a live initiation and is the operator's or the request's, not ours.
REFUSALS: list[RefusalReason] = [
    reason for reason in REFUSAL_REASONS if reason not in ("configuration", "not_connected", "no_refund")
]


async def test_a_402_names_the_payment_and_says_why(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    error = check_error(await merchant.post("/payments", order(phone_number="22997000001")), "payment_failed")
    assert error["reason"] == "other"
    payment = check_resource("payment", (await merchant.get(f"/payments/{error['reference']}")).data)
    assert (payment["status"], payment["failure"]["code"]) == ("failed", error["reason"])
    assert payment["failure"]["message"] == error["message"] == REFUSAL_REASONS["refused"].message
    assert (await merchant.get("/payments")).data == [payment]


@pytest.mark.parametrize("reason", REFUSALS)
async def test_every_refusal_at_initiation_has_its_code_and_sentence(
    live_service: ServiceFixture, operator: ScriptedProvider, reason: RefusalReason
) -> None:
    merchant = (await live_service.merchant()).live
    for result in (Refused(reason), NotProcessed(reason)):
        operator.script("initiate", result)
        error = check_error(await merchant.post("/payments", order()), "payment_failed")
        expected = REFUSAL_REASONS[reason]
        assert (error["reason"], error["message"]) == (expected.code, expected.message)
        failure = (await merchant.get(f"/payments/{error['reference']}")).data["failure"]
        assert failure == {"code": expected.code, "message": expected.message}


async def test_a_webhook_says_why_the_payment_failed(service: ServiceFixture, receiver: ScriptedServer) -> None:
    merchant = await service.merchant()
    secret = await listen(merchant, receiver)
    for ending in ("0003", "0000"):
        await merchant.pay(ending)
        await service.run_worker()
    failed, succeeded = notifications(receiver, secret, service.clock.now() // SECOND)
    assert (failed.event, failed.data["failure"]["code"]) == ("payment.failed", "rejected_by_customer")
    assert (succeeded.event, succeeded.data["failure"]) == ("payment.succeeded", None)
    assert (await merchant.get(f"/payments/{failed.data['reference']}")).data == failed.data


async def test_what_is_added_to_a_webhook_stands_at_its_end(service: ServiceFixture, receiver: ScriptedServer) -> None:
    merchant = await service.merchant()
    await listen(merchant, receiver)
    await merchant.pay("0000")
    await service.run_worker()
    [received] = receiver.received
    fields = list(json.loads(received.body)["data"])
    assert fields[-4:] == ["updated_at", "debited_amount", "failure", "payment_link"]


async def test_only_a_failed_payment_has_a_failure(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    assert (await merchant.pay("0000", external_id="a"))["failure"] is None
    assert (await merchant.get("/payments/a")).data["failure"] is None
    await merchant.post("/payments/a/refund")
    refunded = (await merchant.get("/payments/a")).data
    assert (refunded["status"], refunded["failure"]) == ("refunded", None)


@pytest.mark.parametrize(
    ("fields", "total", "debited"),
    [
        ({"amount": 5000}, 5087.5, 5088),
        ({"amount": 1250, "currency": "XAF", "operator": "mtn_cg"}, 1287.5, 1288),
        ({"amount": 1000}, 1017.5, 1018),
        ({"amount": 4000}, 4070, 4070),
        ({"amount": 20.01, "currency": "EUR"}, 20.36, 20.36),
    ],
)
async def test_the_debited_amount_is_what_the_operator_debits(
    live_service: ServiceFixture, operator: ScriptedProvider, fields: dict[str, Any], total: float, debited: float
) -> None:
    live, test = (await live_service.merchant()).live, await live_service.merchant()
    for merchant in (live, test):
        payment = (await merchant.post("/payments", order(**{"operator": "mtn", **fields}))).data
        assert (payment["total_amount"], payment["debited_amount"]) == (total, debited)
    [charge] = operator.charges
    assert charge.amount == round(debited * 100)


async def test_a_card_is_debited_whole_francs_too(live_service: ServiceFixture, operator: ScriptedProvider) -> None:
    operator.script("initiate", Accepted(redirect_url="https://cards.example/1"))
    merchant = await live_service.merchant()
    for account in (merchant, merchant.live):
        payment = (await account.post("/payments", order("VISA", amount=999))).data
        assert (payment["total_amount"], payment["debited_amount"]) == (1033.97, 1034)
    assert operator.charges[0].amount == 1034_00


# --- 409 --------------------------------------------------------------------------------------------------------------


async def _refunded(merchant: MerchantClient) -> Any:
    await merchant.pay("0000", external_id="a")
    assert (await merchant.get("/payments/a")).data["status"] == "succeeded"
    return (await merchant.post("/payments/a/refund")).data


async def test_a_second_refund_names_the_first(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    refund = await _refunded(merchant)
    error = check_error(await merchant.post("/payments/a/refund"), "conflict")
    assert (error["reason"], error["reference"]) == ("already_refunded", refund["reference"])
    assert (await merchant.get(f"/refunds/{error['reference']}")).data == refund


async def test_a_second_refund_names_the_first_while_that_is_pending_and_once_it_failed(
    live_service: ServiceFixture, operator: ScriptedProvider
) -> None:
    operator.script("status", done)
    operator.script("refund", Refused("refused"))
    merchant = (await live_service.merchant()).live
    refund = await _refunded(merchant)
    for status in ("pending", "failed"):
        assert (await merchant.get("/refunds")).data[0]["status"] == status
        error = check_error(await merchant.post("/payments/a/refund"), "conflict")
        assert (error["reason"], error["reference"]) == ("already_refunded", refund["reference"])
        await live_service.run_worker(60)


async def test_a_payment_that_is_not_succeeded_cannot_be_refunded(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    await merchant.pay("0002", external_id="pending")
    await merchant.post("/payments", order(phone_number="22997000001", external_id="failed"))
    for name in ("pending", "failed"):
        error = check_error(await merchant.post(f"/payments/{name}/refund"), "conflict")
        assert error["reason"] == "not_refundable"


async def test_a_frozen_wallet_is_named(live_service: ServiceFixture, operator: ScriptedProvider) -> None:
    operator.script("status", done)
    merchant = (await live_service.merchant()).live
    await merchant.pay(external_id="a")
    await merchant.get("/payments/a")
    async with live_service.ctx.db.transaction() as tx:
        await wallets.set_wallet_status(tx, merchant.id, "live", "XOF", FROZEN, live_service.clock.now())
    for answer in (await merchant.post("/payments", order()), await merchant.post("/payments/a/refund")):
        assert check_error(answer, "conflict")["reason"] == "wallet_not_active"
