"""The bytes of an export: written while they are downloaded, or prepared by the worker and stored encrypted.

The event loop is held for some milliseconds at most: rows are read in pieces, written a few at a time, and everybody
else has a turn in between.

The worker's jobs (`worker/queue_loop.py`): prepares exports that are too long for a direct download.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Collection
from typing import Final

from guichet.clock import Instant, later
from guichet.context import AppContext
from guichet.db.engine import Database
from guichet.db.queues.work_queue import Claim
from guichet.domain.exports import KEPT, MOST_ATTEMPTS, Export
from guichet.exports import repository
from guichet.exports.repository import ExportGone, ExportTakenOver
from guichet.logs import log
from guichet.merchants.vault import Vault

#: Rows written without a turn for others: half a millisecond.
_ROWS_AT_ONCE: Final = 20
#: Bytes of one stored piece before its encryption.
CHUNK_BYTES: Final = 64 * 1024
#: Bytes that a stored piece gives back at once.
_SENT_AT_ONCE: Final = 64 * 1024
_GZIP: Final = 31


class Progress:
    def __init__(self) -> None:
        self.rows = 0
        self.reached: Instant | None = None


async def written(ctx: AppContext, export: Export, progress: Progress) -> AsyncIterator[bytes]:
    """The file, as it is written. Memory: one piece of rows."""
    from guichet.exports.file_writers import file_writer  # noqa: PLC0415 - most workers never write one
    from guichet.exports.rows import pieces  # noqa: PLC0415

    writer, modes = file_writer(export), await ctx.catalogues.of(export.merchant_id)
    async for piece in pieces(ctx.db, modes, export, ctx.clock.now()):
        for first in range(0, len(piece.rows), _ROWS_AT_ONCE):
            rows = piece.rows[first : first + _ROWS_AT_ONCE]
            content = writer.write(rows)
            progress.rows += len(rows)
            if content:
                yield content
            await asyncio.sleep(0)
        progress.reached = piece.reached
    yield writer.finish()


async def prepare(ctx: AppContext, export: Export) -> None:
    """Writes the file of a claimed export into the database, in encrypted pieces. Raises ExportTakenOver."""
    await repository.drop_chunks(ctx.db, export)
    progress, began = Progress(), ctx.clock.now()
    # An XLSX is compressed already.
    compressor = zlib.compressobj(6, zlib.DEFLATED, _GZIP) if export.format == "csv" else None
    waiting, size, number = bytearray(), 0, 0

    async def store(content: bytes) -> None:
        nonlocal number
        sealed = ctx.vault.encrypt_bytes(content)
        now = ctx.clock.now()
        await repository.add_chunk(
            ctx.db, export, number, sealed, reached=progress.reached, rows=progress.rows, now=now
        )
        number += 1

    async for content in written(ctx, export, progress):
        size += len(content)
        waiting += content if compressor is None else compressor.compress(content)
        while len(waiting) >= CHUNK_BYTES:
            await store(bytes(waiting[:CHUNK_BYTES]))
            del waiting[:CHUNK_BYTES]
    waiting += b"" if compressor is None else compressor.flush()
    for first in range(0, len(waiting), CHUNK_BYTES):
        await store(bytes(waiting[first : first + CHUNK_BYTES]))
    # From the first piece on, so that none is pruned before the file expires.
    await repository.finish(ctx.db, export, ready=True, expires=later(began, KEPT), rows=progress.rows, size=size)


async def stored(db: Database, vault: Vault, export: Export) -> AsyncIterator[bytes]:
    """The file that the worker prepared. Raises ExportGone if a piece is missing, and UnreadableSecret."""
    decompressor = zlib.decompressobj(_GZIP) if export.format == "csv" else None
    sent, number = 0, 0
    while sent < export.size:
        sealed = await repository.chunk(db, export, number)
        if sealed is None:
            raise ExportGone
        content = vault.decrypt_bytes(sealed)
        number += 1
        while content:
            if decompressor is None:
                part, content = content, b""
            else:
                part = decompressor.decompress(content, _SENT_AT_ONCE)
                content = decompressor.unconsumed_tail
            sent += len(part)
            if part:
                yield part
            await asyncio.sleep(0)


class ExportJobs:
    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    async def claim(self, now: Instant, until: Instant, most: int, saturated: Collection[str]) -> Claim[Export]:
        """Leased for longer than `until`: each stored piece renews the claim."""
        return await repository.claim(self._ctx.db, now, most, saturated)

    async def work(self, job: Export) -> Awaitable[None] | None:
        try:
            if job.attempts > MOST_ATTEMPTS:
                log.error("export.given_up", export=job.id, attempts=job.attempts)
                await repository.finish(self._ctx.db, job, ready=False, expires=job.expires_at)
            else:
                await prepare(self._ctx, job)
        except ExportTakenOver:
            log.warning("export.taken_over", export=job.id)
        return None
