"""A provider that moves money after the end was told: never silent, never credited by itself."""

from collections import Counter
from typing import Any

import pytest
from sqlalchemy import select

from guichet.db.tables import postings
from guichet.domain.audit_log import Actor, ActRefused
from guichet.domain.late_results import LateResult
from guichet.domain.money import Hundredths
from guichet.domain.payments import Payment, Refund
from guichet.domain.reconciliation import MATCHED, MISSING_HERE, Line
from guichet.incidents import repository as incidents
from guichet.late_money import decisions as late_decisions
from guichet.late_money import repository as store
from guichet.late_money.results import poll_ended
from guichet.ledger.audit import audit
from guichet.ledger.margin import margins
from guichet.ledger.reconciliation import reconcile
from guichet.payments import repository
from guichet.providers.base import (
    AlreadyRefunded,
    FloatEmpty,
    NotProcessed,
    Refused,
    Succeeded,
    Unknown,
)
from guichet.refunds import repository as refund_repository
from tests.fakes.scripted_provider import done, refused, taken
from tests.payments.conftest import LivePayments, stored
from tests.payments.test_empty_float import open_kinds
from tests.payments.test_refunds import paid, refund_of

HOUR, DAY = 3600, 86_400
AWA = Actor("Awa", "awa")


async def failed(live: LivePayments, **fields: Any) -> Payment:
    live.first.script("status", refused)
    payment = await live.merchant.pay(**fields)
    await live.service.run_worker(5)
    row = await stored(live, payment)
    assert row.status == "failed"
    live.first.calls.clear()
    return row


async def late(live: LivePayments, subject: Payment | Refund) -> LateResult | None:
    found: LateResult | None = await store.about(live.ctx.db, subject)
    return found


async def found_late(live: LivePayments, **fields: Any) -> tuple[Payment, LateResult]:
    """A failed payment that proves to be paid an hour later."""
    payment = await failed(live, **fields)
    live.first.script("status", done)
    await live.service.run_worker(HOUR)
    found = await late(live, payment)
    assert found is not None
    return payment, found


async def resolve(live: LivePayments, found: LateResult, decision: late_decisions.Decision) -> LateResult:
    return await late_decisions.resolve(live.ctx, found, decision, AWA, "statement of 3 May")


async def accounts(live: LivePayments) -> dict[str, int]:
    """What the ledger's accounts hold; the audit must agree with the tables."""
    report = await audit(live.ctx.db, live.ctx.clock, lambda text: None)
    assert report.fault is None
    sums: Counter[str] = Counter()
    for row in await live.ctx.db.scan(select(postings.c.source, postings.c.destination, postings.c.amount)):
        sums[row[0]] -= row[2]
        sums[row[1]] += row[2]
    return {name: amount for name, amount in sums.items() if amount}


async def test_a_late_success_waits_in_suspense_and_changes_nothing_that_was_told(live: LivePayments) -> None:
    payment, found = await found_late(live)
    assert (found.stage, found.amount) == ("found", 5088_00), "what the provider moved, in whole francs"
    assert await live.state(payment.reference) == "failed"
    assert await live.queued_events() == ["payment.failed"]
    assert await live.balance() == 0
    assert await open_kinds(live) == ["paid_after_failure"]
    assert await accounts(live) == {"float:first::XOF": -5088_00, "suspense:late": 5088_00}
    await live.service.run_worker(DAY)
    assert await accounts(live) == {"float:first::XOF": -5088_00, "suspense:late": 5088_00}


async def test_a_statement_that_names_late_money_matches(live: LivePayments) -> None:
    """Before it was found, the same line is money that we do not have."""
    payment = await failed(live)
    moved = Line(1, "payment", (payment.reference,), Hundredths(5088_00), "XOF", "succeeded", payment.created_at)

    async def outcomes() -> list[str]:
        found = reconcile(live.ctx.db, [moved], ["first"], None, None, ["payment"], lambda text: None)
        return [each.outcome async for each in found]

    assert await outcomes() == [MISSING_HERE]
    live.first.script("status", done)
    await live.service.run_worker(HOUR)
    assert await outcomes() == [MATCHED]


@pytest.mark.both_databases
async def test_a_callback_about_a_failed_payment_asks_at_once(live: LivePayments) -> None:
    payment = await failed(live)
    live.first.script("status", done)
    await poll_ended(live.ctx, payment)
    await live.service.run_worker()
    assert (await late(live, payment) or payment).status == "open"


async def test_a_callback_long_after_the_questions_asks_again(live: LivePayments) -> None:
    payment = await failed(live)
    for seconds in (HOUR, DAY):
        await live.service.run_worker(seconds)
    live.first.script("status", done)
    await poll_ended(live.ctx, payment)
    await live.service.run_worker()
    assert await open_kinds(live) == ["paid_after_failure"]
    await poll_ended(live.ctx, payment)
    await live.service.run_worker()
    assert await accounts(live) == {"float:first::XOF": -5088_00, "suspense:late": 5088_00}


async def test_another_amount_is_an_incident_and_moves_nothing(live: LivePayments) -> None:
    await failed(live)
    live.first.script("status", Succeeded(None, "XOF", "t"))
    await live.service.run_worker(HOUR)
    assert await open_kinds(live) == ["mismatch"]
    assert await accounts(live) == {}


async def test_a_person_credits_the_merchant(live: LivePayments) -> None:
    payment, found = await found_late(live)
    await resolve(live, found, "wallet")
    assert await live.balance() == 5000
    assert await accounts(live) == {"float:first::XOF": -5088_00, "wallet": 5000_00, "fees": 87_50, "rounding": 50}
    assert await open_kinds(live) == []
    assert (await margins(live.ctx.db, None, None))["mtn", "XOF"].fees == 87_50, "late or not, the fee is earned"
    assert await live.state(payment.reference) == "failed"
    with pytest.raises(ActRefused, match="which is credited, can be decided: payer"):
        await resolve(live, (await late(live, payment)) or found, "wallet")
    with pytest.raises(ActRefused, match="just decided"):
        await resolve(live, found, "wallet")
    assert await live.balance() == 5000


async def test_a_person_sends_the_money_back_by_the_same_route(live: LivePayments) -> None:
    payment, found = await found_late(live)
    live.first.script("refund", taken)
    live.first.script("refund_status", taken, done)
    returning = await resolve(live, found, "payer")
    await live.service.run_worker()
    assert live.first.references_of("refund") == [returning.return_reference]
    assert (live.first.refund_requests[-1].amount, live.first.refund_requests[-1].charge.payment.reference) == (
        508800,
        payment.reference,
    )
    assert await accounts(live) == {"float:first::XOF": -5088_00, "suspense:late": 5088_00}
    await live.service.run_worker(60)
    await live.service.run_worker(HOUR)
    assert len(live.first.references_of("refund")) == 1, "sent once, however often it is asked about"
    assert await accounts(live) == {}
    assert await open_kinds(live) == []
    assert await live.queued_events() == ["payment.failed"]


@pytest.mark.parametrize("answer", [Refused("payer_not_found"), NotProcessed(raw="no connection"), FloatEmpty()])
async def test_a_refused_return_is_decided_again(live: LivePayments, answer: Any) -> None:
    payment, found = await found_late(live)
    live.first.script("refund", answer)
    first = await resolve(live, found, "payer")
    await live.service.run_worker()
    again = await late(live, payment)
    assert again is not None
    assert again.stage == "found"
    assert str(next(iter(await incidents.still_open(live.ctx.db))).detail).endswith("decide again")
    live.first.script("refund", done)
    second = await resolve(live, again, "payer")
    await live.service.run_worker()
    assert second.return_reference != first.return_reference, "providers remember a refused reference"
    assert await accounts(live) == {}


async def test_a_provider_that_gave_the_money_back_by_itself_ends_the_return(live: LivePayments) -> None:
    _, found = await found_late(live)
    live.first.script("refund", AlreadyRefunded())
    await resolve(live, found, "payer")
    await live.service.run_worker()
    assert await accounts(live) == {}


async def test_a_person_ends_a_return_that_the_provider_does_not_end(live: LivePayments) -> None:
    payment, found = await found_late(live)
    live.first.script("refund", Unknown("no answer"))
    live.first.script("refund_status", Unknown("no answer"))
    returning = await resolve(live, found, "payer")
    await live.service.run_worker()
    await live.service.run_worker(73 * HOUR)
    assert await open_kinds(live) == ["paid_after_failure", "stuck"]
    with pytest.raises(ActRefused, match="returned, not-returned"):
        await resolve(live, returning, "wallet")
    again = await resolve(live, returning, "not-returned")
    assert again.stage == "found"
    await resolve(live, again, "returned")
    assert await accounts(live) == {"float:first::XOF": -5088_00, "manual_settlement": 5088_00}
    assert await open_kinds(live) == []
    other, found = await found_late(live)
    returning = await resolve(live, found, "payer")
    await resolve(live, returning, "returned")
    assert (await late(live, other) or found).stage == "returned"
    assert await accounts(live) == {"float:first::XOF": -5088_00, "manual_settlement": 5088_00}
    assert payment.reference != other.reference


async def test_a_frozen_wallet_is_not_credited(live: LivePayments) -> None:
    _, found = await found_late(live)
    await live.set_wallet("Gelé")
    with pytest.raises(ActRefused, match="not Actif"):
        await resolve(live, found, "wallet")
    await live.set_wallet()
    await resolve(live, found, "wallet")
    assert await live.balance() == 5000


@pytest.mark.both_databases
async def test_payments_of_the_same_number_are_shown(live: LivePayments) -> None:
    payment, _ = await found_late(live, phone_number="22997005555")
    again = await paid(live, 5000)
    other = await stored(live, again)
    assert await late_decisions.paid_again(live.ctx.db, payment) == []
    mine = await repository.find(live.ctx.db, other.reference)
    assert mine == other
    await found_late(live)
    live.first.script("status", done)
    same = await live.merchant.pay(phone_number="22997005555")
    await live.service.run_worker(5)
    assert [each.reference for each in await late_decisions.paid_again(live.ctx.db, payment)] == [same["reference"]]


async def refund_row(live: LivePayments, refund: Any) -> Refund:
    found: Refund | None = await refund_repository.find(live.ctx.db, refund["reference"])
    assert found is not None
    return found


async def late_refund(live: LivePayments) -> Refund:
    """A refund that failed, and that the provider has paid all the same."""
    payment = await paid(live)
    live.first.script("refund", taken)
    live.first.script("refund_status", refused, done)
    refund = await refund_of(live, payment)
    await live.service.run_worker()
    await live.service.run_worker(5)
    assert (await refund_row(live, refund)).status == "failed"
    assert await live.balance() == 5000
    await live.service.run_worker(HOUR)
    assert live.first.questions[-1].ask_only, "its hold is released: it must not be paid now"
    return await refund_row(live, refund)


async def test_a_refund_paid_after_its_hold_was_released_is_a_receivable(live: LivePayments) -> None:
    refund = await late_refund(live)
    assert refund.status == "failed"
    assert await live.balance() == 5000, "the wallet does not go negative by itself"
    assert await open_kinds(live) == ["paid_after_failure"]
    assert await accounts(live) == {"wallet": 5000_00, "receivable": -5000_00}
    found = await late(live, refund)
    assert found is not None
    with pytest.raises(ActRefused, match="paid-from-wallet, paid-elsewhere"):
        await resolve(live, found, "wallet")
    await resolve(live, found, "paid-from-wallet")
    assert await accounts(live) == {}
    assert await live.balance() == 0
    assert await open_kinds(live) == []


async def test_a_receivable_that_was_paid_elsewhere_leaves_the_wallet_alone(live: LivePayments) -> None:
    found = await late(live, await late_refund(live))
    assert found is not None
    await resolve(live, found, "paid-elsewhere")
    assert await accounts(live) == {"wallet": 5000_00, "manual_settlement": -5000_00}
    assert await live.balance() == 5000


async def test_a_refund_that_came_back_waits_for_a_person(live: LivePayments) -> None:
    payment = await paid(live)
    live.first.script("refund", done)
    refund = await refund_of(live, payment)
    await live.service.run_worker()
    row = await refund_row(live, refund)
    assert row.status == "succeeded"
    live.first.script("refund_status", refused)
    await poll_ended(live.ctx, row)
    await live.service.run_worker()
    assert await open_kinds(live) == ["failed_after_success"]
    assert await accounts(live) == {"float:first::XOF": -5088_00, "suspense:late": 5088_00}
    found = await late(live, row)
    assert found is not None
    with pytest.raises(ActRefused, match="can be decided: wallet"):
        await resolve(live, found, "payer")
    await resolve(live, found, "wallet")
    assert await live.balance() == 5000
    assert (await refund_row(live, refund)).status == "succeeded"
    assert await accounts(live) == {"float:first::XOF": -5088_00, "wallet": 5000_00, "fees": 87_50, "rounding": 50}
