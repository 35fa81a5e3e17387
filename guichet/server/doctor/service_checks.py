"""The checks of `guichet doctor` as far as they end soon (the embedded database's file is not read), for the back
office: at once for its page of checks; for its first page as a worker made them last, since some read the payments of a
day."""

import asyncio
from typing import Final

import msgspec
from msgspec import json, structs

from guichet.clock import MINUTE, Instant, later
from guichet.context import AppContext
from guichet.db.engine import Database
from guichet.db.errors import StorageError
from guichet.db.worker_leases import claim_turn, keep_result, last_result
from guichet.domain.records import Record
from guichet.server.doctor.check import DoctorCheck
from guichet.server.doctor.checks import of_the_service
from guichet.server.doctor.replication import standbys_and_archive
from guichet.server.doctor.storage import file_modes

#: The name of the turn in which they are made.
TURN: Final = "checks"
#: How often a worker makes them: a twentieth of the time goes to them at most.
CHECK_EVERY: Final = MINUTE
_PAUSE_FACTOR: Final = 20
#: Seconds after which a worker keeps what it has.
_WITHIN: Final = 20.0


class LastChecks(Record, frozen=True):
    """`marks`: the checks that found something, without their details; `complete`: whether all ended in time."""

    at: Instant
    complete: bool
    marks: list[DoctorCheck]


_DECODER: Final = msgspec.json.Decoder(LastChecks)


async def last_checks(db: Database) -> LastChecks | None:
    """None if no worker has made them yet."""
    stored = await last_result(db, TURN)
    return _DECODER.decode(stored) if stored else None


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


async def keep_checks(ctx: AppContext) -> None:
    """Makes the checks and keeps what they mark, unless another process does."""
    now, began = ctx.clock.now(), ctx.clock.monotonic()
    if not await claim_turn(ctx.db, TURN, now, CHECK_EVERY):
        return
    checks, complete = await service_checks(ctx, _WITHIN)
    marks = [structs.replace(check, rows=[]) for check in checks if check.problems]
    pause = max(CHECK_EVERY, _PAUSE_FACTOR * (ctx.clock.monotonic() - began))
    kept = json.encode(LastChecks(now, complete, marks)).decode()
    await keep_result(ctx.db, TURN, kept, later(now, pause))
