"""The loop that compares each provider account with our ledger, once a day across all workers, and what follows from
it: incidents, and polls of what the provider's list contradicts (docs/decisions.md, "Statement comparison")."""

import asyncio
from collections.abc import Sequence
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from guichet import metrics
from guichet.clock import DAY, HOUR, Instant, earlier, iso, later
from guichet.context import AppContext
from guichet.db.engine import Transaction
from guichet.domain.ids import PaymentId, RefundId
from guichet.domain.messages import Amount, Day
from guichet.domain.payments import SUBJECT_TYPES, Payment, Refund
from guichet.domain.reconciliation import (
    MISSING_HERE,
    MISSING_THERE,
    PAYMENT,
    REFUND,
    ComparedSubject,
    ComparisonNote,
    Finding,
    Line,
)
from guichet.incidents import repository as incidents
from guichet.incidents.repository import IncidentDetail
from guichet.late_money.results import poll_ended
from guichet.ledger import reconciliation_runs as runs
from guichet.ledger.provider_fees import has_fee, post_fees
from guichet.ledger.reconciliation_runs import Claimed, Result
from guichet.logs import log
from guichet.merchants import repository as merchants
from guichet.payments import repository
from guichet.providers.base import Unknown
from guichet.refunds import repository as refund_repository
from guichet.treasury import conversions
from guichet.worker.queue_loop import Loop, Step

#: Seconds between two looks for runs that are due.
_PAUSE: Final = 30.0
#: Fees posted by one transaction.
_FEES_AT_ONCE: Final = 100
#: How long before the day's beginning the history is asked for: a refund that ended at its very end is dated by us when
#: we learned of it.
_BEFORE: Final = HOUR
#: A refund that the list has and we did not make: none at all, or once more.
_ELSEWHERE: Final = frozenset({ComparisonNote.REFUNDED_ELSEWHERE, ComparisonNote.SECOND_TIME})


class Reconciliation(Loop):
    """Makes the runs that are due, one at a time, each as a task: a provider may need minutes for its history, and the
    loop keeps turning meanwhile."""

    name = "reconciliation"

    def __init__(self, ctx: AppContext) -> None:
        self.wake = asyncio.Event()
        self._ctx = ctx
        self._histories = ctx.registry.histories()
        self._known_day: Instant | None = None
        self._running: asyncio.Task[None] | None = None
        self._failures = metrics.LOOP_FAILURES.labels(self.name, "item")

    async def step(self) -> Step:
        db, now = self._ctx.db, self._ctx.clock.now()
        if not self._histories or self._running is not None:
            return Step(False, _PAUSE)
        if self._known_day != (today := runs.day_of(now)):
            for account in self._histories:
                await runs.add_days(db, account, now)
            self._known_day = today
        claimed = await runs.claim(db, list(self._histories), now)
        if claimed is None:
            return Step(False, _PAUSE)
        self._running = asyncio.create_task(self._work(claimed))
        return Step(True, _PAUSE)

    async def idle(self) -> None:
        if self._running is not None:
            await asyncio.wait([self._running])

    async def _work(self, run: Claimed) -> None:
        try:
            await self._run(run)
        except Exception as error:  # The run's lease ends, and it is due again.
            self._failures.inc()
            log.error("worker.item_failed", loop=self.name, error=repr(error))
        finally:
            self._running = None
            self.wake.set()

    async def _run(self, run: Claimed) -> None:
        ctx = self._ctx
        end = later(run.day, DAY)
        lines = await self._histories[run.provider_account].history(
            earlier(run.day, _BEFORE),
            min(ctx.clock.now(), later(end, runs.DUE_AFTER)),
            ctx.settings.callback_url(run.provider_account),
        )
        if isinstance(lines, Unknown):
            log.warning("reconciliation.unreadable", provider_account=run.provider_account, raw=lines.raw)
            await runs.fail(ctx.db, run, lines.raw, ctx.clock.now())
            return
        await conversions.record(ctx, run.provider_account, run.day, lines)
        result, differences = await self._compare(run, lines)
        await _follow_up(ctx, run, result, differences)
        await runs.finish(ctx.db, run, result, ctx.clock.now())
        if result.differences:
            log.warning(
                "reconciliation.differences", provider_account=run.provider_account, differences=result.differences
            )

    async def _compare(self, run: Claimed, lines: list[Line]) -> tuple[runs.Result, list[Finding]]:
        """Compares the day, and posts the fees that the lines name. Returns the first differences, too."""
        from guichet.ledger.reconciliation import reconcile  # noqa: PLC0415 - once a day

        ctx, result = self._ctx, runs.Result(run.day)
        charged: list[Finding] = []
        differences: list[Finding] = []
        last = later(run.day, DAY - 1)
        async for finding in reconcile(
            ctx.db, lines, [run.provider_account], run.day, last, SUBJECT_TYPES, lambda _: None
        ):
            if result.add(finding) and len(differences) < runs.KEPT:
                differences.append(finding)
            if has_fee(finding):
                charged.append(finding)
            if len(charged) == _FEES_AT_ONCE:
                await post_fees(ctx.db, charged, ctx.registry.float_account_of, ctx.clock.now())
                charged.clear()
        await post_fees(ctx.db, charged, ctx.registry.float_account_of, ctx.clock.now())
        return result, differences


async def _follow_up(ctx: AppContext, run: Claimed, result: Result, differences: Sequence[Finding]) -> None:
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
        house = await merchants.house_merchant_id(tx)
        if house is not None:
            await incidents.close_all(tx, house, reference, now)
        return
    day = Day.of(iso(run.day)[:10])
    await incidents.report(
        tx,
        merchant_id=await merchants.house_merchant(tx, ctx.vault, now),
        env="live",
        kind=incidents.STATEMENT_DIFFERS,
        subject_type="account",
        reference=reference,
        provider_account=run.provider_account,
        detail=IncidentDetail.STATEMENT_DIFFERS(account=run.provider_account, day=day, differences=result.differences),
        now=now,
    )


async def _subject(ctx: AppContext, compared: ComparedSubject) -> Payment | Refund | None:
    if compared.kind == PAYMENT:
        return await repository.by_id(ctx.db, PaymentId(compared.id))
    return await refund_repository.by_id(ctx.db, RefundId(compared.id))


def _is_elsewhere(finding: Finding) -> bool:
    line, note = finding.line, finding.note
    return line is not None and line.kind == REFUND and note is not None and note.code in _ELSEWHERE


def _contradicts(finding: Finding) -> bool:
    """Whether the provider moved what failed here, or did not move (any more) what succeeded here. What is pending is
    asked about anyway."""
    compared, note = finding.ours, finding.note
    if compared is None or note is None:
        return False
    if finding.outcome == MISSING_HERE:
        return compared.status == "failed"
    return finding.outcome == MISSING_THERE and note.code == ComparisonNote.STATUS_THERE
