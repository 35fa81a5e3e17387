"""Decisions D20 to D31 of docs/decisions.md, as a merchant sees them over HTTP: a test is named after each."""

import asyncio
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from guichet.clock import SECOND, iso
from guichet.domain.money import Hundredths
from guichet.domain.posting_rules import ACTIVE, CLOSED, FROZEN, WALLET, Movement, Posting, WalletStatus
from guichet.ledger import postings, wallets
from guichet.providers.base import Accepted, Charge, StatusResult, Succeeded, Unknown
from tests.contract.shapes import check_error, check_resource, order
from tests.contract.webhooks import listen, notifications
from tests.fakes.http_server import ScriptedServer
from tests.fakes.scripted_provider import ScriptedProvider, done, refused
from tests.service_fixture import MerchantClient, ServiceFixture


async def _set_wallet(service: ServiceFixture, account: MerchantClient, status: WalletStatus) -> None:
    """What `guichet wallet` does."""
    async with service.ctx.db.transaction() as tx:
        await wallets.set_wallet_status(tx, account.id, "live", "XOF", status, service.clock.now())


async def _events(service: ServiceFixture, server: ScriptedServer, secret: str) -> list[str]:
    await service.run_worker()
    return [each.event for each in notifications(server, secret, service.clock.now() // SECOND)]


async def test_d20_a_refusal_at_initiation_is_recorded_and_answered_once(
    live_service: ServiceFixture, operator: ScriptedProvider, receiver: ScriptedServer
) -> None:
    merchant = await live_service.merchant()
    operator.script("initiate", refused)
    for merchant_client, phone in ((merchant, "22997000001"), (merchant.live, "22997001234")):
        secret = await listen(merchant_client, receiver)
        check_error(
            await merchant_client.post("/payments", order(phone_number=phone, external_id="a")), "payment_failed"
        )
        read = check_resource("payment", (await merchant_client.get("/payments/a")).data)
        assert (read["status"], read["updated_at"] >= read["created_at"]) == ("failed", True)
        assert await _events(live_service, receiver, secret) == []
        assert (await merchant_client.get("/webhooks/deliveries")).body["meta"]["total"] == 0


def _too_little(charge: Charge) -> StatusResult:
    return Succeeded(Hundredths(charge.amount - 100), charge.payment.currency)


def _wrong_currency(charge: Charge) -> StatusResult:
    return Succeeded(charge.amount, "XAF")


def _no_amount(charge: Charge) -> StatusResult:
    return Succeeded(None, None)


def _unclear(charge: Charge) -> StatusResult:
    return Unknown("timeout")


@pytest.mark.parametrize("word", [_unclear, _too_little, _wrong_currency, _no_amount])
async def test_d21_an_unknown_result_stays_pending(
    live_service: ServiceFixture, operator: ScriptedProvider, word: Callable[[Charge], StatusResult]
) -> None:
    merchant_client = (await live_service.merchant()).live
    operator.script("initiate", lambda charge: Unknown("timeout"))
    operator.script("status", word)
    assert (await merchant_client.pay(external_id="a"))["status"] == "pending"
    await live_service.run_worker(80 * 3600)
    assert (await merchant_client.get("/payments/a")).data["status"] == "pending"
    assert (await merchant_client.get("/balance")).data["balance"] == 0
    operator.script("status", done)
    await live_service.run_worker(86_400)
    assert (await merchant_client.get("/payments?status=succeeded")).body["meta"]["total"] == 1
    assert (await merchant_client.get("/balance")).data["balance"] == 5000


async def test_d22_one_refund_ever_for_the_whole_total(
    live_service: ServiceFixture, operator: ScriptedProvider
) -> None:
    """The wallet gives `amount`, the service its fee: the customer gets what was debited."""
    merchant_client = (await live_service.merchant()).live
    operator.script("status", done)
    for name in ("a", "b"):
        await merchant_client.pay(external_id=name)
        await merchant_client.get(f"/payments/{name}")
    assert (await merchant_client.get("/balance")).data["balance"] == 10_000
    refund = (await merchant_client.post("/payments/a/refund")).data
    assert refund["amount"] == (await merchant_client.get("/payments/a")).data["total_amount"] == 5087.5
    assert (await merchant_client.get("/balance")).data["balance"] == 5000
    operator.script("refund_status", done)
    await live_service.run_worker(60)
    assert (await merchant_client.get(f"/refunds/{refund['reference']}")).data["status"] == "succeeded"
    assert (await merchant_client.get("/balance")).data["balance"] == 5000
    check_error(await merchant_client.post("/payments/a/refund"), "conflict")


async def test_d23_a_refund_that_the_wallet_does_not_cover_is_refused(
    live_service: ServiceFixture, operator: ScriptedProvider, receiver: ScriptedServer
) -> None:
    """A withdrawal, for which the contract has no endpoint, took a part of it."""
    merchant_client = (await live_service.merchant()).live
    secret = await listen(merchant_client, receiver)
    await merchant_client.pay(external_id="a")
    operator.script("status", done)
    assert (await merchant_client.get("/payments/a")).data["status"] == "succeeded"
    withdrawal = [Posting("amount", WALLET, "bank", Hundredths(100))]
    async with live_service.ctx.db.transaction() as tx:
        now = live_service.clock.now()
        await postings.post(tx, [Movement(merchant_client.id, "live", "XOF", "withdrawal", 1, withdrawal, now)])
    refund = await merchant_client.post("/payments/a/refund")
    assert (refund.status, refund.data["status"]) == (201, "pending")
    assert (await _events(live_service, receiver, secret)) == ["payment.succeeded", "refund.failed"]
    assert (await merchant_client.get(f"/refunds/{refund.data['reference']}")).data["status"] == "failed"
    assert operator.refund_requests == []
    assert (await merchant_client.get("/balance")).data["balance"] == 4999
    assert (await merchant_client.get("/payments/a")).data["status"] == "succeeded"


@pytest.mark.parametrize("status", [FROZEN, CLOSED])
async def test_d24_outside_actif_no_movement_is_accepted(
    live_service: ServiceFixture, operator: ScriptedProvider, status: WalletStatus
) -> None:
    merchant = await live_service.merchant()
    merchant_client = merchant.live
    operator.script("status", done)
    for name in ("done", "waiting"):
        await merchant_client.pay(external_id=name)
    assert (await merchant_client.get("/payments/done")).data["status"] == "succeeded"
    await _set_wallet(live_service, merchant_client, status)
    assert (await merchant_client.get("/balance")).data["status"] == status
    check_error(await merchant_client.post("/payments", order(external_id="new")), "conflict")
    check_error(await merchant_client.get("/payments/new"), "not_found")
    check_error(await merchant_client.post("/payments/done/refund"), "conflict")
    assert (await merchant_client.post("/payments", order(external_id="done"))).status == 201
    assert (await merchant.post("/payments", order())).status == 201
    assert (await merchant_client.get("/payments/waiting")).data["status"] == "succeeded"
    assert (await merchant_client.get("/balance")).data["balance"] == 5000
    await live_service.run_worker(10)
    assert (await merchant_client.get("/balance")).data["balance"] == 5000
    await _set_wallet(live_service, merchant_client, ACTIVE)
    operator.script("refund_status", done)
    refund = (await merchant_client.post("/payments/waiting/refund")).data
    await live_service.run_worker(60)
    assert (await merchant_client.get(f"/refunds/{refund['reference']}")).data["status"] == "succeeded"
    assert (await merchant_client.get("/balance")).data["balance"] == 5000


async def test_d25_the_test_balance_counts_what_is_succeeded_now(service: ServiceFixture) -> None:
    merchant_client = await service.merchant()
    for number, (amount, currency) in enumerate(((5000, "XOF"), (700, "XOF"), (12.34, "EUR"))):
        await merchant_client.pay("0000", amount=amount, currency=currency, external_id=f"{number}")
    await merchant_client.pay("0003")
    await merchant_client.pay("0002")
    assert (await merchant_client.get("/balance")).data["balance"] == 0
    await service.run_worker()

    async def balance(currency: str) -> tuple[Any, Any, Any]:
        data = check_resource("balance", (await merchant_client.get(f"/balance?currency={currency}")).data)
        return data["balance"], data["balance_minor"], data["status"]

    assert await balance("XOF") == (5700, 570_000, "Actif")
    assert await balance("eur") == (12.34, 1234, "Actif")
    assert (await merchant_client.post("/payments/0/refund")).status == 201
    assert await balance("XOF") == (700, 70_000, "Actif")
    await service.run_worker(3600)
    assert await balance("XOF") == (700, 70_000, "Actif")


async def test_d26_a_currency_without_movements_has_a_zero_balance(service: ServiceFixture) -> None:
    born = iso(service.clock.now())
    merchant_client = await service.merchant()
    service.clock.advance(100)
    for currency in ("XOF", "EUR"):
        for account in (merchant_client, merchant_client.live):
            data = (await account.get(f"/balance?currency={currency}")).data
            assert (data["balance"], data["status"], data["updated_at"]) == (0, "Actif", born)
    await merchant_client.pay("0000")
    await service.run_worker()
    moved = (await merchant_client.get("/balance")).data["updated_at"]
    assert moved == iso(service.clock.now())
    assert (await merchant_client.get("/balance?currency=EUR")).data["updated_at"] == born


async def test_d27_operators_without_decimals_debit_a_rounded_total(
    live_service: ServiceFixture, operator: ScriptedProvider
) -> None:
    merchant_client = (await live_service.merchant()).live
    for amount, currency, debited in (
        (5000, "XOF", 5088_00),
        (20, "XAF", 20_00),
        (5000, "EUR", 5087_50),
        (99.99, "USD", 101_74),
    ):
        payment = await merchant_client.pay(amount=amount, currency=currency)
        charge = operator.charges[-1]
        assert (charge.amount, charge.payment.currency) == (debited, currency)
        assert payment["total_amount"] == float(Decimal(str(amount)) + Decimal(str(payment["fee_amount"])))


async def test_d28_identifiers_are_ten_digits_in_order(shared_service: ServiceFixture) -> None:
    shops = [await shared_service.merchant(), await shared_service.merchant()]
    seen = [(await shops[number % 2].pay())["identifier"] for number in range(6)]
    assert all(len(identifier) == 10 and identifier.isdigit() for identifier in seen)
    assert sorted(set(seen)) == seen


async def test_d28_identifiers_are_distinct_under_load(service: ServiceFixture) -> None:
    merchant_client = await service.merchant()
    made = await asyncio.gather(*(merchant_client.pay() for _ in range(32)))
    assert len({payment["identifier"] for payment in made}) == 32


async def test_d29_the_refusal_of_0003_is_there_at_once(shared_service: ServiceFixture) -> None:
    merchant_client = await shared_service.merchant()
    for ending, status in (("0000", "succeeded"), ("0003", "failed")):
        payment = await merchant_client.pay(ending)
        assert payment["status"] == "pending"
        assert (await merchant_client.get(f"/payments/{payment['reference']}")).data["status"] == status


async def test_d31_the_page_of_an_operator_is_in_the_payment_while_the_customer_can_go_there(
    live_service: ServiceFixture, operator: ScriptedProvider
) -> None:
    merchant_client = (await live_service.merchant()).live
    page = "https://pay.operator.example/s/1"
    operator.script("initiate", lambda charge: Accepted(provider_reference=charge.payment.reference, redirect_url=page))
    created = await merchant_client.pay(external_id="a")
    check_resource("payment", created, also=["redirect_url"])
    assert (created["redirect_url"], created["payment_url"]) == (page, None)
    again = (await merchant_client.post("/payments", order(external_id="a"))).data
    assert check_resource("payment", again, also=["redirect_url"])["redirect_url"] == page
    for answer in ((await merchant_client.get("/payments/a")).data, (await merchant_client.get("/payments")).data[0]):
        assert check_resource("payment", answer, also=["redirect_url"])["payment_url"] is None
        assert answer["redirect_url"] == page
    operator.script("status", done)
    for answer in ((await merchant_client.get("/payments/a")).data, (await merchant_client.get("/payments")).data[0]):
        assert check_resource("payment", answer)["status"] == "succeeded"
    card = (await merchant_client.post("/payments", order("VISA", external_id="c"))).data
    assert check_resource("payment", card)["payment_url"] == page
    assert (await merchant_client.post("/payments", order("VISA", external_id="c"))).data["payment_url"] is None
    operator.script("status", Accepted())
    read = (await merchant_client.get("/payments/c")).data
    assert (check_resource("payment", read)["status"], read["payment_url"]) == ("pending", None)
