"""The margin of each operator: the fees that merchants paid less what the providers charged."""

from typing import Final

from msgspec import Struct
from sqlalchemy import and_, bindparam, case, func, or_, select

from guichet.clock import HOUR, Instant, earlier, later
from guichet.db.engine import Database
from guichet.db.lists.ids_by_date import IdsByDate
from guichet.db.sql_functions import columns
from guichet.db.tables import disputes, payments, postings, refunds
from guichet.domain.money import Currency
from guichet.domain.posting_rules import COLLECTED, FEES, PROVIDER_FEES
from guichet.ledger.postings import OF_DISPUTES, OF_PAYMENTS, OF_REFUNDS

#: Postings that one statement sums.
_STEP: Final = 10_000
#: Ids are in the order of dates, except for postings written at the same time.
_SLACK: Final = HOUR
_ALWAYS: Final = Instant(2**62)

_IDS: Final = IdsByDate(postings)
_IN_STEP: Final = (
    postings.c.id >= bindparam("first"),
    postings.c.id < bindparam("end"),
    postings.c.env == "live",
    postings.c.created_at >= bindparam("since"),
    postings.c.created_at <= bindparam("until"),
)
#: Of a dispute that matches no payment, the account that it was found at.
_operator: Final = func.coalesce(payments.c.operator, disputes.c.provider_account)
#: What moved our fees or those of providers, and the amounts of the payments that succeeded.
_SUMS: Final = (
    select(
        _operator,
        *columns(postings, "currency", "cause", "leg", "source", "destination"),
        func.sum(postings.c.amount),
        func.count(),
    )
    .outerjoin(refunds, and_(OF_REFUNDS, refunds.c.id == postings.c.subject_id))
    .outerjoin(disputes, and_(OF_DISPUTES, disputes.c.id == postings.c.subject_id))
    .outerjoin(
        payments,
        payments.c.id
        == func.coalesce(refunds.c.payment_id, disputes.c.payment_id, case((OF_PAYMENTS, postings.c.subject_id))),
    )
    .where(
        *_IN_STEP,
        or_(
            *(
                side == account
                for side in (postings.c.source, postings.c.destination)
                for account in (FEES, PROVIDER_FEES)
            ),
            and_(postings.c.cause == COLLECTED, postings.c.leg == "amount"),
        ),
        _operator.is_not(None),
    )
    .group_by(_operator, *columns(postings, "currency", "cause", "leg", "source", "destination"))
)


class Margin(Struct):
    """Hundredths. `fees`: what the service earned, less what it gave back with refunds. `provider_fees`: what was
    charged, as far as providers' statements say. `payments`: how many succeeded."""

    operator: str
    currency: Currency
    fees: int = 0
    provider_fees: int = 0
    payments: int = 0

    @property
    def margin(self) -> int:
        return self.fees - self.provider_fees


async def margins(db: Database, since: Instant | None, until: Instant | None) -> dict[tuple[str, Currency], Margin]:
    """By operator and currency, the postings of live payments from `since` to `until`, both included.

    Cost: reads each posting of the period once by its id, 10 000 at a time, and the payments of those that moved fees;
    nothing before or after it.
    """
    start, last = since or Instant(0), until or _ALWAYS
    first = await _IDS.first_at(db, earlier(start, _SLACK))
    end = await _IDS.first_at(db, later(last, _SLACK))
    by_operator: dict[tuple[str, Currency], Margin] = {}
    for at in range(first, end, _STEP):
        step = {"first": at, "end": min(end, at + _STEP)}
        rows = await db.scan(_SUMS, **step, since=start, until=last)
        for operator, currency, cause, leg, source, destination, amount, count in rows:
            margin = by_operator.setdefault((operator, currency), Margin(operator, currency))
            margin.fees += int(amount) * ((destination == FEES) - (source == FEES))
            margin.provider_fees += int(amount) * ((source == PROVIDER_FEES) - (destination == PROVIDER_FEES))
            margin.payments += int(count) if (cause, leg) == (COLLECTED, "amount") else 0
    return dict(sorted(by_operator.items()))
