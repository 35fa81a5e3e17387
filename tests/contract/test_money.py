"""Decisions D20 to D31 of docs/decisions.md, as a merchant sees them over HTTP: a test is named after each."""

import asyncio
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from guichet.clock import SECOND, iso
from guichet.domain.money import Hundredths
from guichet.domain.posting_rules import ACTIVE, CLOSED, FROZEN, WALLET, Movement, Posting
from guichet.ledger import postings, wallets
from guichet.providers.base import Accepted, Charge, StatusResult, Succeeded, Unknown
from tests.contract.shapes import check_error, check_resource, order
from tests.contract.webhooks import listen, notifications
from tests.fakes.http_server import Peer
from tests.fakes.scripted_provider import ScriptedOperator, done, refused
from tests.service_fixture import Account, House


async def _set_wallet(house: House, account: Account, status: str) -> None:
    """What `guichet wallet` does."""
    async with house.ctx.db.transaction() as tx:
        await wallets.set_wallet_status(tx, account.id, "live", "XOF", status, house.clock.now())


async def _events(house: House, peer: Peer, secret: str) -> list[str]:
    await house.settle()
    return [each.event for each in notifications(peer, secret, house.clock.now() // SECOND)]


async def test_d20_a_refusal_at_initiation_is_recorded_and_told_once(
    live_house: House, operator: ScriptedOperator, receiver: Peer
) -> None:
    merchant = await live_house.merchant()
    operator.script("initiate", refused)
    for shop, phone in ((merchant, "22997000001"), (merchant.live, "22997001234")):
        secret = await listen(shop, receiver)
        check_error(await shop.post("/payments", order(phone_number=phone, external_id="a")), "payment_failed")
        read = check_resource("payment", (await shop.get("/payments/a")).data)
        assert (read["status"], read["updated_at"] >= read["created_at"]) == ("failed", True)
        assert await _events(live_house, receiver, secret) == []
        assert (await shop.get("/webhooks/deliveries")).body["meta"]["total"] == 0


def _too_little(charge: Charge) -> StatusResult:
    return Succeeded(Hundredths(charge.amount - 100), charge.currency)


def _wrong_currency(charge: Charge) -> StatusResult:
    return Succeeded(charge.amount, "XAF")


def _no_amount(charge: Charge) -> StatusResult:
    return Succeeded(None, None)


def _unclear(charge: Charge) -> StatusResult:
    return Unknown("timeout")


@pytest.mark.parametrize("word", [_unclear, _too_little, _wrong_currency, _no_amount])
async def test_d21_what_is_unclear_stays_pending(
    live_house: House, operator: ScriptedOperator, word: Callable[[Charge], StatusResult]
) -> None:
    shop = (await live_house.merchant()).live
    operator.script("initiate", lambda charge: Unknown("timeout"))
    operator.script("status", word)
    assert (await shop.pay(external_id="a"))["status"] == "pending"
    await live_house.settle(80 * 3600)
    assert (await shop.get("/payments/a")).data["status"] == "pending"
    assert (await shop.get("/balance")).data["balance"] == 0
    operator.script("status", done)
    await live_house.settle(86_400)
    assert (await shop.get("/payments?status=succeeded")).body["meta"]["total"] == 1
    assert (await shop.get("/balance")).data["balance"] == 5000


async def test_d22_one_refund_ever_for_the_whole_total(live_house: House, operator: ScriptedOperator) -> None:
    """The wallet gives `amount`, the service its fee: the customer gets what was debited."""
    shop = (await live_house.merchant()).live
    operator.script("status", done)
    for name in ("a", "b"):
        await shop.pay(external_id=name)
        await shop.get(f"/payments/{name}")
    assert (await shop.get("/balance")).data["balance"] == 10_000
    refund = (await shop.post("/payments/a/refund")).data
    assert refund["amount"] == (await shop.get("/payments/a")).data["total_amount"] == 5087.5
    assert (await shop.get("/balance")).data["balance"] == 5000
    operator.script("refund_status", done)
    await live_house.settle(60)
    assert (await shop.get(f"/refunds/{refund['reference']}")).data["status"] == "succeeded"
    assert (await shop.get("/balance")).data["balance"] == 5000
    check_error(await shop.post("/payments/a/refund"), "conflict")


async def test_d23_a_refund_that_the_wallet_does_not_cover(
    live_house: House, operator: ScriptedOperator, receiver: Peer
) -> None:
    """A withdrawal, for which the contract has no endpoint, took a part of it."""
    shop = (await live_house.merchant()).live
    secret = await listen(shop, receiver)
    await shop.pay(external_id="a")
    operator.script("status", done)
    assert (await shop.get("/payments/a")).data["status"] == "succeeded"
    withdrawal = [Posting("amount", WALLET, "bank", 100)]
    async with live_house.ctx.db.transaction() as tx:
        now = live_house.clock.now()
        await postings.post(tx, [Movement(shop.id, "live", "XOF", "withdrawal", 1, withdrawal, now)])
    refund = await shop.post("/payments/a/refund")
    assert (refund.status, refund.data["status"]) == (201, "pending")
    assert (await _events(live_house, receiver, secret)) == ["payment.succeeded", "refund.failed"]
    assert (await shop.get(f"/refunds/{refund.data['reference']}")).data["status"] == "failed"
    assert operator.reversals == []
    assert (await shop.get("/balance")).data["balance"] == 4999
    assert (await shop.get("/payments/a")).data["status"] == "succeeded"


@pytest.mark.parametrize("status", [FROZEN, CLOSED])
async def test_d24_outside_actif_no_movement_is_accepted(
    live_house: House, operator: ScriptedOperator, status: str
) -> None:
    merchant = await live_house.merchant()
    shop = merchant.live
    operator.script("status", done)
    for name in ("done", "waiting"):
        await shop.pay(external_id=name)
    assert (await shop.get("/payments/done")).data["status"] == "succeeded"
    await _set_wallet(live_house, shop, status)
    assert (await shop.get("/balance")).data["status"] == status
    check_error(await shop.post("/payments", order(external_id="new")), "conflict")
    check_error(await shop.get("/payments/new"), "not_found")
    check_error(await shop.post("/payments/done/refund"), "conflict")
    assert (await shop.post("/payments", order(external_id="done"))).status == 201
    assert (await merchant.post("/payments", order())).status == 201
    assert (await shop.get("/payments/waiting")).data["status"] == "succeeded"
    assert (await shop.get("/balance")).data["balance"] == 5000
    await live_house.settle(10)
    assert (await shop.get("/balance")).data["balance"] == 5000
    await _set_wallet(live_house, shop, ACTIVE)
    operator.script("refund_status", done)
    refund = (await shop.post("/payments/waiting/refund")).data
    await live_house.settle(60)
    assert (await shop.get(f"/refunds/{refund['reference']}")).data["status"] == "succeeded"
    assert (await shop.get("/balance")).data["balance"] == 5000


async def test_d25_the_test_balance_counts_what_is_succeeded_now(house: House) -> None:
    shop = await house.merchant()
    for number, (amount, currency) in enumerate(((5000, "XOF"), (700, "XOF"), (12.34, "EUR"))):
        await shop.pay("0000", amount=amount, currency=currency, external_id=f"{number}")
    await shop.pay("0003")
    await shop.pay("0002")
    assert (await shop.get("/balance")).data["balance"] == 0
    await house.settle()

    async def balance(currency: str) -> tuple[Any, Any, Any]:
        data = check_resource("balance", (await shop.get(f"/balance?currency={currency}")).data)
        return data["balance"], data["balance_minor"], data["status"]

    assert await balance("XOF") == (5700, 570_000, "Actif")
    assert await balance("eur") == (12.34, 1234, "Actif")
    assert (await shop.post("/payments/0/refund")).status == 201
    assert await balance("XOF") == (700, 70_000, "Actif")
    await house.settle(3600)
    assert await balance("XOF") == (700, 70_000, "Actif")


async def test_d26_a_currency_that_never_moved(house: House) -> None:
    born = iso(house.clock.now())
    shop = await house.merchant()
    house.clock.advance(100)
    for currency in ("XOF", "EUR"):
        for account in (shop, shop.live):
            data = (await account.get(f"/balance?currency={currency}")).data
            assert (data["balance"], data["status"], data["updated_at"]) == (0, "Actif", born)
    await shop.pay("0000")
    await house.settle()
    moved = (await shop.get("/balance")).data["updated_at"]
    assert moved == iso(house.clock.now())
    assert (await shop.get("/balance?currency=EUR")).data["updated_at"] == born


async def test_d27_operators_without_decimals_are_asked_for_a_rounded_total(
    live_house: House, operator: ScriptedOperator
) -> None:
    shop = (await live_house.merchant()).live
    for amount, currency, asked in (
        (5000, "XOF", 5088_00),
        (20, "XAF", 20_00),
        (5000, "EUR", 5087_50),
        (99.99, "USD", 101_74),
    ):
        payment = await shop.pay(amount=amount, currency=currency)
        charge = operator.charges[-1]
        assert (charge.amount, charge.currency) == (asked, currency)
        assert payment["total_amount"] == float(Decimal(str(amount)) + Decimal(str(payment["fee_amount"])))


async def test_d28_identifiers_are_ten_digits_in_order(house: House) -> None:
    shops = [await house.merchant(), await house.merchant()]
    seen = [(await shops[number % 2].pay())["identifier"] for number in range(6)]
    assert all(len(identifier) == 10 and identifier.isdigit() for identifier in seen)
    assert sorted(set(seen)) == seen


async def test_d28_identifiers_are_distinct_under_load(house: House) -> None:
    shop = await house.merchant()
    made = await asyncio.gather(*(shop.pay() for _ in range(32)))
    assert len({payment["identifier"] for payment in made}) == 32


async def test_d29_the_refusal_of_0003_is_there_at_once(house: House) -> None:
    shop = await house.merchant()
    for ending, status in (("0000", "succeeded"), ("0003", "failed")):
        payment = await shop.pay(ending)
        assert payment["status"] == "pending"
        assert (await shop.get(f"/payments/{payment['reference']}")).data["status"] == status


async def test_d31_an_operators_own_page_is_told_where_a_payment_is_made(
    live_house: House, operator: ScriptedOperator
) -> None:
    shop = (await live_house.merchant()).live
    page = "https://pay.operator.example/s/1"
    operator.script("initiate", lambda charge: Accepted(provider_reference=charge.reference, redirect_url=page))
    created = await shop.pay(external_id="a")
    check_resource("payment", created, also=["redirect_url"])
    assert (created["redirect_url"], created["payment_url"]) == (page, None)
    again = (await shop.post("/payments", order(external_id="a"))).data
    assert check_resource("payment", again, also=["redirect_url"])["redirect_url"] == page  # D60
    for answer in ((await shop.get("/payments/a")).data, (await shop.get("/payments")).data[0]):
        assert check_resource("payment", answer)["payment_url"] is None
    card = (await shop.post("/payments", order("VISA", external_id="c"))).data
    assert check_resource("payment", card)["payment_url"] == page
    assert (await shop.post("/payments", order("VISA", external_id="c"))).data["payment_url"] is None
