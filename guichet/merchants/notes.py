"""What the staff wrote about a merchant: SQL and row mapping."""

from typing import Final

from sqlalchemy import bindparam, func, insert, select

from guichet.clock import Instant
from guichet.db.engine import Reader, Transaction, require
from guichet.db.sql_functions import equal, new_row
from guichet.db.tables import merchant_notes
from guichet.domain.ids import MerchantId
from guichet.domain.records import Record

#: Notes that one page shows.
PAGE: Final = 25


class Note(Record, frozen=True):
    """A row of `merchant_notes`."""

    id: int
    merchant_id: MerchantId
    author: str
    text: str
    created_at: Instant


_INSERT: Final = insert(merchant_notes).values(new_row(merchant_notes)).returning(*merchant_notes.c)
_PAGE: Final = (
    select(merchant_notes)
    .where(merchant_notes.c.merchant_id == bindparam("merchant"), merchant_notes.c.id < bindparam("before"))
    .order_by(merchant_notes.c.id.desc())
    .limit(PAGE + 1)
)

_NEWEST: Final = select(func.max(merchant_notes.c.id)).where(merchant_notes.c.merchant_id == bindparam("merchant"))
_SAME_SINCE: Final = (
    select(merchant_notes)
    .where(
        merchant_notes.c.merchant_id == bindparam("merchant"),
        merchant_notes.c.id > bindparam("after"),
        *equal(merchant_notes, author="writer", text="same"),
    )
    .limit(1)
)


async def add(tx: Transaction, merchant_id: MerchantId, author: str, text: str, now: Instant) -> Note:
    return Note(*require(await tx.write(_INSERT, merchant_id=merchant_id, author=author, text=text, created_at=now)))


async def page(db: Reader, merchant_id: MerchantId, before: int) -> list[Note]:
    """The notes with an id below `before`, newest first: at most PAGE and one more, which says that others follow."""
    return [Note(*row) for row in await db.all(_PAGE, merchant=merchant_id, before=before)]


async def newest(db: Reader, merchant_id: MerchantId) -> int:
    """The id of the merchant's last note; 0 without one. One index probe."""
    row = await db.one(_NEWEST, merchant=merchant_id)
    return int(row[0] or 0) if row else 0


async def same_since(db: Reader, merchant_id: MerchantId, author: str, text: str, after: int) -> Note | None:
    """The note of this author with this text and an id above `after`. Cost: the merchant's notes since."""
    return await db.one_as(Note, _SAME_SINCE, merchant=merchant_id, after=after, writer=author, same=text)
