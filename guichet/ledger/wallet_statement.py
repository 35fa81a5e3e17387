"""The statement of a wallet over a period: opening balance, movements, closing balance.

A movement is dated by its posting. Postings never change, so the closing balance of a period is the opening balance of
the next.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import and_, bindparam, case, func, or_, select

from guichet.clock import DAY, Instant
from guichet.db.engine import Database, require
from guichet.db.tables import payments, postings, refunds
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency, Hundredths
from guichet.domain.posting_rules import FEES, PAYMENT_CAUSES, REFUND_CAUSES, WALLET
from guichet.ledger.postings import OF_PAYMENTS, OF_REFUNDS

_STEP: Final = 500
#: Days that one statement sums for the opening balance.
_DAYS: Final = 31
_MINE: Final = (
    postings.c.merchant_id == bindparam("merchant_id"),
    postings.c.env == bindparam("env"),
    postings.c.currency == bindparam("currency"),
)
#: What a posting adds to the wallet, and to what the service earned.
_SIGNED: Final = case(
    (postings.c.destination == WALLET, postings.c.amount), (postings.c.source == WALLET, -postings.c.amount), else_=0
)
_FEE: Final = case(
    (postings.c.destination == FEES, postings.c.amount), (postings.c.source == FEES, -postings.c.amount), else_=0
)
_SUM: Final = select(func.coalesce(func.sum(_SIGNED), 0)).where(
    *_MINE, postings.c.created_at >= bindparam("since"), postings.c.created_at < bindparam("until")
)
_FIRST: Final = select(func.min(postings.c.created_at)).where(*_MINE)
_MOVEMENTS: Final = (
    select(
        postings.c.id,
        postings.c.created_at,
        postings.c.cause,
        _SIGNED.label("signed"),
        _FEE.label("fee"),
        payments.c.reference.label("payment_reference"),
        refunds.c.reference.label("refund_reference"),
        payments.c.external_id,
    )
    .outerjoin(refunds, and_(OF_REFUNDS, refunds.c.id == postings.c.subject_id))
    .outerjoin(
        payments,
        payments.c.id == func.coalesce(refunds.c.payment_id, case((OF_PAYMENTS, postings.c.subject_id))),
    )
    .where(
        *_MINE,
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


class Statement:
    """The statement of one wallet from `since` to `until`, both included.

    Call `opening` first, then iterate over `movements`; `totals` and `closing` cover what was iterated so far.
    """

    def __init__(
        self,
        db: Database,
        merchant_id: MerchantId,
        env: Environment,
        currency: Currency,
        since: Instant | None,
        until: Instant,
    ) -> None:
        self._db = db
        self._mine = {"merchant_id": merchant_id, "env": env, "currency": currency}
        self.since = since
        self.until = until
        self.closing = 0
        self.totals = Totals()

    async def opening(self) -> int:
        """The balance before `since`. Cost: an index range of what was before, in steps of a month."""
        self.closing = 0
        (first,) = require(await self._db.one(_FIRST, **self._mine))
        if self.since is None or first is None:
            return 0
        at = first
        while at < self.since:
            upper = min(self.since, at + _DAYS * DAY)
            self.closing += int((await self._db.scan(_SUM, **self._mine, since=at, until=upper))[0][0])
            at = upper
        return self.closing

    async def movements(self) -> AsyncIterator[Movement]:
        """Those that move the wallet, oldest first. Memory: one step."""
        at, after = (self.since or 0), 0
        while rows := await self._db.scan(_MOVEMENTS, **self._mine, at=at, after=after, until=self.until):
            for posting_id, created_at, cause, amount, fee, payment, refund, external_id in rows:
                self.totals = _added(self.totals, cause, amount, fee)
                if amount:
                    self.closing += amount
                    yield Movement(
                        posting_id, created_at, cause, payment, refund, external_id, amount, Hundredths(self.closing)
                    )
            after, at = rows[-1][0], rows[-1][1]


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
