"""Follows the chain of seals from its beginning, and names the first posting that is not as it was sealed."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import bindparam, select

from guichet.db.engine import Row
from guichet.db.tables import ledger_hash_chain, postings
from guichet.ledger.audit.books import BEFORE_ALL, Books
from guichet.ledger.hash_chain import GENESIS, MARK, chained, from_ranges, mark

_SEALS_AT_ONCE: Final = 20
_SEALS: Final = (
    select(ledger_hash_chain)
    .where(ledger_hash_chain.c.first_posting_id > bindparam("after"))
    .order_by(ledger_hash_chain.c.first_posting_id)
    .limit(bindparam("most"))
)
_SEALED_ROWS: Final = (
    select(postings)
    .where(postings.c.id >= bindparam("first_posting_id"), postings.c.id <= bindparam("last_posting_id"))
    .order_by(postings.c.id)
    .limit(bindparam("most"))
)


async def check_chain(books: Books, noted: Collection[str]) -> str | None:
    """The first fault of the chain in one sentence. `noted`: digests somebody wrote down; each must be in the chain."""
    strays = await books.db.scan(_SEALED_ROWS, first_posting_id=BEFORE_ALL, last_posting_id=0, most=1)
    if strays:
        return f"Posting {strays[0][0]} was inserted behind the first seal."
    previous: Row | None = None
    after = 0
    while seals := await books.db.scan(_SEALS, after=after, most=_SEALS_AT_ONCE):
        for seal in seals:
            if fault := await _check_seal(books, seal, previous):
                return fault
            previous = seal
            books.head = seal[5]
            books.digests.add(seal[5])
        after = seals[-1][1]
        books.count("seals", len(seals))
    unknown = next((digest for digest in noted if digest not in books.digests), None)
    if unknown is not None:
        return f"No seal has the noted digest {unknown}: the chain was cut short or written anew."
    return None


async def _check_seal(books: Books, seal: Row, previous: Row | None) -> str | None:
    number, first_posting_id, last_posting_id, posting_ids, row_hashes, digest, _ = seal
    begins = previous[2] + 1 if previous is not None else 1
    if first_posting_id != begins:
        return f"A seal is missing: seal {number} begins at posting {first_posting_id}, not {begins}."
    most = len(row_hashes) // MARK
    sealed = from_ranges(posting_ids, most + 1)
    if len(sealed) != most:
        return f"Seal {number} was rewritten: it names {len(sealed)} postings and row_hashes {most}."
    rows = await books.db.scan(
        _SEALED_ROWS, first_posting_id=first_posting_id, last_posting_id=last_posting_id, most=most + 1
    )
    behind = f"behind seal {number} (postings {first_posting_id} to {last_posting_id})"
    if fault := _first_difference(dict(zip(sealed, _cut(row_hashes), strict=True)), rows, behind):
        return fault
    if chained(previous[5] if previous is not None else GENESIS, rows) != digest:
        return f"Seal {number} was rewritten: its digest does not follow from the seal before it and its postings."
    return None


def _cut(row_hashes: str) -> list[str]:
    return [row_hashes[at : at + MARK] for at in range(0, len(row_hashes), MARK)]


def _first_difference(sealed: dict[int, str], rows: Sequence[Any], behind: str) -> str | None:
    found = {row[0]: row for row in rows}
    for posting_id in sorted(sealed.keys() | found.keys()):
        row = found.get(posting_id)
        if row is None:
            return f"Posting {posting_id} was removed {behind}."
        if posting_id not in sealed:
            return f"Posting {posting_id} was inserted {behind}."
        if mark(row) != sealed[posting_id]:
            return f"Posting {posting_id} was changed {behind}."
    return None
