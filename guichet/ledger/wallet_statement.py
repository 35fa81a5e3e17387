"""The statement of a wallet over a period: opening balance, movements, closing balance.

A movement is dated by its posting. Postings never change, so the closing balance of a period is the opening balance of
the next.
"""

from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, replace
from typing import Final, NamedTuple

from sqlalchemy import and_, bindparam, case, func, or_, select

from guichet.clock import Instant
from guichet.db.engine import Database, Row
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
_OF_MOVEMENT: Final = select(
    *columns(postings, "id", "created_at", "cause"),
    SIGNED.label("signed"),
    FEE.label("fee"),
    payments.c.reference.label("payment_reference"),
    refunds.c.reference.label("refund_reference"),
    ORDER_NUMBER.label("external_id"),
).select_from(WITH_SUBJECTS)
_MOVEMENTS: Final = (
    _OF_MOVEMENT.where(
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


@dataclass(frozen=True, slots=True)
class Totals:
    """Hundredths over the period. `collections` include credits released from suspense; `refunds` are less those given
    back because the disbursement failed; `fees` are what the service kept, for information: no part of the wallet."""

    collections: int = 0
    refunds: int = 0
    fees: int = 0
    movements: int = 0
    debits: int = 0
    credits: int = 0


class _Posting(NamedTuple):
    """A row of `_OF_MOVEMENT`."""

    id: int
    created_at: Instant
    cause: str
    signed: Hundredths
    fee: Hundredths
    payment_reference: str | None
    refund_reference: str | None
    external_id: str | None

    def movement(self, balance: int) -> Movement:
        return Movement(
            self.id,
            self.created_at,
            self.cause,
            self.payment_reference,
            self.refund_reference,
            self.external_id,
            self.signed,
            Hundredths(balance),
        )


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
            for row in rows:
                posting = _Posting(*row)
                self.totals = _added(self.totals, posting.cause, posting.signed, posting.fee)
                if posting.signed:
                    self.closing += posting.signed
                    yield posting.movement(self.closing)
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
    if before is None:
        rows: list[Row] = await db.scan(_NEWEST_OF_ALL, **params)
        if rows and list(rows[0])[-1] is None:
            return _newest_first([_Posting(*list(row)[:-2]) for row in rows], holds=int(list(rows[0])[-2]))
        postings = [_Posting(*list(row)[:-2]) for row in rows]
    else:
        postings = [_Posting(*row) for row in await db.scan(_NEWEST, **params)]
    if not postings:
        return []
    balance = await balance_before_posting(db, wallet, postings[-1].created_at, postings[-1].id, now)
    return _newest_first(postings, holds=balance + sum(posted.signed for posted in postings))


def _newest_first(postings: list[_Posting], holds: int) -> list[Movement]:
    """`holds`: what the wallet held after the first of them, which is the newest."""
    page = []
    for posted in postings:
        page.append(posted.movement(holds))
        holds -= posted.signed
    return page


def _added(totals: Totals, cause: str, amount: Hundredths, fee: Hundredths) -> Totals:
    collected = amount if cause in PAYMENT_CAUSES else 0
    refunded = -amount if cause in REFUND_CAUSES else 0
    return replace(
        totals,
        collections=totals.collections + collected,
        refunds=totals.refunds + refunded,
        fees=totals.fees + fee,
        movements=totals.movements + (amount != 0),
        debits=totals.debits + max(0, -amount),
        credits=totals.credits + max(0, amount),
    )
