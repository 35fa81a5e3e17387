"""What the checks of one audit share: what they have read so far, and how a table is read in steps."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Column, Executable, bindparam, func, select

from guichet.clock import Instant
from guichet.db.engine import Database
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency

#: Rows read by one statement.
ROWS_AT_ONCE: Final = 1000
#: Lower than any id that somebody could have inserted.
BEFORE_ALL: Final = -(2**63)

#: (merchant, env, currency, account)
Account = tuple[MerchantId, Environment, Currency, str]


@dataclass
class AuditState:
    """`progress` is told what was read so far, for the person who waits."""

    db: Database
    now: Instant
    progress: Callable[[str], None]
    #: Postings up to this id are summed in steps; later ones in the same statement as what they are compared with.
    horizon: int = 0
    #: The last digest of the hash chain; None while the chain is empty.
    head: str | None = None
    #: The last posting that the hash chain covers; None while it is empty.
    head_posting_id: int | None = None
    #: The sum of each account's postings up to the horizon, in hundredths.
    totals: Counter[Account] = field(default_factory=Counter)
    #: What the floats must hold by the states of payments and refunds, up to the horizon, in hundredths.
    expected_floats: Counter[Account] = field(default_factory=Counter)
    #: Rows read so far, by what they are.
    read: Counter[str] = field(default_factory=Counter)

    def count(self, noun: str, rows: int) -> None:
        self.read[noun] += rows
        self.progress(f"{noun}: {self.read[noun]:,}".replace(",", " "))


def next_id_range(column: Column[int]) -> Executable:
    """The statement that `id_ranges` repeats: the last id of the next `most` rows, and how many rows they are."""
    step = select(column).where(column > bindparam("after")).order_by(column).limit(bindparam("most")).subquery()
    return select(func.max(step.c[0]), func.count()).select_from(step)


async def id_ranges(
    db: Database, next_range: Executable, most: int = ROWS_AT_ONCE
) -> AsyncIterator[tuple[int, int, int]]:
    """(after, last, rows) of consecutive ranges of a table's ids, `after` excluded, with up to `most` rows each."""
    after = BEFORE_ALL
    while True:
        [(last, rows)] = await db.scan(next_range, after=after, most=most)
        if not rows:
            return
        yield after, last, rows
        after = last
