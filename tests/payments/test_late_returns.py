"""Late money that goes back to the payer: never twice on a guess, whatever the first request became."""

from typing import Any

import pytest

from guichet.clock import SECOND, later
from guichet.domain.audit_log import ActRefused
from guichet.domain.late_results import LateReturn
from guichet.late_money import return_repository
from guichet.ledger.margin import margins
from guichet.providers.base import Accepted, AlreadyRefunded, NotFound, Refused, Succeeded, Unknown
from tests.fakes.scripted_provider import done, refused, taken
from tests.payments.conftest import LivePayments
from tests.payments.test_empty_float import open_kinds
from tests.payments.test_late_results import DAY, HOUR, accounts, found_late, late, resolve

SUSPENDED = {"float:first::XOF": -5088_00, "suspense:late": 5088_00}
CREDITED = {"float:first::XOF": -5088_00, "wallet": 5000_00, "fees": 87_50, "rounding": 50}


async def lost_return(live: LivePayments) -> tuple[Any, Any]:
    """A late payment whose return was sent, and whose answer was lost."""
    payment, found = await found_late(live)
    live.first.script("refund", Unknown("no answer"))
    live.first.script("refund_status", Unknown("no answer"))
    returning = await resolve(live, found, "payer")
    await live.service.run_worker()
    assert len(live.first.references_of("refund")) == 1
    return payment, returning


async def requests(live: LivePayments, payment: Any) -> list[LateReturn]:
    row = await late(live, payment)
    assert row is not None
    return await return_repository.of(live.ctx.db, row)


async def test_a_return_that_went_through_is_not_given_up(live: LivePayments) -> None:
    """The person types `not-returned`; the provider is asked first, and says the contrary."""
    payment, returning = await lost_return(live)
    live.first.script("refund_status", done)
    with pytest.raises(ActRefused, match="is returned now"):
        await resolve(live, returning, "not-returned")
    assert live.first.questions[-1].ask_only
    assert await accounts(live) == {}
    assert (await late(live, payment) or returning).stage == "returned"
    await live.service.run_worker(10 * DAY)
    assert len(live.first.references_of("refund")) == 1


@pytest.mark.parametrize("answer", [Accepted("op-1"), Succeeded(None, "XOF", "t")])
async def test_a_return_under_way_is_not_given_up(live: LivePayments, answer: Any) -> None:
    payment, returning = await lost_return(live)
    live.first.script("refund_status", answer)
    with pytest.raises(ActRefused, match="may go through"):
        await resolve(live, returning, "not-returned")
    assert (await late(live, payment) or returning).stage == "returning"


async def test_a_refusal_that_the_question_brings_is_applied(live: LivePayments) -> None:
    payment, returning = await lost_return(live)
    live.first.script("refund_status", Refused("payer_not_found"))
    with pytest.raises(ActRefused, match="is found now"):
        await resolve(live, returning, "not-returned")
    again = await late(live, payment)
    assert again is not None
    live.first.script("refund", done)
    await resolve(live, again, "payer")
    await live.service.run_worker()
    assert await accounts(live) == {}


@pytest.mark.parametrize("decision", ["payer", "wallet"])
@pytest.mark.parametrize("answer", [Unknown("no answer"), NotFound()])
async def test_nothing_leaves_within_a_day_of_a_return_whose_end_nobody_knows(
    live: LivePayments, decision: Any, answer: Any
) -> None:
    _, returning = await lost_return(live)
    live.first.script("refund_status", answer)
    given_up = await resolve(live, returning, "not-returned")
    assert given_up.stage == "found"
    live.service.clock.advance(DAY - 60)
    with pytest.raises(ActRefused, match="24 hours"):
        await resolve(live, given_up, decision)
    assert await accounts(live) == SUSPENDED
    live.service.clock.advance(60)
    await resolve(live, given_up, decision)


@pytest.mark.both_databases
async def test_a_question_that_takes_long_forgets_nothing_that_another_one_learned(live: LivePayments) -> None:
    """Without the provider's reference, some of them can be asked nothing, or would be asked to pay again."""
    payment, returning = await lost_return(live)

    async def while_the_worker_asks(_: Any) -> Unknown:
        live.first.script("refund_status", Accepted("op-1"))
        await live.service.run_worker(60)
        return Unknown("no answer")

    live.first.script("refund_status", while_the_worker_asks)
    await resolve(live, returning, "not-returned")
    [request] = await requests(live, payment)
    assert (request.status, request.provider_reference) == ("pending", "op-1")


async def test_a_return_that_no_account_can_send_is_looked_at_less_and_less_often(live: LivePayments) -> None:
    live.first.fingerprint = "one account"
    payment, found = await found_late(live)
    live.first.fingerprint = "another account"
    await resolve(live, found, "payer")
    await live.service.run_worker(2 * HOUR)
    [request] = await requests(live, payment)
    assert (request.sent_at, request.next_poll_at) == (None, later(live.ctx.clock.now(), HOUR * SECOND))
    assert live.first.references_of("refund") == []


async def test_an_old_return_that_goes_through_ends_the_matter(live: LivePayments) -> None:
    """Nobody asks for it any more; its reference is asked about all the same, and nothing is sent again for it."""
    payment, returning = await lost_return(live)
    given_up = await resolve(live, returning, "not-returned")
    await live.service.run_worker(60)
    assert live.first.questions[-1].ask_only, "the question must not send it"
    live.first.script("refund_status", done)
    await live.service.run_worker(HOUR)
    assert (await late(live, payment) or given_up).stage == "returned"
    assert await accounts(live) == {}
    assert await open_kinds(live) == []
    with pytest.raises(ActRefused, match="just decided"):
        await resolve(live, given_up, "payer")
    assert len(live.first.references_of("refund")) == 1


async def test_the_final_answer_of_the_old_return_allows_another_at_once(live: LivePayments) -> None:
    payment, returning = await lost_return(live)
    given_up = await resolve(live, returning, "not-returned")
    live.first.script("refund_status", refused)
    live.first.script("refund", done)
    await resolve(live, given_up, "payer")
    await live.service.run_worker()
    assert await accounts(live) == {}
    assert [each.status for each in await requests(live, payment)] == ["failed", "succeeded"]


async def test_both_returns_go_through(live: LivePayments) -> None:
    """After a day two people sent another one, and then the first one comes: an incident, and the money is posted."""
    payment, returning = await lost_return(live)
    given_up = await resolve(live, returning, "not-returned")
    live.service.clock.advance(DAY)
    live.first.script("refund", done)
    await resolve(live, given_up, "payer")
    await live.service.run_worker()
    assert await accounts(live) == {}
    live.first.script("refund_status", done)
    await live.service.run_worker(DAY)
    assert await open_kinds(live) == ["returned_twice"]
    assert await accounts(live) == {"float:first::XOF": 5088_00, "manual_settlement": -5088_00}
    await live.service.run_worker(10 * DAY)
    assert await accounts(live) == {"float:first::XOF": 5088_00, "manual_settlement": -5088_00}
    assert [each.status for each in await requests(live, payment)] == ["succeeded", "succeeded"]


async def test_an_old_return_that_goes_through_while_the_second_is_on_its_way(live: LivePayments) -> None:
    payment, returning = await lost_return(live)
    given_up = await resolve(live, returning, "not-returned")
    live.service.clock.advance(DAY)
    await resolve(live, given_up, "payer")
    await live.service.run_worker()
    first, second = live.first.references_of("refund")
    live.first.script(
        "refund_status", lambda request: done(request) if request.reference == first else Unknown("no answer")
    )
    await live.service.run_worker(DAY)
    assert await accounts(live) == {}, "given back once"
    live.first.script("refund_status", refused)
    await live.service.run_worker(DAY)
    assert await accounts(live) == {}
    assert (await late(live, payment) or given_up).stage == "returned"
    assert [(each.reference, each.status) for each in await requests(live, payment)] == [
        (first, "succeeded"),
        (second, "failed"),
    ]


async def test_the_payer_gets_it_after_the_merchant_was_credited(live: LivePayments) -> None:
    _, returning = await lost_return(live)
    given_up = await resolve(live, returning, "not-returned")
    live.service.clock.advance(DAY)
    await resolve(live, given_up, "wallet")
    live.first.script("refund_status", done)
    await live.service.run_worker(DAY)
    assert await open_kinds(live) == ["returned_twice"]
    assert await accounts(live) == {k: v for k, v in CREDITED.items() if k != "float:first::XOF"} | {
        "manual_settlement": -5088_00
    }


async def test_a_second_request_may_say_that_the_first_went_through(live: LivePayments) -> None:
    _, returning = await lost_return(live)
    given_up = await resolve(live, returning, "not-returned")
    live.service.clock.advance(DAY)
    live.first.script("refund", AlreadyRefunded())
    await resolve(live, given_up, "payer")
    await live.service.run_worker()
    assert await accounts(live) == {}
    live.first.script("refund_status", done)
    await live.service.run_worker(DAY)
    assert await accounts(live) == {}
    assert await open_kinds(live) == []


async def test_a_return_that_was_not_sent_yet_is_given_up_for_good(live: LivePayments) -> None:
    payment, found = await found_late(live)
    returning = await resolve(live, found, "payer")
    given_up = await resolve(live, returning, "not-returned")
    await live.service.run_worker(DAY)
    assert live.first.references_of("refund") == []
    live.first.script("refund", done)
    await resolve(live, given_up, "payer")
    await live.service.run_worker()
    assert len(live.first.references_of("refund")) == 1
    assert [each.status for each in await requests(live, payment)] == ["failed", "succeeded"]


async def credited(live: LivePayments) -> tuple[Any, Any]:
    payment, found = await found_late(live)
    row = await resolve(live, found, "wallet")
    assert await accounts(live) == CREDITED
    return payment, row


async def test_a_late_payment_that_was_credited_is_returned(live: LivePayments) -> None:
    """The same act; the wallet gives the amount and the service its fee, and no status or event changes."""
    payment, row = await credited(live)
    live.first.script("refund", taken)
    live.first.script("refund_status", done)
    await resolve(live, row, "payer")
    assert await live.balance() == 0
    assert await accounts(live) == SUSPENDED
    await live.service.run_worker()
    await live.service.run_worker(60)
    assert await accounts(live) == {}
    assert live.first.refund_requests[-1].amount == 5088_00
    assert await live.state(payment.reference) == "failed"
    assert await live.queued_events() == ["payment.failed"]
    assert await open_kinds(live) == []
    assert (await margins(live.ctx.db, None, None))["mtn", "XOF"].fees == 0
    assert (await live.merchant.post(f"/payments/{payment.reference}/refund")).status == 409


async def test_a_wallet_that_does_not_cover_the_credit_gives_nothing(live: LivePayments) -> None:
    _, row = await credited(live)
    await live.set_wallet("Gelé")
    with pytest.raises(ActRefused, match="not Actif"):
        await resolve(live, row, "payer")
    assert await accounts(live) == CREDITED
    assert live.first.references_of("refund") == []


async def test_a_refused_return_can_be_credited_again_and_again(live: LivePayments) -> None:
    payment, row = await credited(live)
    for _ in range(3):
        live.first.script("refund", refused)
        await resolve(live, row, "payer")
        await live.service.run_worker()
        assert await accounts(live) == SUSPENDED
        assert await open_kinds(live) == ["paid_after_failure"]
        again = await late(live, payment)
        assert again is not None
        row = await resolve(live, again, "wallet")
        assert await accounts(live) == CREDITED
        assert await live.balance() == 5000
    assert (await margins(live.ctx.db, None, None))["mtn", "XOF"].fees == 87_50
