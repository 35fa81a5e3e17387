"""The tamper-evident hash chain over the postings (docs/architecture.md, "Rows").

A link covers the postings that follow the link before it. It holds their exact ids, a hash of each row in order, and a
digest over the previous link's digest and every whole row. So the audit names a covered row that was changed, removed
or inserted; a link that was rewritten does not fit the next one; and a chain that was rewritten as a whole does not
contain the digest that somebody wrote down elsewhere.
"""

import hashlib
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import bindparam, select

from guichet.clock import MINUTE, Instant
from guichet.db.engine import Database, Reader, Row
from guichet.db.sql_functions import new_row, upsert
from guichet.db.tables import ledger_hash_chain, postings

#: The most postings of one link.
POSTINGS_PER_LINK: Final = 500
#: A posting of this age is settled: every posting with a lower id has been committed by then, or never will be.
SETTLED_AFTER: Final = 2 * MINUTE
#: Stands for the previous digest in the first link.
FIRST_DIGEST: Final = "0" * 64
#: Hexadecimal digits of a row's hash.
ROW_HASH_LENGTH: Final = 16

_HEAD: Final = (
    select(ledger_hash_chain.c.id, ledger_hash_chain.c.last_posting_id, ledger_hash_chain.c.digest)
    .order_by(ledger_hash_chain.c.first_posting_id.desc())
    .limit(1)
)
_FOLLOWING: Final = (
    select(postings).where(postings.c.id > bindparam("after")).order_by(postings.c.id).limit(bindparam("most"))
)
#: When two workers extend the chain at once, both rows name the same first posting and the second is not inserted.
_APPEND: Final = upsert(ledger_hash_chain).values(new_row(ledger_hash_chain)).on_conflict_do_nothing()


class ChainHead(NamedTuple):
    """Where the chain ends. While it is empty: 0, 0 and FIRST_DIGEST."""

    link_id: int
    last_posting_id: int
    digest: str


class HashChainLink(NamedTuple):
    """A row of `ledger_hash_chain`."""

    id: int
    first_posting_id: int
    last_posting_id: int
    posting_ids: str
    row_hashes: str
    digest: str
    created_at: Instant


async def extend_hash_chain(db: Database, now: Instant) -> int:
    """Adds a link with the next settled postings, at most POSTINGS_PER_LINK; returns how many. Cost: those rows, and
    one row written."""
    _, last_posting_id, digest = await chain_head(db)
    following = await db.scan(_FOLLOWING, after=last_posting_id, most=POSTINGS_PER_LINK)
    settled = list(_settled(following, now))
    if settled:
        await db.write(
            _APPEND,
            first_posting_id=last_posting_id + 1,
            last_posting_id=settled[-1][0],
            posting_ids=format_ids(row[0] for row in settled),
            row_hashes="".join(row_hash(row) for row in settled),
            digest=link_digest(digest, settled),
            created_at=now,
        )
    return len(settled)


async def chain_head(db: Reader) -> ChainHead:
    """Reads one row."""
    row = await db.one(_HEAD)
    return ChainHead(*row) if row else ChainHead(0, 0, FIRST_DIGEST)


def _settled(rows: Iterable[Row], now: Instant) -> Iterator[Row]:
    """The rows before the first one that is not settled. Settled rows after it must wait: no posting with a lower id
    than a link's last one may be committed later."""
    for row in rows:
        if row[-1] > now - SETTLED_AFTER:
            return
        yield row


def row_hash(posting: Row) -> str:
    """The beginning of the row's SHA-256, in hexadecimal."""
    return hashlib.sha256(_canonical(posting)).hexdigest()[:ROW_HASH_LENGTH]


def link_digest(previous: str, rows: Iterable[Row]) -> str:
    """SHA-256, in hexadecimal, of the previous digest and then each row as a JSON array on a line of its own."""
    digest = hashlib.sha256(previous.encode())
    for row in rows:
        digest.update(b"\n" + _canonical(row))
    return digest.hexdigest()


def _canonical(row: Row) -> bytes:
    """Every column in the table's order; the same bytes from both databases."""
    return msgspec.json.encode(list(row))


def format_ids(ids: Iterable[int]) -> str:
    """Ascending ids as ranges: `1-4,7,9-10`."""
    runs = (
        [number for _, number in run] for _, run in groupby(enumerate(ids), lambda indexed: indexed[1] - indexed[0])
    )
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def parse_ids(text: str, most: int) -> list[int]:
    """The ids that `format_ids` wrote, at most `most` of them, whatever the text says; none if it cannot be read."""
    try:
        bounds = [[int(bound) for bound in part.split("-")] for part in text.split(",")]
    except ValueError:
        return []
    return list(islice((number for run in bounds for number in range(run[0], run[-1] + 1)), most))
