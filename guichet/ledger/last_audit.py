"""What the last audit of the ledger found (`audit/` makes it): a page reads this without importing the checks."""

from typing import Final

from sqlalchemy import select

from guichet.clock import Instant
from guichet.db.engine import Database
from guichet.db.tables import ledger_audits
from guichet.domain.messages import Message, decode
from guichet.domain.records import Record

_LAST: Final = select(ledger_audits).order_by(ledger_audits.c.id.desc()).limit(1)


class LastAudit(Record, frozen=True):
    """A row of `ledger_audits`."""

    id: int
    started_at: Instant
    finished_at: Instant
    head: str | None
    postings: int
    payments: int
    refunds: int
    fault: Message | None
    head_posting_id: int | None
    hash_chain_links: int | None


async def last_audit(db: Database) -> LastAudit | None:
    row = await db.one(_LAST)
    if row is None:
        return None
    values = dict(zip(ledger_audits.c.keys(), row, strict=True))
    return LastAudit(**{**values, "fault": decode(values["fault"])})
