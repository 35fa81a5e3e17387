"""How many payments had which result, and of what amount: by day of creation, operator, currency and status.

The figures are kept by hour (`payment_figures`). Changes that the worker has not taken yet (`db/lists/rollup.py`) are
read from `list_count_changes` in the same statement, so they are exact at any moment.

Cost: the rows of the hours that are asked for (hours × operators × results, at most 720 × operators × 3), and the
changes of this merchant that are not rolled up yet. It does not grow with the number of payments.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import BigInteger, Select, Table, bindparam, cast, func, select, union_all

from guichet.clock import HOUR
from guichet.db.engine import Database
from guichet.db.tables import list_count_changes, payment_figures
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency
from guichet.domain.payments import PaymentStatus
from guichet.domain.records import Record

#: The days of one reading.
DAYS: Final = 30


class Figure(Record, frozen=True):
    """Payments of one day. `day`: its place among those asked for; `amount` in hundredths. `validation_time`: the
    microseconds from creation to success, of payments whose status is `succeeded`; 0 for others."""

    day: int
    operator: str
    currency: Currency
    status: PaymentStatus
    payment_count: int
    amount: int
    validation_time: int


_SUMS: Final = ("payment_count", "amount", "validation_time")


def _sums_of(table: Table, day: int | None, *sums: Any) -> Select[*tuple[Any, ...]]:
    """Rows (hour, operator, currency, status, sums) of one day: any hour of it; or of all days, by hour."""
    first, last = ("first_0", f"last_{DAYS - 1}") if day is None else (f"first_{day}", f"last_{day}")
    hour = table.c.hour if day is None else func.min(table.c.hour)
    by = (table.c.operator, table.c.currency, table.c.status)
    added = (cast(func.sum(each), BigInteger).label(name) for name, each in zip(_SUMS, sums, strict=True))
    return (
        select(hour.label("hour"), *by, *added)
        .where(
            table.c.merchant_id == bindparam("merchant_id"),
            table.c.env == bindparam("environment"),
            table.c.hour.between(bindparam(first), bindparam(last)),
        )
        .group_by(*([hour] if day is None else []), *by)
    )


_changes: Final = list_count_changes.c
_FIGURES: Final = union_all(
    *(_sums_of(payment_figures, day, *(payment_figures.c[name] for name in _SUMS)) for day in range(DAYS)),
    _sums_of(list_count_changes, None, _changes.delta, _changes.amount, _changes.validation_time).where(
        _changes.list_name == "payments", _changes.operator != ""
    ),
)


async def daily_figures(db: Database, merchant_id: MerchantId, env: Environment, bounds: Sequence[int]) -> list[Figure]:
    """The figures of DAYS days. `bounds`: the first hour of each day, counted from 1970, and the first one after the
    last day. Payments that have no result yet are not among them."""
    assert len(bounds) == DAYS + 1
    hours = {f"first_{day}": bound for day, bound in enumerate(bounds[:-1])}
    hours |= {f"last_{day}": bound - 1 for day, bound in enumerate(bounds[1:])}
    sums: dict[tuple[int, str, Currency, PaymentStatus], tuple[int, int, int]] = {}
    for hour, operator, currency, status, count, amount, validation_time in await db.scan(
        _FIGURES, merchant_id=merchant_id, environment=env, **hours
    ):
        key = bisect_right(bounds, hour) - 1, operator, currency, status
        before = sums.get(key, (0, 0, 0))
        sums[key] = before[0] + count, before[1] + amount, before[2] + validation_time
    return [Figure(*key, *total) for key, total in sorted(sums.items()) if any(total)]


def hour_from(instant: int) -> int:
    """The first hour that begins at this instant or after it, counted from 1970."""
    return -(-instant // HOUR)
