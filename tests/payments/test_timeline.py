"""The story of a payment as a list: what merchants are told, and what only the staff may know."""

import pytest
from msgspec import structs
from sqlalchemy import update

from guichet.db.tables import webhook_deliveries
from guichet.disputes import disputes
from guichet.domain.audit_log import Actor
from guichet.domain.messages import verbatim
from guichet.domain.money import Hundredths
from guichet.domain.payments import Payment
from guichet.history.payment_history import read_history
from guichet.history.timeline import STAFF_KINDS, TimelineEntry, TimelineFacts, timeline
from guichet.incidents import repository as incidents
from guichet.late_money import decisions as late_decisions
from guichet.providers.base import Refused
from guichet.providers.capabilities import DisputeFacts
from guichet.webhooks.deliveries import PastAttempt, with_attempt
from tests.fakes.scripted_provider import done, taken
from tests.payments.conftest import LivePayments, stored
from tests.payments.test_late_results import found_late
from tests.payments.test_refunds import paid, refund_of


async def told(live: LivePayments, payment: Payment, *, for_staff: bool = False) -> list[TimelineEntry]:
    return timeline(await read_history(live.ctx.db, payment), for_staff=for_staff)


def one(entries: list[TimelineEntry], kind: str, subject: str | None = None) -> TimelineEntry:
    [found] = [each for each in entries if each.kind == kind and subject in (None, each.subject)]
    return found


async def test_a_payment_that_was_refunded(live: LivePayments) -> None:
    live.first.script("initiate", taken)
    live.first.script("refund", done)
    payment = await paid(live)
    live.service.clock.advance(60)
    refund = await refund_of(live, payment)
    await live.service.run_worker(60)
    row = await stored(live, payment)
    assert row.status == "refunded"
    entries = await told(live, row)
    assert [each.at for each in entries] == sorted(each.at for each in entries)
    kinds = [each.kind for each in entries if each.subject != "webhook"]
    assert kinds == [
        "payment.created",
        "provider.asked",
        "provider.polled",
        "payment.succeeded",
        "money.moved",
        "refund.requested",
        "money.moved",
        "refund.sent",
        "refund.succeeded",
        "payment.refunded",
    ]
    assert one(entries, "payment.succeeded").at < one(entries, "payment.refunded").at
    assert [each.values["wallet"] for each in entries if each.kind == "money.moved"] == [500_000, -500_000]
    asked = one(entries, "refund.requested").values
    assert (asked["reference"], asked["amount"], asked["by"]) == (refund["reference"], 508_750, None)
    events = [each.values["event"] for each in entries if each.kind == "webhook.queued"]
    assert events == ["payment.succeeded", "refund.succeeded", "payment.refunded"]
    attempts = [each.values for each in entries if each.kind == "webhook.attempted"]
    assert {(each["delivered"], each["of"], each["number"]) for each in attempts} == {(False, 5, 1), (False, 5, 2)}


async def test_each_attempt_of_a_webhook_is_told_with_its_answer(sqlite_live: LivePayments) -> None:
    """From what is kept of each; and as the rows of before tell it, which only count them."""
    live = sqlite_live
    payment = await paid(live)
    row, now = await stored(live, payment), live.ctx.clock.now()

    async def attempts(history: str | None) -> list[TimelineFacts]:
        ended = {"status": "success", "attempts": 2, "error": None, "delivered_at": now, "next_attempt_at": None}
        await live.ctx.db.write(update(webhook_deliveries).values(**ended, response_code=204, history=history))
        return [each.values for each in await told(live, row) if each.kind == "webhook.attempted"]

    [before] = await attempts(None)
    assert (before["number"], before["of"], before["delivered"], before["answer"]) == (2, 5, True, "")
    history = with_attempt(None, PastAttempt(now, 5, 500, "bad_status", "try 1"))
    [once] = await attempts(history)
    assert (once["number"], once["of"], once["response_code"], once["delivered"]) == (1, 5, 500, False)
    for number in range(2, 7):
        history = with_attempt(history, PastAttempt(now, 5, 500, "bad_status", f"try {number}"))
    again = await attempts(with_attempt(history, PastAttempt(now, 5, 204, None)))
    assert [(each["number"], each["of"]) for each in again] == [(number, None) for number in range(1, 8)]
    assert [each["answer"] for each in again] == [*(f"try {number}" for number in range(1, 7)), ""]
    assert [each["delivered"] for each in again] == [False] * 6 + [True]


async def test_accounts_postings_and_acts_are_for_the_staff(live: LivePayments) -> None:
    live.first.script("initiate", taken)
    payment, late = await found_late(live)
    await late_decisions.resolve(live.ctx, late, "wallet", Actor("Awa Zinsou", "awa"), "relevé du 3 mai")
    entries = await told(live, payment)
    assert one(entries, "late.found").values == {"stage": "credited", "amount": 508_800}
    assert one(entries, "payment.failed").values["code"] == "rejected_by_customer"
    assert [each.values["wallet"] for each in entries if each.kind == "money.moved"] == [500_000]
    assert not STAFF_KINDS & {each.kind for each in entries}
    shown = str(entries)
    for secret in ("first", "op-", "Awa Zinsou", "relevé", "suspense:late", "paid_after_failure", "guichet late-money"):
        assert secret not in shown
    for_staff = await told(live, payment, for_staff=True)
    assert one(for_staff, "person.acted").staff["actor"] == "Awa Zinsou"
    assert one(for_staff, "provider.asked").staff["account"] == "first"
    assert one(for_staff, "incident.opened").staff["kind"] == "paid_after_failure"
    assert "suspense:late" in str([each.staff for each in for_staff if each.kind == "money.moved"])


@pytest.mark.both_databases
async def test_a_failed_refund_a_dispute_and_an_incident(live: LivePayments) -> None:
    live.first.script("refund", Refused("limit_reached"))
    payment = await paid(live)
    await refund_of(live, payment)
    await live.service.run_worker(60)
    row, now = await stored(live, payment), live.ctx.clock.now()
    await incidents.report_about(live.ctx.db, row, "stuck", verbatim("a detail"), now)
    await incidents.report_about(live.ctx.db, row, "misconfigured_route", verbatim("a detail"), now)
    await incidents.close_settled(live.ctx.db, row.merchant_id, row.reference, now)
    facts = DisputeFacts("du_1", row.reference, "open", Hundredths(508_800), "XOF", "fraudulent", now, None, True)
    await disputes.record(live.ctx, "first", facts)
    await disputes.record(live.ctx, "first", structs.replace(facts, status="lost"))
    entries = await told(live, row)
    assert one(entries, "refund.failed").values["code"] == "limit_reached"
    assert [each.values["wallet"] for each in entries if each.subject == "refund" and each.kind == "money.moved"] == [
        -500_000,
        500_000,
    ]
    assert one(entries, "incident.opened").values == {"concern": "stuck", "open": False}
    assert one(entries, "incident.closed").values["concern"] == "stuck"
    assert one(entries, "dispute.lost").values["borne_by"] is None
    assert "a detail" not in str(entries)
    for_staff = await told(live, row, for_staff=True)
    assert {each.staff["kind"] for each in for_staff if each.kind == "incident.opened"} == {
        "stuck",
        "misconfigured_route",
        "disputed",
    }
