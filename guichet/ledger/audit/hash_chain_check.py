"""Checks the hash chain from its beginning, and names the first posting that is not as it was when it was added."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import bindparam, select

from guichet.db.tables import ledger_hash_chain, postings
from guichet.domain.chain_heads import HeadComparison
from guichet.domain.messages import Message
from guichet.ledger.audit.audit_state import BEFORE_ALL, AuditState
from guichet.ledger.audit.faults import AuditFault
from guichet.ledger.hash_chain import FIRST_DIGEST, ROW_HASH_LENGTH, HashChainLink, link_digest, parse_ids, row_hash

_LINKS_AT_ONCE: Final = 20
_LINKS: Final = (
    select(ledger_hash_chain)
    .where(ledger_hash_chain.c.first_posting_id > bindparam("after"))
    .order_by(ledger_hash_chain.c.first_posting_id)
    .limit(bindparam("most"))
)
_POSTINGS: Final = (
    select(postings)
    .where(postings.c.id >= bindparam("first_posting_id"), postings.c.id <= bindparam("last_posting_id"))
    .order_by(postings.c.id)
    .limit(bindparam("most"))
)


async def check_hash_chain(state: AuditState, heads: HeadComparison) -> Message | None:
    """The first fault of the chain. `heads`: what the chain must still contain."""
    too_low = await state.db.scan(_POSTINGS, first_posting_id=BEFORE_ALL, last_posting_id=0, most=1)
    if too_low:
        return AuditFault.BEFORE_CHAIN(posting=too_low[0][0])
    previous: HashChainLink | None = None
    after = 0
    while rows := await state.db.scan(_LINKS, after=after, most=_LINKS_AT_ONCE):
        for row in rows:
            link = HashChainLink(*row)
            if fault := await _check_link(state, link, previous):
                return fault
            previous = link
            state.head, state.head_posting_id = link.digest, link.last_posting_id
            heads.reached(link.last_posting_id, link.digest)
            after = link.first_posting_id
        state.count("hash chain links", len(rows))
    return heads.fault


async def _check_link(state: AuditState, link: HashChainLink, previous: HashChainLink | None) -> Message | None:
    expected = previous.last_posting_id + 1 if previous is not None else 1
    if link.first_posting_id != expected:
        return AuditFault.LINK_MISSING(link=link.id, posting=link.first_posting_id, wanted=expected)
    hashes = _split(link.row_hashes)
    ids = parse_ids(link.posting_ids, len(hashes) + 1)
    if len(ids) != len(hashes):
        return AuditFault.LINK_COUNTS(link=link.id, postings=len(ids), hashes=len(hashes))
    rows = await state.db.scan(
        _POSTINGS,
        first_posting_id=link.first_posting_id,
        last_posting_id=link.last_posting_id,
        most=len(hashes) + 1,
    )
    if fault := _first_difference(dict(zip(ids, hashes, strict=True)), rows):
        covers = {"first": link.first_posting_id, "last": link.last_posting_id}
        return AuditFault.LINK_COVERS(audit_fault=fault, link=link.id, **covers)
    if link_digest(previous.digest if previous is not None else FIRST_DIGEST, rows) != link.digest:
        return AuditFault.LINK_DIGEST(link=link.id)
    return None


def _split(row_hashes: str) -> list[str]:
    return [row_hashes[at : at + ROW_HASH_LENGTH] for at in range(0, len(row_hashes), ROW_HASH_LENGTH)]


def _first_difference(expected: dict[int, str], rows: Sequence[Any]) -> Message | None:
    """`expected`: the hash of each posting by its id, as the link holds them."""
    by_id = {row[0]: row for row in rows}
    for posting_id in sorted(expected.keys() | by_id.keys()):
        row = by_id.get(posting_id)
        if row is None:
            return AuditFault.POSTING_REMOVED(posting=posting_id)
        if posting_id not in expected:
            return AuditFault.POSTING_INSERTED(posting=posting_id)
        if row_hash(row) != expected[posting_id]:
            return AuditFault.POSTING_CHANGED(posting=posting_id)
    return None
