"""What a wallet held at an instant of the past, without adding up all its postings each time.

The sum up to an instant that is more than a day past never changes: postings are dated when they are made, and are
never changed. It is kept as a checkpoint, at midnight UTC, so the next reader adds up less than two days.
"""

from dataclasses import asdict, dataclass
from typing import Final

from sqlalchemy import ColumnElement, bindparam, case, func, select

from guichet.clock import DAY, Instant, earlier, later
from guichet.db.engine import Database, require
from guichet.db.sql_functions import equal, params, upsert
from guichet.db.tables import postings, wallet_checkpoints
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency
from guichet.domain.posting_rules import WALLET

#: Days that one statement sums at most while there is no checkpoint; the last ones are summed one by one.
_DAYS: Final = 31
#: A transaction that began before midnight has ended for long.
_SETTLED_AFTER: Final = DAY

#: The postings of one wallet, and what each adds to it.
OF_WALLET: Final = equal(postings, "merchant_id", "env", "currency")
SIGNED: Final[ColumnElement[int]] = case(
    (postings.c.destination == WALLET, postings.c.amount), (postings.c.source == WALLET, -postings.c.amount), else_=0
)
_SUM: Final = select(func.coalesce(func.sum(SIGNED), 0)).where(
    *OF_WALLET, postings.c.created_at >= bindparam("since"), postings.c.created_at < bindparam("until")
)
_SUM_OF_INSTANT: Final = select(func.coalesce(func.sum(SIGNED), 0)).where(
    *OF_WALLET, postings.c.created_at == bindparam("at"), postings.c.id < bindparam("before")
)
_FIRST: Final = select(func.min(postings.c.created_at)).where(*OF_WALLET)
_THIS: Final = equal(wallet_checkpoints, "merchant_id", "env", "currency")
_LAST: Final = (
    select(wallet_checkpoints.c.at, wallet_checkpoints.c.balance)
    .where(*_THIS, wallet_checkpoints.c.at <= bindparam("upto"))
    .order_by(wallet_checkpoints.c.at.desc())
    .limit(1)
)
_KEEP: Final = upsert(wallet_checkpoints).values(params(*wallet_checkpoints.c.keys())).on_conflict_do_nothing()


@dataclass(frozen=True, slots=True)
class WalletKey:
    merchant_id: MerchantId
    env: Environment
    currency: Currency


async def balance_before(db: Database, wallet: WalletKey, instant: Instant, now: Instant) -> int:
    """What the wallet held just before `instant`, in hundredths.

    Cost: less than two days of postings where there are checkpoints; the first reader adds up everything before, in
    steps of a month and then of a day, and leaves them.
    """
    key = asdict(wallet)
    row = await db.one(_LAST, **key, upto=instant)
    if row is None:
        (first,) = require(await db.one(_FIRST, **key))
        if first is None:
            return 0
        at, balance = Instant(first), 0
    else:
        at, balance = Instant(row[0]), int(row[1])
    settled = earlier(now, _SETTLED_AFTER)
    while at < instant:
        upper = _step(at, instant)
        balance += int((await db.scan(_SUM, **key, since=at, until=upper))[0][0])
        if upper % DAY == 0 and upper <= settled:
            await db.write(_KEEP, **key, at=upper, balance=balance)
        at = upper
    return balance


async def balance_before_posting(db: Database, wallet: WalletKey, at: Instant, posting_id: int, now: Instant) -> int:
    """What the wallet held just before this posting of `at`."""
    balance = await balance_before(db, wallet, at, now)
    return balance + int((await db.scan(_SUM_OF_INSTANT, **asdict(wallet), at=at, before=posting_id))[0][0])


def _step(at: Instant, upto: Instant) -> Instant:
    """The next midnight, or a later one while there is more than a month to add up; never later than `upto`."""
    midnight = later(Instant(at // DAY * DAY), DAY)
    far = later(midnight, (_DAYS - 1) * DAY)
    return far if later(far, _DAYS * DAY) < upto else min(midnight, upto)
