"""What the checks of an audit share: what they have read so far, and reading a table in steps."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Column, Executable, bindparam, func, select

from guichet.clock import Instant
from guichet.db.engine import Database
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency

#: Rows read by one statement.
STEP: Final = 1000
#: Below every id that anybody could have inserted.
BEFORE_ALL: Final = -(2**63)

#: (merchant, env, currency, account)
Account = tuple[int, Environment, Currency, str]


@dataclass
class Books:
    """`horizon`: the postings up to this id are summed in steps; what follows is summed beside what it is compared to.

    `owed` is what the operator accounts must hold by the states of payments and refunds, up to the horizon.
    """

    db: Database
    now: Instant
    progress: Callable[[str], None]
    horizon: int = 0
    head: str | None = None
    digests: set[str] = field(default_factory=set)
    totals: Counter[Account] = field(default_factory=Counter)
    owed: Counter[Account] = field(default_factory=Counter)
    read: Counter[str] = field(default_factory=Counter)

    def count(self, noun: str, rows: int) -> None:
        self.read[noun] += rows
        self.progress(f"{noun}: {self.read[noun]:,}".replace(",", " "))


def upto(column: Column[int]) -> Executable:
    """The statement `spans` steps by: the last id of the next step and how many rows it has."""
    step = select(column).where(column > bindparam("after")).order_by(column).limit(bindparam("most")).subquery()
    return select(func.max(step.c[0]), func.count()).select_from(step)


async def spans(db: Database, steps: Executable, most: int = STEP) -> AsyncIterator[tuple[int, int, int]]:
    """(after, last, rows) of consecutive steps through a table by id, whatever gaps it has."""
    after = BEFORE_ALL
    while True:
        [(last, rows)] = await db.scan(steps, after=after, most=most)
        if not rows:
            return
        yield after, last, rows
        after = last
