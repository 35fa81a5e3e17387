"""Exports and the pieces of their files: SQL. A worker writes only with the claim it began with (`attempts`).

ExportError: why an export is refused; pages say it in the person's language
├── TooManyExports     the merchant has as many prepared exports as are kept
├── ExportGone         the file expired, or is not there yet
└── ExportTakenOver    another worker prepares it now
"""

from collections.abc import Collection
from typing import Final

from sqlalchemy import bindparam, delete, func, insert, literal_column, select, update

from guichet.clock import Instant, later
from guichet.db.engine import Database, Reader, Transaction, require
from guichet.db.queues.work_queue import Claim, WorkQueue
from guichet.db.sql_functions import equal, new_row, values_of
from guichet.db.tables import export_chunks, exports
from guichet.domain.exports import EXPORT_LEASE, Export
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment


class ExportError(Exception):
    pass


class TooManyExports(ExportError):
    pass


class ExportGone(ExportError):
    pass


class ExportTakenOver(ExportError):
    pass


#: Exports that the page lists.
MOST_LISTED: Final = 20
#: Pieces that one statement deletes: each is a hundred kilobytes, and SQLite frees their pages on the event loop.
_CHUNKS_AT_ONCE: Final = 8

_INSERT: Final = insert(exports).values(new_row(exports)).returning(*exports.c)
_OF_MERCHANT: Final = (exports.c.merchant_id == bindparam("merchant_id"), exports.c.env == bindparam("environment"))
_FIND: Final = select(exports).where(exports.c.id == bindparam("export"), *_OF_MERCHANT)
_LATEST: Final = select(exports).where(*_OF_MERCHANT).order_by(exports.c.id.desc()).limit(MOST_LISTED)
_PREPARED: Final = select(func.count()).where(
    exports.c.merchant_id == bindparam("merchant_id"),
    exports.c.expires_at > bindparam("now"),
    (exports.c.status == literal_column("'pending'")) | (exports.c.status == literal_column("'ready'")),
)
_CLAIMED: Final = (*equal(exports, id="export", attempts="attempt"), exports.c.status == "pending")
_CHANGE_CLAIMED: Final = update(exports).where(*_CLAIMED)
_ADVANCE: Final = _CHANGE_CLAIMED.values(
    due_at=bindparam("next_due"),
    reached_at=bindparam("reached"),
    row_count=bindparam("rows_written"),
).returning(exports.c.id)
_FINISH: Final = _CHANGE_CLAIMED.values(
    status=bindparam("outcome"),
    due_at=None,
    expires_at=bindparam("expires"),
    row_count=bindparam("rows_written"),
    size=bindparam("bytes_written"),
).returning(exports.c.id)
_ADD_CHUNK: Final = insert(export_chunks).values(
    export_id=bindparam("export"), number=bindparam("number"), content=bindparam("content"), created_at=bindparam("now")
)
_CHUNK: Final = select(export_chunks.c.content).where(
    export_chunks.c.export_id == bindparam("export"), export_chunks.c.number == bindparam("number")
)
_DROP_CHUNKS: Final = (
    delete(export_chunks)
    .where(
        export_chunks.c.id.in_(
            select(export_chunks.c.id).where(export_chunks.c.export_id == bindparam("export")).limit(_CHUNKS_AT_ONCE)
        )
    )
    .returning(export_chunks.c.id)
)


_QUEUE: Final[WorkQueue[Export]] = WorkQueue(
    exports, "due_at", "merchant_id", lambda row: Export(*row), values={"attempts": exports.c.attempts + 1}
)


async def add(tx: Transaction, export: Export) -> Export:
    """`id` is given by the database."""
    return Export(*require(await tx.write(_INSERT, **values_of(exports, export))))


async def find(db: Reader, merchant_id: MerchantId, env: Environment, export_id: int) -> Export | None:
    return await db.one_as(Export, _FIND, merchant_id=merchant_id, environment=env, export=export_id)


async def latest(db: Reader, merchant_id: MerchantId, env: Environment) -> list[Export]:
    """The newest exports of the merchant, newest first."""
    return [Export(*row) for row in await db.all(_LATEST, merchant_id=merchant_id, environment=env)]


async def prepared(db: Reader, merchant_id: MerchantId, now: Instant) -> int:
    """How many the worker prepares, or keeps, for the merchant."""
    return int(require(await db.one(_PREPARED, merchant_id=merchant_id, now=now))[0])


async def claim(db: Database, now: Instant, most: int, saturated: Collection[str]) -> Claim[Export]:
    return await _QUEUE.claim(db, now, later(now, EXPORT_LEASE), most, saturated)


async def drop_chunks(db: Database, export: Export) -> None:
    """What an attempt before this one left."""
    while await db.write_all(_DROP_CHUNKS, export=export.id):
        pass


async def add_chunk(
    db: Database, export: Export, number: int, content: str, *, reached: Instant | None, rows: int, now: Instant
) -> None:
    """Stores one encrypted piece, says how far the export is, and renews the claim. Raises ExportTakenOver."""
    async with db.transaction() as tx:
        claimed = await tx.write(
            _ADVANCE,
            export=export.id,
            attempt=export.attempts,
            next_due=later(now, EXPORT_LEASE),
            reached=reached,
            rows_written=rows,
        )
        if claimed is None:
            raise ExportTakenOver
        await tx.write(_ADD_CHUNK, export=export.id, number=number, content=content, now=now)


async def finish(db: Database, export: Export, *, ready: bool, expires: Instant, rows: int = 0, size: int = 0) -> None:
    """The file is complete, or was given up. Raises ExportTakenOver."""
    done = await db.write(
        _FINISH,
        export=export.id,
        attempt=export.attempts,
        outcome="ready" if ready else "failed",
        expires=expires,
        rows_written=rows,
        bytes_written=size,
    )
    if done is None:
        raise ExportTakenOver


async def chunk(db: Reader, export: Export, number: int) -> str | None:
    """A piece of the file; None after the last one."""
    return await db.one_as(str, _CHUNK, export=export.id, number=number)
