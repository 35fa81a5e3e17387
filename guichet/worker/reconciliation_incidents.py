"""What follows from the daily comparison of a provider account: incidents, and questions to the provider about what its
list contradicts (docs/decisions.md, "Statement comparison")."""

from collections.abc import Sequence
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from guichet.clock import Instant, iso
from guichet.context import AppContext
from guichet.db.engine import Transaction
from guichet.domain.ids import PaymentId, RefundId
from guichet.domain.messages import Amount, Day
from guichet.domain.payments import Payment, Refund
from guichet.domain.reconciliation import MISSING_HERE, MISSING_THERE, PAYMENT, REFUND, ComparisonNote, Finding, Ours
from guichet.incidents import repository as incidents
from guichet.incidents.repository import IncidentDetail
from guichet.late_money.results import poll_ended
from guichet.ledger.reconciliation_runs import Claimed, Result
from guichet.merchants import repository as merchants
from guichet.payments import repository
from guichet.refunds import repository as refund_repository

#: A refund that the list has and we did not make: none at all, or once more.
_ELSEWHERE: Final = frozenset({ComparisonNote.REFUNDED_ELSEWHERE, ComparisonNote.SECOND_TIME})


async def follow_up(ctx: AppContext, run: Claimed, result: Result, differences: Sequence[Finding]) -> None:
    """Opens or closes the incident of the day, opens one for each refund that somebody made without us, and asks about
    payments and refunds whose told end the list contradicts."""
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        await _report_day(ctx, tx, run, result, now)
    for finding in differences:
        if finding.ours is None:
            continue
        subject = await _subject(ctx, finding.ours)
        if subject is None:
            continue
        if _is_elsewhere(finding):
            moved = finding.line.amount if finding.line else None
            total = Amount(moved or finding.ours.amount, finding.ours.currency)
            detail = IncidentDetail.REFUNDED_ELSEWHERE(total=total)
            await incidents.report_about(ctx.db, subject, incidents.REFUNDED_ELSEWHERE, detail, now)
        elif _contradicts(finding):
            await poll_ended(ctx, subject)


async def _report_day(ctx: AppContext, tx: Transaction, run: Claimed, result: Result, now: Instant) -> None:
    """One incident for each account and day, however many differences: the page of the day shows them."""
    reference = str(uuid5(NAMESPACE_URL, f"{run.provider_account}/{run.day}"))
    if not result.differences:
        house = await merchants.house_id(tx)
        if house is not None:
            await incidents.close_all(tx, house, reference, now)
        return
    day = Day.of(iso(run.day)[:10])
    await incidents.report(
        tx,
        merchant_id=await merchants.house(tx, ctx.vault, now),
        env="live",
        kind=incidents.STATEMENT_DIFFERS,
        subject_type="account",
        reference=reference,
        provider_account=run.provider_account,
        detail=IncidentDetail.STATEMENT_DIFFERS(account=run.provider_account, day=day, differences=result.differences),
        now=now,
    )


async def _subject(ctx: AppContext, ours: Ours) -> Payment | Refund | None:
    if ours.kind == PAYMENT:
        return await repository.by_id(ctx.db, PaymentId(ours.id))
    return await refund_repository.by_id(ctx.db, RefundId(ours.id))


def _is_elsewhere(finding: Finding) -> bool:
    line, note = finding.line, finding.note
    return line is not None and line.kind == REFUND and note is not None and note.code in _ELSEWHERE


def _contradicts(finding: Finding) -> bool:
    """Whether the provider moved what failed here, or did not move (any more) what succeeded here. What is pending is
    asked about anyway."""
    ours, note = finding.ours, finding.note
    if ours is None or note is None:
        return False
    if finding.outcome == MISSING_HERE:
        return ours.status == "failed"
    return finding.outcome == MISSING_THERE and note.code == ComparisonNote.STATUS_THERE
