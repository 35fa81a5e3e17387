"""The list of one merchant's payments, narrowed by operator and amount, for which there is no index.

A page is looked for among the next MOST_READ payments of the list, however many there are in all: one that finds fewer
rows than fit says where the next page goes on. Its counts by status are those of as many payments, the newest.
"""

import json
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Select, Subquery, bindparam, func, select, tuple_

from guichet.clock import Instant
from guichet.db.engine import Database
from guichet.db.lists.pages import RowKey, key_of
from guichet.db.sql_functions import equal, in_materialized, is_listed
from guichet.db.tables import payments
from guichet.domain.exports import ListFilter
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.payments import PaymentSummary

#: Payments that one page reads.
MOST_READ: Final = 5_000

_KEY: Final = (payments.c.created_at, payments.c.id)
_NEWEST: Final = RowKey(Instant(2**63 - 1), 2**63 - 1)


def _newest(*more: Any) -> Select[Any]:
    """The payments of a period, through the index of all or of those of a status."""
    return (
        select(*_KEY, payments.c.operator, payments.c.amount, payments.c.status)
        .where(
            *equal(payments, "merchant_id", "env"),
            payments.c.created_at >= bindparam("since"),
            payments.c.created_at <= bindparam("until"),
            *more,
        )
        .order_by(*(column.desc() for column in _KEY))
    )


def _next(*more: Any) -> Select[Any]:
    """Those that follow a key."""
    after = (bindparam("after_at", type_=BigInteger), bindparam("after_id", type_=BigInteger))
    return _newest(tuple_(*_KEY) < tuple_(*after), *more)


def _admits(rows: Subquery) -> ColumnElement[bool]:
    of_operators = is_listed(rows.c.operator, "operators")
    return of_operators & rows.c.amount.between(bindparam("least"), bindparam("most"))


def _admitted(rows: Subquery) -> Select[Any]:
    ids = (
        select(rows.c.id)
        .where(_admits(rows))
        .order_by(rows.c.created_at.desc(), rows.c.id.desc())
        .limit(bindparam("limit"))
    )
    columns = (payments.c[name] for name in PaymentSummary.__struct_fields__)
    return select(*columns).where(in_materialized(payments.c.id, ids))


#: By whether a status is asked for: the rows of a page, and the key of the last payment that it may read.
_READS: Final = {False: _next(), True: _next(payments.c.status == bindparam("status"))}
_ROWS: Final = {
    of_status: _admitted(query.limit(bindparam("most_read")).subquery()) for of_status, query in _READS.items()
}
_LAST: Final = {
    of_status: query.with_only_columns(*_KEY).offset(bindparam("all_but_one")).limit(1)
    for of_status, query in _READS.items()
}
_counted: Final = _newest().limit(bindparam("most_read")).subquery()
_COUNTS: Final = select(_counted.c.status, func.count().filter(_admits(_counted)), func.count()).group_by(
    _counted.c.status
)


async def narrowed_page(
    db: Database,
    merchant_id: MerchantId,
    env: Environment,
    filters: ListFilter,
    operators: list[str],
    since: Instant,
    until: Instant,
    limit: int,
    before: RowKey | None = None,
) -> tuple[list[PaymentSummary], RowKey | None]:
    """Payments older than `before`, newest first; and after which key the next page begins, None after the last one.
    `operators`: the codes that `filters` admits, in the catalogue of the merchant."""
    key = before or _NEWEST
    read = {
        "merchant_id": merchant_id,
        "env": env,
        "since": since,
        "until": until,
        "after_at": key.created_at,
        "after_id": key.id,
        **({"status": filters.status} if filters.status else {}),
    }
    of_status = filters.status is not None
    least, most = filters.bounds
    admit = {
        "operators": json.dumps(operators),
        "least": least,
        "most": most,
        "limit": limit + 1,
        "most_read": MOST_READ,
    }
    rows = [PaymentSummary(*row) for row in await db.scan(_ROWS[of_status], **read, **admit)]
    rows.sort(key=key_of, reverse=True)
    if len(rows) > limit:
        return rows[:limit], key_of(rows[limit - 1])
    last = await db.scan(_LAST[of_status], **read, all_but_one=MOST_READ - 1)
    return rows, RowKey(*last[0]) if last else None


async def narrowed_counts(
    db: Database,
    merchant_id: MerchantId,
    env: Environment,
    filters: ListFilter,
    operators: list[str],
    since: Instant,
    until: Instant,
) -> tuple[dict[str, int], bool]:
    """How many payments of each status the list has, whatever status it is of; at the key "": in all. And whether that
    is the least that they are, because there are more payments than may be read."""
    least, most = filters.bounds
    rows = await db.scan(
        _COUNTS,
        merchant_id=merchant_id,
        env=env,
        since=since,
        until=until,
        operators=json.dumps(operators),
        least=least,
        most=most,
        most_read=MOST_READ,
    )
    counts = {status: int(admitted) for status, admitted, _ in rows}
    return {**counts, "": sum(counts.values())}, sum(read for *_, read in rows) >= MOST_READ
