"""The tamper-evident chain over the postings (docs/architecture.md, "Rows").

A seal covers the postings with an id in (last sealed id, last_id]: their exact ids, a short mark of each row in order,
and a digest over the digest before it and every whole row. A row that is changed, removed or inserted behind a seal is
found by its id; a seal that is rewritten no longer fits the next one; a chain that is rewritten whole no longer holds
the head that somebody noted elsewhere.
"""

import hashlib
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Final

import msgspec
from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert as upsert

from guichet.clock import MINUTE, Instant
from guichet.db.engine import Database, Row
from guichet.db.tables import ledger_hash_chain, postings

#: Most postings under one seal.
BATCH: Final = 500
#: Only postings of this age are sealed: every lower id has committed by then, or never will.
RIPE_AFTER: Final = 2 * MINUTE
#: What stands for the digest before the first one.
GENESIS: Final = "0" * 64
MARK: Final = 16

_HEAD: Final = (
    select(ledger_hash_chain.c.last_posting_id, ledger_hash_chain.c.digest)
    .order_by(ledger_hash_chain.c.first_posting_id.desc())
    .limit(1)
)
_FOLLOWING: Final = (
    select(postings).where(postings.c.id > bindparam("after")).order_by(postings.c.id).limit(bindparam("most"))
)
#: Two workers that seal at once name the same first id: one of the two rows stays.
_SEAL: Final = (
    upsert(ledger_hash_chain)
    .values({column.name: bindparam(column.name) for column in ledger_hash_chain.c if column.name != "id"})
    .on_conflict_do_nothing()
)


async def seal_next(db: Database, now: Instant) -> int:
    """Seals the next ripe postings, at most BATCH; how many there were. Cost: those rows, and one row written."""
    last_posting_id, digest = await head(db)
    following = await db.scan(_FOLLOWING, after=last_posting_id, most=BATCH)
    ripe = list(_ripe(following, now))
    if ripe:
        await db.write(
            _SEAL,
            first_posting_id=last_posting_id + 1,
            last_posting_id=ripe[-1][0],
            posting_ids=as_ranges(row[0] for row in ripe),
            row_hashes="".join(mark(row) for row in ripe),
            digest=chained(digest, ripe),
            created_at=now,
        )
    return len(ripe)


async def head(db: Database) -> tuple[int, str]:
    """The last sealed id and its digest; 0 and GENESIS before the first seal."""
    row = await db.one(_HEAD)
    return (row[0], row[1]) if row else (0, GENESIS)


def _ripe(rows: Iterable[Row], now: Instant) -> Iterator[Row]:
    """Up to the first young row, even if older ones follow it: an id below a seal's last one must never come later."""
    for row in rows:
        if row[-1] > now - RIPE_AFTER:
            return
        yield row


def mark(row: Row) -> str:
    return hashlib.sha256(_canonical(row)).hexdigest()[:MARK]


def chained(previous: str, rows: Iterable[Row]) -> str:
    """SHA-256, in hex, of the previous digest and each row as a JSON array, one a line."""
    digest = hashlib.sha256(previous.encode())
    for row in rows:
        digest.update(b"\n" + _canonical(row))
    return digest.hexdigest()


def _canonical(row: Row) -> bytes:
    """Every column in the table's order; the same bytes from both databases."""
    return msgspec.json.encode(list(row))


def as_ranges(posting_ids: Iterable[int]) -> str:
    """`1-4,7,9-10` of ascending ids."""
    runs = (
        [number for _, number in run]
        for _, run in groupby(enumerate(posting_ids), lambda indexed: indexed[1] - indexed[0])
    )
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def from_ranges(text: str, most: int) -> list[int]:
    """At most `most` ids, whatever somebody wrote there; empty when it cannot be read."""
    try:
        bounds = [[int(bound) for bound in part.split("-")] for part in text.split(",")]
    except ValueError:
        return []
    return list(islice((number for run in bounds for number in range(run[0], run[-1] + 1)), most))
