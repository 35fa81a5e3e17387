"""The loop that keeps the availability of each operator, once a minute across all workers."""

import asyncio
from collections.abc import Mapping
from typing import Final

from msgspec import structs

from guichet.availability import (
    FLUSH_EVERY,
    OperatorAvailability,
    availabilities,
    prune_attempts,
    recent_attempts,
    set_availability,
)
from guichet.clock import MINUTE, SECOND, Instant, earlier, later
from guichet.context import AppContext
from guichet.db.worker_leases import claim_turn
from guichet.domain.availability import UP, Attempts, AvailabilityReason, Verdict, measured, worse
from guichet.logs import log
from guichet.providers.base import Unknown
from guichet.worker.queue_loop import ASKS_AFTER, Loop, Step

_MEASURE_EVERY: Final = 55 * SECOND
_ASK_EVERY: Final = 5 * MINUTE
#: What a provider said this long ago no longer counts.
_STATED_FOR: Final = 20 * MINUTE


class Availability(Loop):
    """Writes this process's counts, asks the providers that state the availability of operators, and measures."""

    name = "availability"
    starts_after = ASKS_AFTER

    def __init__(self, ctx: AppContext) -> None:
        self.wake = asyncio.Event()
        self._ctx = ctx
        self._stating = ctx.registry.stating_availability()
        self._next_at = Instant(0)

    async def step(self) -> Step:
        db, now = self._ctx.db, self._ctx.clock.now()
        await self._ctx.attempts.flush(db)
        if now >= self._next_at and await claim_turn(db, self.name, now, _MEASURE_EVERY):
            if self._stating and await claim_turn(db, f"{self.name} asked", now, _ASK_EVERY):
                await self._read_stated(now)
            await self._measure(now)
            await prune_attempts(db, now)
        if now >= self._next_at:
            self._next_at = later(now, _MEASURE_EVERY)
        return Step(False, FLUSH_EVERY)

    async def _read_stated(self, now: Instant) -> None:
        """Keeps what each provider says about the operators whose payments go over its account first."""
        known = {row.operator: row for row in await availabilities(self._ctx.db)}
        for account, (provider, operators) in self._stating.items():
            states = await provider.availability()
            if isinstance(states, Unknown):
                log.warning("availability.not_stated", provider_account=account, raw=states.raw)
                continue
            for operator in operators:
                if operator in states:
                    before = known.get(operator) or _unknown(operator, now)
                    after = structs.replace(before, stated=states[operator], stated_by=account, stated_at=now)
                    await set_availability(self._ctx.db, after)

    async def _measure(self, now: Instant) -> None:
        attempts = await recent_attempts(self._ctx.db, now)
        known: Mapping[str, OperatorAvailability] = {row.operator: row for row in await availabilities(self._ctx.db)}
        for operator in sorted({*attempts, *known}):
            before = known.get(operator) or _unknown(operator, now)
            after = _judged(before, attempts.get(operator, []), now)
            if after == known.get(operator):
                continue
            await set_availability(self._ctx.db, after)
            if after.state != before.state:
                log.warning("availability.changed", operator=operator, state=after.state, reason=after.reason)


def _unknown(operator: str, now: Instant) -> OperatorAvailability:
    return OperatorAvailability(operator, UP, now, None, UP, None, None, None)


def _judged(before: OperatorAvailability, attempts: list[Attempts], now: Instant) -> OperatorAvailability:
    measurement = measured(attempts, now, before.measured)
    verdicts = [measurement]
    if before.stated is not None and before.stated_at is not None and before.stated_at > earlier(now, _STATED_FOR):
        reason = AvailabilityReason.STATED(account=before.stated_by or "")
        verdicts.append(Verdict(before.stated, reason if before.stated != UP else None))
    verdict = worse(verdicts)
    since = before.since if verdict.state == before.state else now
    return structs.replace(before, state=verdict.state, since=since, reason=verdict.reason, measured=measurement.state)
