"""Lists of payments: what may be filtered on, one page, and how many wait."""

import json
from functools import cache
from typing import Any, Final, TypeVar

from sqlalchemy import Executable, bindparam, func, literal_column, select, tuple_

from guichet.clock import Instant, later
from guichet.db.engine import Database
from guichet.db.lists.pages import ListScope, PageBounds, count_before, read_page
from guichet.db.sql_functions import is_listed
from guichet.db.tables import payments
from guichet.domain.ids import LinkId, MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.payments import Payment, PaymentStatus, PaymentSummary
from guichet.domain.records import Record
from guichet.payments.repository import OF_MERCHANT, by_external_id

#: What is read of the payments of a list.
Shown = TypeVar("Shown", bound=PaymentSummary)

_WAITS: Final = (
    select(payments.c.id)
    .where(
        *OF_MERCHANT,
        payments.c.status == literal_column("'pending'"),
        payments.c.created_at <= bindparam("until"),
    )
    .limit(literal_column("1"))
)


class PaymentFilter(Record, frozen=True):
    """What `GET /payments` may filter on; bounds are inclusive Instants."""

    status: PaymentStatus | None = None
    external_id: str | None = None
    since: Instant | None = None
    until: Instant | None = None
    link_id: LinkId | None = None
    #: Digits, in each form of the number.
    phone_numbers: tuple[str, ...] = ()

    def admits(self, payment: Payment) -> bool:
        return (
            (self.status is None or payment.status == self.status)
            and (self.link_id is None or payment.link_id == self.link_id)
            and (not self.phone_numbers or payment.phone_number in self.phone_numbers)
            and (self.since is None or self.since <= payment.created_at)
            and (self.until is None or payment.created_at <= self.until)
        )


async def page(
    db: Database,
    merchant_id: MerchantId,
    env: Environment,
    shown: type[Shown],
    payment_filter: PaymentFilter,
    bounds: PageBounds,
) -> tuple[list[Shown], int]:
    """One page and the exact total, at the cost described in `db/lists/pages.py`. `shown`: the columns that are
    read."""
    columns = shown.__struct_fields__
    if payment_filter.external_id is not None:
        payment = await by_external_id(db, merchant_id, env, payment_filter.external_id)
        admitted = [payment] if payment is not None and payment_filter.admits(payment) else []
        listed = bounds.of(admitted)
        return [shown(*(getattr(row, name) for name in columns)) for row in listed], len(admitted)
    if payment_filter.link_id is not None or payment_filter.phone_numbers:
        merchant_scope = {"merchant_id": merchant_id, "env": env}
        return await _page_of_few(db, merchant_scope, shown, payment_filter, bounds)
    scope = ListScope(merchant_id, env, payment_filter.status)
    since, until = payment_filter.since, payment_filter.until
    rows, total = await read_page(db, payments, scope, bounds, since, until, columns=columns)
    return [shown(*row) for row in rows], total


async def _page_of_few(
    db: Database,
    merchant_scope: dict[str, Any],
    shown: type[Shown],
    payment_filter: PaymentFilter,
    bounds: PageBounds,
) -> tuple[list[Shown], int]:
    """A page of what came by one link or from one telephone number. Reads the range of an index that these have."""
    values = {
        "status": payment_filter.status,
        "since": payment_filter.since,
        "until": payment_filter.until,
        "link_id": payment_filter.link_id,
        "phone_numbers": json.dumps(payment_filter.phone_numbers) if payment_filter.phone_numbers else None,
    }
    filters = {name: value for name, value in values.items() if value is not None}
    [(total,)] = await db.scan(_few(frozenset(filters)), **merchant_scope, **filters)
    after = {} if bounds.after is None else {"after_at": bounds.after.created_at, "after_id": bounds.after.id}
    columns, order = shown.__struct_fields__, (bool(after), bounds.oldest_first)
    statement = _few(frozenset(filters), columns, order)
    rows = await db.scan(statement, **merchant_scope, **filters, **after, most=bounds.size, skipped=bounds.offset)
    return [shown(*row) for row in rows], total


@cache
def _few(
    names: frozenset[str], columns: tuple[str, ...] | None = None, order: tuple[bool, bool] = (False, False)
) -> Executable:
    """The payments that fulfil the conditions of these names, or, without `columns`, their number. `order`: whether
    the page follows a row, and whether the oldest are first."""
    conditions = {
        "status": payments.c.status == bindparam("status"),
        "since": payments.c.created_at >= bindparam("since"),
        "until": payments.c.created_at <= bindparam("until"),
        "link_id": payments.c.link_id == bindparam("link_id"),
        "phone_numbers": is_listed(payments.c.phone_number, "phone_numbers"),
    }
    chosen = [*OF_MERCHANT, *(conditions[name] for name in sorted(names))]
    if columns is None:
        return select(func.count()).select_from(payments).where(*chosen)
    follows_row, oldest_first = order
    key = (payments.c.created_at, payments.c.id)
    if follows_row:
        bound = tuple_(bindparam("after_at"), bindparam("after_id"))
        chosen.append(tuple_(*key) > bound if oldest_first else tuple_(*key) < bound)
    return (
        select(*(payments.c[name] for name in columns))
        .where(*chosen)
        .order_by(*(column.asc() if oldest_first else column.desc() for column in key))
        .limit(bindparam("most"))
        .offset(bindparam("skipped"))
    )


async def count_waiting(db: Database, merchant_id: MerchantId, env: Environment, until: Instant) -> int:
    """How many payments wait for their result that were created until this instant, which is not long ago. Cost: one
    look at an index when there is none, as most often; otherwise `db/lists/pages.py`."""
    if await db.one(_WAITS, merchant_id=merchant_id, env=env, until=until) is None:
        return 0
    return await count_before(db, payments, ListScope(merchant_id, env, "pending"), later(until, 1))
