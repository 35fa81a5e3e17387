"""What every account of the ledger holds, all merchants together: wallets with providers, banks, what is owed and ours.

Payments write no row for it and lock nothing. The worker appends a rollup, the sums of all live postings up to one that
the hash chain covers; a reader adds the few postings after the last one. Rollups are never changed: two workers that
make one at the same time make the same.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec
from sqlalchemy import bindparam, delete, func, select

from guichet.clock import MINUTE, Instant
from guichet.db.engine import Database, Row
from guichet.db.sql_functions import params, upsert
from guichet.db.tables import postings, treasury_rollups
from guichet.domain.money import Currency, Hundredths
from guichet.ledger.hash_chain import chain_head

#: Postings that one rollup adds at most.
STEP: Final = 10_000
#: How often one is made while fewer follow.
ROLL_UP_EVERY: Final = MINUTE
#: Rollups that are kept, most of a day of them.
KEPT: Final = 1000

_LAST: Final = select(treasury_rollups).order_by(treasury_rollups.c.through_posting_id.desc()).limit(1)
_APPEND: Final = upsert(treasury_rollups).values(params(*treasury_rollups.c.keys())).on_conflict_do_nothing()
_OLDEST_KEPT: Final = (
    select(treasury_rollups.c.through_posting_id)
    .order_by(treasury_rollups.c.through_posting_id.desc())
    .offset(KEPT)
    .limit(1)
    .scalar_subquery()
)
_PRUNE: Final = delete(treasury_rollups).where(treasury_rollups.c.through_posting_id <= _OLDEST_KEPT)
_BY: Final = (postings.c.currency, postings.c.source, postings.c.destination)
_FOLLOWING: Final = (
    select(*_BY, func.sum(postings.c.amount))
    .where(postings.c.id > bindparam("after"), postings.c.env == "live")
    .group_by(*_BY)
)
_IN_STEP: Final = _FOLLOWING.where(postings.c.id <= bindparam("last"))


@dataclass(slots=True)
class Total:
    """Hundredths that an account was the source and the destination of."""

    outgoing: int = 0
    incoming: int = 0

    @property
    def held(self) -> Hundredths:
        """Of a wallet with a provider or a bank, which are the source when they grow."""
        return Hundredths(self.outgoing - self.incoming)

    @property
    def owed(self) -> Hundredths:
        """Of every other account."""
        return Hundredths(self.incoming - self.outgoing)


#: By currency and account.
Totals = dict[tuple[Currency, str], Total]


async def totals(db: Database) -> Totals:
    """Now. Cost: one row and the postings of the last minutes, while a worker runs."""
    through, ledger, _ = await _last(db)
    _add(ledger, await db.scan(_FOLLOWING, after=through))
    return dict(ledger)


async def roll_up(db: Database, now: Instant, step: int = STEP) -> bool:
    """Appends the next rollup; True when more postings wait for one. Cost: at most `step` postings, by their
    ids."""
    through, ledger, made_at = await _last(db)
    settled = (await chain_head(db)).last_posting_id
    if settled <= through or (settled - through < step and now - made_at < ROLL_UP_EVERY):
        return False
    last = min(settled, through + step)
    _add(ledger, await db.scan(_IN_STEP, after=through, last=last))
    sums = [[*key, total.outgoing, total.incoming] for key, total in sorted(ledger.items())]
    async with db.transaction() as tx:
        await tx.write(_APPEND, through_posting_id=last, sums=msgspec.json.encode(sums).decode(), created_at=now)
        await tx.write(_PRUNE)
    return settled - last >= step


async def _last(db: Database) -> tuple[int, defaultdict[tuple[Currency, str], Total], Instant]:
    """The last posting of the newest rollup, its sums and its time; nothing while there is none."""
    ledger: defaultdict[tuple[Currency, str], Total] = defaultdict(Total)
    row = await db.one(_LAST)
    if row is None:
        return 0, ledger, Instant(0)
    through, sums, made_at = row
    for currency, account, outgoing, incoming in msgspec.json.decode(sums):
        ledger[currency, account] = Total(outgoing, incoming)
    return through, ledger, Instant(made_at)


def _add(ledger: defaultdict[tuple[Currency, str], Total], rows: Iterable[Row]) -> None:
    for currency, source, destination, amount in rows:
        ledger[currency, source].outgoing += int(amount)
        ledger[currency, destination].incoming += int(amount)
