"""A refund that failed through a fault of ours is made good: the wallet pays the amount, the service the fee."""

from typing import Any

import pytest

from guichet.domain.audit_log import ActRefused
from guichet.domain.late_results import LateResult
from guichet.late_money import decisions, return_repository
from guichet.ledger.margin import margins
from guichet.providers.base import Accepted, FloatEmpty, NotFound, Refused, Succeeded, Unknown
from tests.fakes.scripted_provider import done, taken
from tests.payments.conftest import LivePayments
from tests.payments.test_empty_float import open_kinds, row
from tests.payments.test_late_results import DAY, HOUR, accounts, late, resolve
from tests.payments.test_refunds import paid, refund_of

CREDITED = {"float:first::XOF": -5088_00, "wallet": 5000_00, "fees": 87_50, "rounding": 50}
SUSPENDED = {"float:first::XOF": -5088_00, "suspense:late": 5088_00}
OURS = Refused("configuration", "403 FORBIDDEN")


async def failed_refund(live: LivePayments, answer: Any = OURS, later: Any = OURS) -> Any:
    """`answer`: to the request; `later`: to each question about it."""
    live.first.script("refund", answer)
    live.first.script("refund_status", OURS, later)
    refund = await refund_of(live, await paid(live))
    await live.service.run_worker()
    await live.service.run_worker(5)
    assert (await row(live, refund)).status == "failed"
    assert await accounts(live) == CREDITED
    return refund


async def make_good(live: LivePayments, refund: Any) -> LateResult:
    found = await decisions.find(live.ctx.db, refund["reference"])
    assert decisions.fitting(found) == ("payer",)
    return await resolve(live, found, "payer")


async def requests(live: LivePayments, refund: Any) -> list[str]:
    stored = await late(live, await row(live, refund))
    assert stored is not None
    return [each.status for each in await return_repository.of(live.ctx.db, stored)]


@pytest.mark.parametrize("days", [0, 30])
async def test_the_payer_is_paid_after_all_and_nothing_that_was_told_changes(live: LivePayments, days: int) -> None:
    """Also long after the failure, when nobody asks about it any more."""
    refund = await failed_refund(live)
    for _ in range(days):
        await live.service.run_worker(DAY)
    events = await live.queued_events()
    live.first.script("refund", done)
    returning = await make_good(live, refund)
    assert await accounts(live) == SUSPENDED
    assert await live.balance() == 0
    await live.service.run_worker()
    assert live.first.references_of("refund") == [refund["reference"], returning.return_reference]
    assert (live.first.refund_requests[-1].amount, live.first.refund_requests[-1].collected_here) == (5088_00, True)
    assert await accounts(live) == {}
    assert (await margins(live.ctx.db, None, None))["mtn", "XOF"].fees == 0
    stored = await row(live, refund)
    assert (stored.status, await live.state(stored.payment_reference)) == ("failed", "succeeded")
    assert await live.queued_events() == events
    assert await open_kinds(live) == []
    assert (await live.merchant.post(f"/payments/{stored.payment_reference}/refund")).status == 409
    with pytest.raises(ActRefused, match="it is returned"):
        await resolve(live, await decisions.find(live.ctx.db, refund["reference"]), "payer")


async def test_a_frozen_wallet_pays_nothing(live: LivePayments) -> None:
    refund = await failed_refund(live)
    await live.set_wallet("Gelé")
    with pytest.raises(ActRefused, match="not Actif"):
        await make_good(live, refund)
    assert await accounts(live) == CREDITED
    assert (await late(live, await row(live, refund)) or refund).stage == "asking"


@pytest.mark.parametrize("answer", [Refused("payer_not_found", "PAYEE_NOT_FOUND"), FloatEmpty()])
async def test_what_the_provider_refuses_again_is_decided_again(live: LivePayments, answer: Any) -> None:
    refund = await failed_refund(live)
    live.first.script("refund", answer)
    await make_good(live, refund)
    await live.service.run_worker()
    found = await decisions.find(live.ctx.db, refund["reference"])
    assert (found.stage, decisions.fitting(found)) == ("found", ("wallet", "payer", "returned"))
    assert await open_kinds(live) == ["paid_after_failure"]
    credited = await resolve(live, found, "wallet")
    assert await accounts(live) == CREDITED
    assert await open_kinds(live) == []
    live.first.script("refund", done)
    await resolve(live, credited, "payer")
    await live.service.run_worker()
    assert await accounts(live) == {}


async def test_a_person_who_paid_otherwise_says_so(live: LivePayments) -> None:
    refund = await failed_refund(live)
    live.first.script("refund", Refused("payer_not_found"))
    await make_good(live, refund)
    await live.service.run_worker()
    await resolve(live, await decisions.find(live.ctx.db, refund["reference"]), "returned")
    assert await accounts(live) == {"float:first::XOF": -5088_00, "manual_settlement": 5088_00}


async def test_a_refund_that_was_paid_all_the_same_is_not_paid_again(live: LivePayments) -> None:
    refund = await failed_refund(live, taken, done)
    with pytest.raises(ActRefused, match="just answered"):
        await make_good(live, refund)
    await live.service.run_worker()
    assert await accounts(live) == {"wallet": 5000_00, "receivable": -5000_00}
    assert len(live.first.references_of("refund")) == 1
    assert decisions.fitting(await decisions.find(live.ctx.db, refund["reference"])) == (
        "paid-from-wallet",
        "paid-elsewhere",
    )


@pytest.mark.parametrize("answer", [Accepted("op-1"), Succeeded(None, "XOF", "t")])
async def test_a_refund_that_may_still_be_paid_is_not_paid_again(live: LivePayments, answer: Any) -> None:
    refund = await failed_refund(live, taken, answer)
    with pytest.raises(ActRefused, match="may go through"):
        await make_good(live, refund)


async def test_a_refused_request_that_the_provider_kept_nothing_of_is_final(live: LivePayments) -> None:
    refund = await failed_refund(live)
    live.first.script("refund_status", NotFound("404"))
    live.first.script("refund", done)
    await make_good(live, refund)
    await live.service.run_worker()
    assert await accounts(live) == {}
    assert await requests(live, refund) == ["succeeded"]


async def test_without_an_answer_a_day_must_pass_and_the_old_request_stays_under_question(live: LivePayments) -> None:
    refund = await failed_refund(live, taken, Unknown("no answer"))
    with pytest.raises(ActRefused, match="24 hours"):
        await make_good(live, refund)
    assert await accounts(live) == CREDITED
    await live.service.run_worker(DAY)
    await live.service.run_worker(HOUR)
    live.first.script("refund", done)
    await make_good(live, refund)
    await live.service.run_worker()
    assert await accounts(live) == {}
    assert await requests(live, refund) == ["pending", "succeeded"]
    live.first.script("refund_status", done)
    await live.service.run_worker(2 * DAY)
    assert await requests(live, refund) == ["succeeded", "succeeded"]
    assert await open_kinds(live) == ["returned_twice"]
    assert await accounts(live) == {"float:first::XOF": 5088_00, "manual_settlement": -5088_00}


async def test_a_refund_of_another_account_is_made_good_there(live: LivePayments) -> None:
    """The one that collected was empty; the payout of the other one failed through a fault of ours."""
    live.first.script("refund", FloatEmpty())
    live.second.script("refund", OURS)
    refund = await refund_of(live, await paid(live))
    await live.service.run_worker()
    assert (await row(live, refund)).status == "failed"
    live.second.script("refund_status", OURS)
    live.second.script("refund", done)
    await make_good(live, refund)
    await live.service.run_worker()
    payout = live.second.refund_requests[-1]
    assert (payout.collected_here, payout.payee_number, payout.amount) == (False, "22997001234", 5088_00)
    assert await accounts(live) == {"float:first::XOF": -5088_00, "float:second::XOF": 5088_00}


@pytest.mark.parametrize("env", ["test", "live"])
async def test_only_a_live_refund_that_a_provider_refused_can_be_made_good(live: LivePayments, env: str) -> None:
    if env == "live":
        payment = await paid(live)
        live.first.script("refund", done)
        spent = await refund_of(live, payment)
        await live.service.run_worker()
        reference = spent["reference"]
    else:
        merchant = type(live.merchant)(live.service, live.merchant.id, live.merchant.keys, "test")
        payment = await merchant.pay("0000")
        await live.service.run_worker()
        reference = (await merchant.post(f"/payments/{payment['reference']}/refund")).data["reference"]
    with pytest.raises(ActRefused, match="no late money"):
        await decisions.find(live.ctx.db, reference)
