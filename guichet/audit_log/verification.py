"""Proves that nobody changed, removed or cut off entries of the audit log."""

from dataclasses import dataclass
from typing import Final

from guichet.audit_log.entries import digest_of, head, page
from guichet.db.engine import Database
from guichet.domain.chain_heads import LOG_FAULTS, ChainFault, HeadComparison, KnownHead, KnownHeads
from guichet.domain.messages import Message

#: Stands for the previous digest in the first entry.
FIRST_DIGEST: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class Verification:
    """`head`: the last digest, to be written down elsewhere. `fault`: about the first wrong entry."""

    entries: int
    head: str
    fault: Message | None


_NO_HEADS: Final = KnownHeads()


async def verify(db: Database, known: KnownHeads = _NO_HEADS) -> Verification:
    """Reads the whole log, in steps. `known`: heads that left this database; the log must still contain them."""
    end, end_digest = await head(db)
    heads = HeadComparison(known.acts, LOG_FAULTS)
    # Entries may have been added since the head was read: it must be one of those that are read now.
    kept = HeadComparison([KnownHead(end_digest, end, ChainFault.OWN_HEAD())], LOG_FAULTS)
    number, digest = 0, FIRST_DIGEST
    while entries := await page(db, number):
        for entry in entries:
            if entry.number != number + 1:
                return Verification(number, digest, ChainFault.ENTRY_MISSING(number=number + 1))
            if entry.digest != digest_of(digest, entry):
                return Verification(number, digest, ChainFault.ENTRY_CHANGED(number=entry.number))
            number, digest = entry.number, entry.digest
            heads.reached(number, digest)
            kept.reached(number, digest)
    if kept.fault is not None:
        return Verification(number, digest, ChainFault.ENTRIES_MISSING(number=number, end=end))
    return Verification(number, digest, heads.fault or known.fault)
