"""Proves that nobody changed, removed or cut off entries of the audit log."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from guichet.audit_log.entries import digest_of, head, page
from guichet.db.engine import Database

#: Stands for the previous digest in the first entry.
FIRST_DIGEST: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class Verification:
    """`head`: the last digest, to be written down elsewhere. `fault`: one sentence about the first wrong entry."""

    entries: int
    head: str
    fault: str | None


async def verify(db: Database, known_heads: Collection[str] = ()) -> Verification:
    """Reads the whole log, in steps. `known_heads`: digests that were written down earlier; the log must still contain
    them."""
    end, end_digest = await head(db)
    number, digest, digests = 0, FIRST_DIGEST, set[str]()
    while entries := await page(db, number):
        for entry in entries:
            if entry.number != number + 1:
                return Verification(number, digest, f"Entry {number + 1} is missing.")
            if entry.digest != digest_of(digest, entry):
                return Verification(number, digest, f"Entry {entry.number} was changed: its digest does not fit.")
            number, digest = entry.number, entry.digest
            digests.add(digest)
    # Entries may have been added since the head was read: it must be one of those that were read, then.
    if end > number or (end and end_digest not in digests):
        return Verification(number, digest, f"Entries after {number} are missing: the log once had {end}.")
    for known in known_heads:
        if known not in digests:
            return Verification(number, digest, f"No entry has the digest {known}: the log was rewritten.")
    return Verification(number, digest, None)
