"""How fast an export is written, and for how long it holds the event loop: rows a second, longest turn.

`direct` writes the file as a download does; `prepared` also compresses, encrypts and stores it, as the worker does.
"""

import asyncio
import time
from dataclasses import dataclass

import msgspec
from sqlalchemy import insert

from guichet.bootstrap import service
from guichet.clock import Instant, SystemClock
from guichet.context import AppContext
from guichet.db.tables import users
from guichet.domain.accounts import UserId
from guichet.domain.audit_log import Actor
from guichet.domain.exports import EXPORT_FORMATS, Export, ExportFormat
from guichet.domain.ids import MerchantId
from guichet.exports import files, repository
from guichet.exports.requests import ExportRequest, request_export
from guichet.settings import Settings


@dataclass(frozen=True)
class Written:
    """`longest` and `late`: milliseconds that a task which wanted to run every millisecond waited too long, at most and
    in 99 of a hundred cases; on a busy machine other programs add to both. `cpu`: microseconds of processor a row."""

    name: str
    rows: int
    per_second: float
    cpu: float
    megabytes: float
    longest: float
    late: float


async def measure(settings: Settings, merchant_id: int) -> list[Written]:
    """The payments of a seeded merchant (`python -m bench seed`), in each format."""
    async with service(settings, SystemClock()) as opened:
        ctx = opened.ctx
        user_id = await _user(ctx)
        found = []
        for written_as in EXPORT_FORMATS:
            export = await _export(ctx, MerchantId(merchant_id), user_id, written_as)
            found.append(await _timed(f"{written_as}, direct", ctx, export, prepared=False))
            found.append(await _timed(f"{written_as}, prepared", ctx, export, prepared=True))
        return found


def table(found: list[Written]) -> str:
    lines = [
        "| Export | Rows | Rows a second | MB | Longest turn, ms | 99 % of turns, ms |",
        "|---|---|---|---|---|---|",
    ]
    for each in found:
        speed = f"{each.per_second:,.0f} | {each.cpu:.0f} | {each.megabytes:.1f}"
        lines.append(f"| {each.name} | {each.rows:,} | {speed} | {each.longest:.1f} | {each.late:.1f} |")
    return "\n".join(lines)


async def _user(ctx: AppContext) -> UserId:
    values = {"email": f"bench-{time.time_ns()}@example.com", "name": "Bench", "language": "fr", "status": "invited"}
    zero = {"totp_confirmed": False, "totp_step": 0, "created_at": 0, "updated_at": 0}
    row = await ctx.db.write(insert(users).values({**values, **zero}).returning(users.c.id))
    assert row is not None
    return UserId(row[0])


async def _export(ctx: AppContext, merchant_id: MerchantId, user_id: UserId, written_as: ExportFormat) -> Export:
    wanted = ExportRequest(
        merchant_id=merchant_id,
        env="test",
        user_id=user_id,
        kind="payments",
        format=written_as,
        currency=None,
        language="fr",
        time_zone="Africa/Porto-Novo",
        since=Instant(0),
        until=ctx.clock.now(),
    )
    export = await request_export(ctx, wanted, Actor("bench", "bench"))
    claimed = (await repository.claim(ctx.db, ctx.clock.now(), 1, [])).jobs
    return claimed[0] if claimed else msgspec.structs.replace(export, status="pending")


async def _timed(name: str, ctx: AppContext, export: Export, *, prepared: bool) -> Written:
    waits: list[float] = []
    watch = asyncio.create_task(_watch(waits))
    progress, size = files.Progress(), 0
    began, used = time.perf_counter(), time.process_time()
    if prepared:
        await files.prepare(ctx, export)
        done = await repository.find(ctx.db, export.merchant_id, export.env, export.id)
        assert done is not None
        rows, size = done.row_count, done.size
    else:
        async for content in files.written(ctx, export, progress):
            size += len(content)
        rows = progress.rows
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    watch.cancel()
    waits.sort()
    return Written(name, rows, rows / seconds, 1e6 * cpu / rows, size / 1e6, waits[-1], waits[len(waits) * 99 // 100])


async def _watch(waits: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        waits.append(1000 * (time.perf_counter() - began) - 1)
