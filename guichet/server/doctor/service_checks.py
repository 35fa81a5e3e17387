"""The checks of `guichet doctor` as far as they end soon (the embedded database's file is not read), for the back
office."""

import asyncio
from typing import Final

from guichet.clock import MINUTE, Instant, later
from guichet.context import AppContext
from guichet.db.errors import StorageError
from guichet.server.doctor.check import DoctorCheck
from guichet.server.doctor.checks import of_the_service
from guichet.server.doctor.replication import standbys_and_archive
from guichet.server.doctor.storage import file_modes

#: Seconds that a first page waits for the checks.
_WITHIN: Final = 2.0


async def service_checks(ctx: AppContext, within: float) -> tuple[list[DoctorCheck], bool]:
    """What was found within so many seconds, and whether that is all."""
    checks: list[DoctorCheck] = []
    try:
        async with asyncio.timeout(within):
            await _look(ctx, checks)
    except (TimeoutError, StorageError):
        return checks, False
    return checks, True


async def _look(ctx: AppContext, checks: list[DoctorCheck]) -> None:
    now = ctx.clock.now()
    checks.append(file_modes(ctx.settings))
    if ctx.monitoring_db is not None:
        checks.append((await standbys_and_archive(ctx.monitoring_db, now))[0])
    async for check in of_the_service(ctx.monitoring_db or ctx.db, now):
        checks.append(check)


class LastChecks:
    """What the checks found, for a page that everybody of the staff opens first: a process checks once a minute,
    however many do, because some checks read the payments of a day. The page says when."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._last: tuple[Instant, list[DoctorCheck], bool] | None = None

    async def get(self, ctx: AppContext) -> tuple[Instant, list[DoctorCheck], bool]:
        """When, what was found, and whether that is all."""
        async with self._lock:
            now = ctx.clock.now()
            if self._last is None or not self._last[0] <= now < later(self._last[0], MINUTE):
                self._last = (now, *await service_checks(ctx, _WITHIN))
            return self._last
