"""The loop that compares each provider account with our ledger, once a day across all workers
(docs/decisions.md, "Statement comparison")."""

import asyncio
from typing import Final

from guichet import metrics
from guichet.clock import DAY, HOUR, Instant, earlier, later
from guichet.context import AppContext
from guichet.domain.payments import SUBJECT_TYPES
from guichet.domain.reconciliation import Finding, Line
from guichet.ledger import reconciliation_runs as runs
from guichet.ledger.provider_fees import has_fee, post_fees
from guichet.ledger.reconciliation_runs import Claimed
from guichet.logs import log
from guichet.providers.base import Unknown
from guichet.treasury import conversions
from guichet.worker.queue_loop import Loop, Step
from guichet.worker.reconciliation_incidents import follow_up

#: Seconds between two looks for runs that are due.
_PAUSE: Final = 30.0
#: Fees posted by one transaction.
_FEES_AT_ONCE: Final = 100
#: How long before the day's beginning the history is asked for: a refund that ended at its very end is dated by us when
#: we learned of it.
_BEFORE: Final = HOUR


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
        await follow_up(ctx, run, result, differences)
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
                await post_fees(ctx.db, charged, ctx.registry.float_of_ours, ctx.clock.now())
                charged.clear()
        await post_fees(ctx.db, charged, ctx.registry.float_of_ours, ctx.clock.now())
        return result, differences
