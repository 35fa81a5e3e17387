"""What a frozen wallet keeps, and the rounding to amounts that an operator can move (D27)."""

from dataclasses import replace

import pytest

from guichet.domain.posting_rules import WalletStatus
from guichet.providers.base import Charge, Succeeded
from tests.fakes.scripted_provider import done
from tests.invariants import check_books
from tests.payments.conftest import LivePayments


@pytest.mark.parametrize("closed", ["Gelé", "Fermé"])
async def test_a_payment_to_a_frozen_wallet_is_credited_when_it_reopens(
    live: LivePayments, closed: WalletStatus
) -> None:
    live.first.script("status", done)
    payment = await live.merchant.pay(external_id="e")
    await live.set_wallet(closed)
    refused = await live.merchant.post("/payments", {"amount": 5000, "operator": "mtn", "phone_number": "22997001234"})
    assert (refused.status, refused.error["code"]) == (409, "conflict")
    assert len((await live.merchant.get("/payments")).data) == 1, "nothing is stored and no request is sent"
    assert len(live.first.references_of("initiate")) == 1
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "succeeded"
    assert await live.queued_events() == ["payment.succeeded"]
    assert await live.balance() == 0
    await check_books(live.ctx.db, events_queued=True)
    refund = await live.merchant.post("/payments/e/refund")
    assert (refund.status, refund.error["code"]) == (409, "conflict")
    await live.service.run_worker(3600)
    assert await live.balance() == 0
    await live.set_wallet("Actif")
    await live.service.run_worker(1)
    wallet = (await live.merchant.get("/balance")).data
    assert (wallet["balance"], wallet["balance_minor"], wallet["status"]) == (5000, 500_000, "Actif")
    await live.service.run_worker(3600)
    assert await live.balance() == 5000


async def test_a_suspended_credit_can_be_refunded_as_soon_as_the_wallet_reopens(live: LivePayments) -> None:
    """Before the worker has run: the only refund of a payment must not be lost to a race."""
    live.first.script("status", done)
    live.first.script("refund", done)
    payment = await live.merchant.pay()
    await live.set_wallet("Gelé")
    await live.service.run_worker(5)
    await live.set_wallet("Actif")
    assert (await live.merchant.post(f"/payments/{payment['reference']}/refund")).status == 201
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "refunded"
    assert await live.balance() == 0


async def test_a_frozen_wallet_does_not_stop_test_payments(live: LivePayments) -> None:
    await live.set_wallet("Gelé")
    test = replace(live.merchant, env="test")
    payment = await test.pay("0000")
    await live.service.run_worker()
    assert (await test.get(f"/payments/{payment['reference']}")).data["status"] == "succeeded"
    assert (await test.get("/balance")).data["status"] == "Actif"


@pytest.mark.parametrize(
    ("currency", "amount", "fee", "requested"),
    [
        ("XOF", 5000, 87.5, 508_800),
        ("XOF", 5030, 88.03, 511_800),
        ("XOF", 5060, 88.55, 514_900),
        ("XOF", 4000, 70, 407_000),
        ("XAF", 5001, 87.52, 508_900),
        ("EUR", 50.01, 0.88, 5_089),
    ],
)
async def test_the_rounding_of_a_debit_is_booked(
    live: LivePayments, currency: str, amount: float, fee: float, requested: int
) -> None:
    charges = []

    def look(charge: Charge) -> Succeeded:
        charges.append((charge.amount, charge.payment.currency))
        return done(charge)

    live.first.script("status", look)
    live.first.script("refund", done)
    payment = await live.merchant.pay(currency=currency, amount=amount)
    assert payment["fee_amount"] == fee
    await live.service.run_worker(5)
    assert charges == [(requested, currency)]
    assert await live.balance(currency) == amount
    await check_books(live.ctx.db, events_queued=True)
    await live.merchant.post(f"/payments/{payment['reference']}/refund")
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "refunded"
    assert await live.balance(currency) == 0
