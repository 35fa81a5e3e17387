"""The statement of a wallet over a period: opening balance, movements, closing balance.

A movement is dated by its posting. Postings never change, so the closing balance of a period is the opening balance of
the next.
"""

from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Final

from sqlalchemy import and_, bindparam, case, func, or_, select

from guichet.clock import Instant
from guichet.db.engine import Database
from guichet.db.sql_functions import columns, equal
from guichet.db.tables import payments, postings, refunds
from guichet.db.tables.payment_tables import ORDER_NUMBER
from guichet.domain.money import Hundredths
from guichet.domain.posting_rules import FEES, PAYMENT_CAUSES, REFUND_CAUSES, WALLET
from guichet.ledger.balance_checkpoints import OF_WALLET, SIGNED, WalletKey, balance_before, balance_before_posting
from guichet.ledger.postings import OF_PAYMENTS, OF_REFUNDS
from guichet.ledger.wallets import CURRENT_BALANCE

_STEP: Final = 500
#: What a posting adds to what the service earned.
FEE: Final = case(
    (postings.c.destination == FEES, postings.c.amount), (postings.c.source == FEES, -postings.c.amount), else_=0
)
#: Each posting with the payment or the refund that made it; disputes have neither.
WITH_SUBJECTS: Final = postings.outerjoin(refunds, and_(OF_REFUNDS, refunds.c.id == postings.c.subject_id)).outerjoin(
    payments,
    payments.c.id == func.coalesce(refunds.c.payment_id, case((OF_PAYMENTS, postings.c.subject_id))),
)
#: The fields of `Movement` but the balance.
_OF_MOVEMENT: Final = select(
    *columns(postings, "id", "created_at", "cause"),
    payments.c.reference.label("payment_reference"),
    refunds.c.reference.label("refund_reference"),
    ORDER_NUMBER.label("external_id"),
    SIGNED.label("signed"),
).select_from(WITH_SUBJECTS)
_MOVEMENTS: Final = (
    _OF_MOVEMENT.add_columns(FEE)
    .where(
        *OF_WALLET,
        or_(
            postings.c.created_at > bindparam("at"),
            and_(postings.c.created_at == bindparam("at"), postings.c.id > bindparam("after")),
        ),
        postings.c.created_at >= bindparam("at"),
        postings.c.created_at <= bindparam("until"),
    )
    .order_by(postings.c.created_at, postings.c.id)
    .limit(_STEP)
)
_NEWEST: Final = (
    _OF_MOVEMENT.where(
        *OF_WALLET,
        or_(postings.c.source == WALLET, postings.c.destination == WALLET),
        postings.c.created_at >= bindparam("since"),
        postings.c.created_at <= bindparam("until"),
        or_(
            postings.c.created_at < bindparam("until"),
            and_(postings.c.created_at == bindparam("until"), postings.c.id < bindparam("before")),
        ),
    )
    .order_by(postings.c.created_at.desc(), postings.c.id.desc())
    .limit(bindparam("most"))
)
_later: Final = postings.alias("later")
#: The same with what the wallet holds now, and whether it has postings after the period.
_NEWEST_OF_ALL: Final = _NEWEST.add_columns(
    CURRENT_BALANCE,
    select(_later.c.id)
    .where(
        *equal(_later, "merchant_id", "env", "currency"),
        _later.c.created_at > bindparam("until"),
    )
    .limit(1)
    .scalar_subquery(),
)
#: No posting has this id yet.
_LAST_ID: Final = 2**62
#: Of the values of `_OF_MOVEMENT`.
_WIDTH: Final = len(_OF_MOVEMENT.selected_columns)


@dataclass(frozen=True, slots=True)
class Movement:
    """`amount` is signed hundredths: positive is a credit of the wallet; `balance` is what it holds afterwards."""

    posting_id: int
    at: Instant
    cause: str
    payment_reference: str | None
    refund_reference: str | None
    external_id: str | None
    amount: Hundredths
    balance: Hundredths


@dataclass(slots=True)
class Totals:
    """Hundredths over the period. `collections` include credits released from suspense; `refunds` are less those given
    back because the disbursement failed; `fees` are what the service kept, for information: no part of the wallet."""

    collections: int = 0
    refunds: int = 0
    fees: int = 0
    movements: int = 0
    debits: int = 0
    credits: int = 0

    def add(self, movement: Movement, fee: Hundredths) -> None:
        self.collections += movement.amount if movement.cause in PAYMENT_CAUSES else 0
        self.refunds -= movement.amount if movement.cause in REFUND_CAUSES else 0
        self.fees += fee
        self.movements += movement.amount != 0
        self.debits += max(0, -movement.amount)
        self.credits += max(0, movement.amount)


class Statement:
    """The statement of one wallet from `since` to `until`, both included.

    Call `opening` first, then iterate over `movements`; `totals` and `closing` cover what was iterated so far.
    """

    def __init__(self, db: Database, wallet: WalletKey, since: Instant | None, until: Instant, now: Instant) -> None:
        self._db = db
        self._wallet = wallet
        self._now = now
        self.since = since
        self.until = until
        self.closing = 0
        self.totals = Totals()

    async def opening(self) -> int:
        """The balance before `since`. Cost: `balance_checkpoints.balance_before`."""
        self.closing = 0
        if self.since is not None:
            self.closing = await balance_before(self._db, self._wallet, self.since, self._now)
        return self.closing

    async def movements(self) -> AsyncIterator[Movement]:
        """Those that move the wallet, oldest first. Memory: one step."""
        at, after = (self.since or 0), 0
        while rows := await self._db.scan(_MOVEMENTS, **asdict(self._wallet), at=at, after=after, until=self.until):
            for *values, fee in rows:
                self.closing += values[-1]
                movement = Movement(*[*values, Hundredths(self.closing)])
                self.totals.add(movement, fee)
                if movement.amount:
                    yield movement
            after, at = rows[-1][0], rows[-1][1]


async def newest_movements(
    db: Database,
    wallet: WalletKey,
    since: Instant,
    until: Instant,
    most: int,
    now: Instant,
    before: tuple[Instant, int] | None = None,
) -> list[Movement]:
    """Up to `most` movements of `since <= t <= until`, newest first, each with what the wallet held after it.

    `before`: only those before this one (its instant and posting). Cost: an index range of the postings up to the last
    one on the page, those that do not move the wallet included. A page that does not begin with the wallet's newest
    movement costs `balance_checkpoints.balance_before` too: up to two days of postings.
    """
    upto, posting = before or (until, _LAST_ID)
    params = {**asdict(wallet), "since": since, "until": min(upto, until), "before": posting, "most": most}
    rows = [list(row) for row in await db.scan(_NEWEST_OF_ALL if before is None else _NEWEST, **params)]
    if not rows:
        return []
    postings = [row[:_WIDTH] for row in rows]
    if before is None and rows[0][-1] is None:
        holds = int(rows[0][-2])
    else:
        posting_id, at, *_ = postings[-1]
        balance = await balance_before_posting(db, wallet, at, posting_id, now)
        holds = balance + sum(amount for *_, amount in postings)
    page = []
    for *values, amount in postings:
        page.append(Movement(*[*values, amount, Hundredths(holds)]))
        holds -= amount
    return page
