"""A person ends a payment or a refund: never against the provider's explicit answer, unless two people say so."""

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from msgspec import structs

from guichet.audit_log import entries
from guichet.back_office.manual_settlement import Decision, settle_by_hand
from guichet.db.engine import require
from guichet.domain.approvals import ActRequest, Arguments, MoneyAct
from guichet.domain.audit_log import Act, Actor, ActRefused, Approval
from guichet.domain.ids import ApprovalId
from guichet.domain.payments import Payment, Refund
from guichet.ledger.margin import margins
from guichet.payments import pending, repository
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Accepted, AlreadyRefunded, FloatEmpty, Refused, Succeeded, Unknown
from guichet.refunds import repository as refund_repository
from tests.approving import AWA as AWA_EMAIL
from tests.approving import ZOE as ZOE_EMAIL
from tests.approving import ask_and_approve
from tests.fakes.scripted_provider import done, refused, taken
from tests.payments.conftest import LivePayments, stored
from tests.payments.test_empty_float import open_kinds
from tests.payments.test_late_results import accounts
from tests.payments.test_refunds import paid, refund_of

AWA, ZOE = Actor("Awa", "awa"), Actor("Zoé", "zoe")
FAILED = Decision(succeeded=False, evidence="MTN ticket 4711", actor=AWA)
SUCCEEDED = structs.replace(FAILED, succeeded=True)
UNKNOWN = Unknown("no answer")


async def stuck(live: LivePayments, answer: Any = UNKNOWN) -> Payment:
    """A payment whose provider gives this answer, with an open incident."""
    live.first.script("status", UNKNOWN)
    payment = await live.merchant.pay()
    await live.service.run_worker(80 * 3600)
    assert await open_kinds(live) == ["stuck"]
    live.first.script("status", answer)
    return await stored(live, payment)


async def settle(live: LivePayments, subject: Payment | Refund, decision: Decision) -> Payment | Refund:
    return await settle_by_hand(live.ctx, subject, decision)


async def acts(live: LivePayments) -> list[tuple[str, str, Any]]:
    return [(each.action, each.actor, msgspec.json.decode(each.after)) for each in await entries.latest(live.ctx.db)]


@pytest.mark.parametrize(("decision", "status", "balance"), [(SUCCEEDED, "succeeded", 5000), (FAILED, "failed", 0)])
async def test_an_unknown_payment_is_settled_as_the_person_says(
    live: LivePayments, decision: Decision, status: str, balance: int
) -> None:
    payment = await stuck(live)
    settled = await settle(live, payment, decision)
    assert live.first.questions[-1].ask_only
    assert settled.status == status
    assert await live.balance() == balance
    assert await live.queued_events() == [f"payment.{status}"]
    assert await open_kinds(live) == []
    await live.service.run_worker(3600)
    await live.service.run_worker(25 * 3600)
    assert await open_kinds(live) == [], "the incident does not come back the next day"
    ((action, actor, after),) = await acts(live)
    assert (action, actor, after["status"], after["provider_says"]) == ("payment.settled", "Awa", status, "unknown")
    await accounts(live)


@pytest.mark.parametrize(
    ("decision", "answer", "says"),
    [
        (SUCCEEDED, Refused("expired"), "failed"),
        (SUCCEEDED, Accepted(), "pending"),
        (SUCCEEDED, Succeeded(None, "XOF"), "other amount"),
        (FAILED, done, "succeeded"),
        (FAILED, Succeeded(None, "XOF"), "other amount"),
    ],
)
async def test_an_explicit_answer_to_the_contrary_refuses(
    live: LivePayments, decision: Decision, answer: Any, says: str
) -> None:
    payment = await stuck(live, answer)
    with pytest.raises(ActRefused, match=f"is: {says}"):
        await settle(live, payment, decision)
    assert await live.state(payment.reference) == "pending"
    assert await acts(live) == []
    assert await live.queued_events() == []
    assert (await live.merchant.get(f"/payments/{payment.reference}")).status == 200
    assert live.first.references_of("status")[-2:] == [payment.reference] * 2, "its lease ended: it is polled again"


async def test_the_same_answer_is_taken_over_with_its_reference(live: LivePayments) -> None:
    payment = await stuck(live, done)
    settled = await settle(live, payment, SUCCEEDED)
    assert settled.provider_reference == f"tx-{payment.reference[:8]}"
    assert (await accounts(live))["float:first::XOF"] == -5088_00
    other = await stuck(live, Refused("insufficient_funds"))
    assert (await settle(live, other, FAILED)).failure_reason == "insufficient_funds"


async def test_a_pending_payment_may_be_ended_as_failed_and_a_late_success_is_found(live: LivePayments) -> None:
    payment = await stuck(live, Accepted())
    await settle(live, payment, FAILED)
    assert [after["provider_says"] for _, _, after in await acts(live)] == ["pending"]
    live.first.script("status", done)
    await live.service.run_worker(3600)
    assert await open_kinds(live) == ["paid_after_failure"]


async def override(live: LivePayments, subject: Payment | Refund) -> None:
    """Two people say that it succeeded, whatever the provider says."""
    act: MoneyAct = "payment.settle" if isinstance(subject, Payment) else "refund.settle"
    arguments: Arguments = {"succeeded": True, "override": True}
    await ask_and_approve(live.ctx, ActRequest(act, subject.reference, arguments, "MTN ticket 4711"))


@pytest.mark.both_databases
async def test_two_people_override_the_provider_and_the_float_is_not_touched(live: LivePayments) -> None:
    payment = await stuck(live, Refused("expired"))
    await override(live, payment)
    assert await live.state(payment.reference) == "succeeded"
    assert await accounts(live) == {
        "manual_settlement": -5088_00,
        "wallet": 5000_00,
        "fees": 87_50,
        "rounding": 50,
    }
    earned = (await margins(live.ctx.db, None, None))["mtn", "XOF"]
    assert (earned.fees, earned.payments) == (87_50, 1)
    [settlement] = [each for each in await acts(live) if each[0] == "payment.settled"]
    assert (settlement[1], settlement[2]["approved_by"], settlement[2]["override"]) == (AWA_EMAIL, ZOE_EMAIL, True)
    # Its refund is paid by the operator all the same.
    live.first.script("refund", done)
    await refund_of(live, {"reference": payment.reference})
    await live.service.run_worker()
    assert await accounts(live) == {"manual_settlement": -5088_00, "float:first::XOF": 5088_00}


@pytest.mark.both_databases
async def test_an_approval_that_was_used_refuses_its_own_settlement_and_no_other(live: LivePayments) -> None:
    """Settlements that arrive together share a transaction."""
    live.first.script("status", Accepted())
    payments = [await stored(live, await live.merchant.pay()) for _ in range(3)]
    unknown = Actor("Awa", "awa", Approval(ApprovalId(9), ZOE, "x"))
    acts_ = [None, Act(unknown, "payment.settled", "payment", payments[1].reference), None]
    settled = await asyncio.gather(
        *(
            settle_payment(live.ctx, payment, Refused("expired"), act=act)
            for payment, act in zip(payments, acts_, strict=True)
        ),
        return_exceptions=True,
    )
    assert isinstance(settled[1], ActRefused)
    assert [await live.state(payment.reference) for payment in payments] == ["failed", "pending", "failed"]
    assert await acts(live) == []


async def test_only_pending_live_subjects_are_settled(live: LivePayments) -> None:
    payment = await stuck(live)
    await settle(live, payment, FAILED)
    with pytest.raises(ActRefused, match="failed already"):
        await settle(live, require(await repository.find(live.ctx.db, payment.reference)), SUCCEEDED)
    in_test = await replace(live.merchant, env="test").pay("0002")
    with pytest.raises(ActRefused, match="Only live"):
        await settle(live, require(await repository.find(live.ctx.db, in_test["reference"])), FAILED)


@pytest.mark.both_databases
async def test_a_payment_that_is_being_polled_is_left_alone(live: LivePayments) -> None:
    payment = await stuck(live)
    now = live.ctx.clock.now()
    await pending.lease(live.ctx.db, payment.id, now, now + 1, asked_before=now)
    with pytest.raises(ActRefused, match="try again"):
        await settle(live, payment, FAILED)


async def stuck_refund(live: LivePayments, answer: Any) -> Refund:
    payment = await paid(live)
    live.first.script("refund", taken)
    live.first.script("refund_status", answer)
    refund = await refund_of(live, payment)
    await live.service.run_worker()
    return require(await refund_repository.find(live.ctx.db, refund["reference"]))


@pytest.mark.both_databases
async def test_a_refund_is_settled_by_hand(live: LivePayments) -> None:
    succeeded = await settle(live, await stuck_refund(live, UNKNOWN), SUCCEEDED)
    assert (succeeded.status, await live.balance()) == ("succeeded", 0)
    assert await accounts(live) == {}
    failed = await settle(live, await stuck_refund(live, UNKNOWN), FAILED)
    assert (failed.status, await live.balance()) == ("failed", 5000)
    events = await live.queued_events()
    assert events[-1] == "refund.failed"
    assert {"refund.succeeded", "payment.refunded"} <= set(events)


@pytest.mark.parametrize(
    ("decision", "answer"),
    [(SUCCEEDED, refused), (SUCCEEDED, FloatEmpty()), (FAILED, AlreadyRefunded()), (FAILED, done), (FAILED, taken)],
)
async def test_a_refund_is_not_settled_against_its_provider(
    live: LivePayments, decision: Decision, answer: Any
) -> None:
    refund = await stuck_refund(live, answer)
    with pytest.raises(ActRefused, match="The provider says"):
        await settle(live, refund, decision)
    assert await live.balance() == 0


async def test_an_already_refunded_payment_is_ended_by_a_person(live: LivePayments) -> None:
    refund = await stuck_refund(live, AlreadyRefunded())
    await live.service.run_worker(5)
    assert await open_kinds(live) == ["already_refunded"]
    await settle(live, refund, SUCCEEDED)
    assert await open_kinds(live) == []


async def test_a_refund_paid_by_hand_is_posted_against_manual_settlement(live: LivePayments) -> None:
    """Our balance was empty, so nothing was sent; the staff paid the customer themselves."""
    payment = await paid(live)
    live.first.script("refund", FloatEmpty())
    live.second.script("refund", FloatEmpty())
    refund = await refund_of(live, payment)
    await live.service.run_worker()
    row = require(await refund_repository.find(live.ctx.db, refund["reference"]))
    with pytest.raises(ActRefused, match="not sent"):
        await settle(live, row, SUCCEEDED)
    await override(live, row)
    assert await accounts(live) == {"float:first::XOF": -5088_00, "manual_settlement": 5088_00}
    assert await open_kinds(live) == []
