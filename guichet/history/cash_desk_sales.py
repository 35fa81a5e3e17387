"""The sales of a cash desk in a period, by cashier and operator: what the till is compared with at the end of a day.

A sale belongs to the moment at which it was made, even if its customer validated after midnight. Cost: the sales of
that period, by an index that holds nothing but sales.
"""

from typing import Final

from sqlalchemy import BigInteger, bindparam, cast, func, select, text

from guichet.clock import Instant
from guichet.db.engine import Database
from guichet.db.sql_functions import columns, equal
from guichet.db.tables import payment_links, payments, users
from guichet.db.tables.payment_tables import CASHIER_KNOWN
from guichet.domain.accounts import UserId
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency, Hundredths
from guichet.domain.payments import PaymentStatus
from guichet.domain.records import Record

_SALES: Final = (
    select(
        payment_links.c.cashier_id,
        users.c.name,
        *columns(payments, "operator", "currency", "status"),
        func.count(),
        cast(func.sum(payments.c.amount), BigInteger),
    )
    .join(payments, payments.c.link_id == payment_links.c.id)
    .join(users, users.c.id == payment_links.c.cashier_id)
    .where(
        text(f"payment_links.{CASHIER_KNOWN}"),
        *equal(payment_links, "merchant_id", "test"),
        payment_links.c.created_at >= bindparam("since"),
        payment_links.c.created_at < bindparam("until"),
        (payments.c.status == "succeeded") | (payments.c.status == "refunded"),
    )
    .group_by(payment_links.c.cashier_id, users.c.name, payments.c.operator, payments.c.currency, payments.c.status)
    .order_by(users.c.name, payment_links.c.cashier_id, payments.c.operator, payments.c.status.desc())
)


class Sales(Record, frozen=True):
    """Payments of one cashier's sales by one operator. `status`: `succeeded`, or `refunded` if the money went back.
    `amount`: the merchant's share, without the fee."""

    cashier_id: UserId
    cashier: str
    operator: str
    currency: Currency
    status: PaymentStatus
    count: int
    amount: Hundredths


async def sales_between(
    db: Database, merchant_id: MerchantId, env: Environment, since: Instant, until: Instant
) -> list[Sales]:
    """Of all cashiers, each with their operators."""
    rows = await db.scan(_SALES, merchant_id=merchant_id, test=env == "test", since=since, until=until)
    return [Sales(*row) for row in rows]
