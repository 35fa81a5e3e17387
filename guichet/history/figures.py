"""How many payments had which result, and of what amount: by day of creation and by operator, in one currency.

The figures are kept by hour (`payment_figures`). Changes that the worker has not taken yet (`db/lists/rollup.py`) are
read from `list_count_changes` in the same statement, so they are exact at any moment.

Cost: the rows of the hours that are asked for (hours × operators × results, at most 1440 × operators × 3), and the
changes of this merchant that are not rolled up yet. It does not grow with the number of payments. The database adds a
day up: its rows, one by one, would cost more than all the rest of the overview.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

from msgspec import json
from sqlalchemy import ColumnElement, Integer, ScalarSelect, Table, Text, bindparam, cast, func, select

from guichet.clock import HOUR
from guichet.db.engine import Database
from guichet.db.sql_functions import json_pairs, json_row, json_rows
from guichet.db.tables import list_count_changes, payment_figures
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency
from guichet.domain.records import Record

#: The days of one reading; as many before them are what they are compared with.
DAYS: Final = 30


class Figures(NamedTuple):
    """Sums of payments that have a result. `paid`: those that succeeded, `refunded` among them; `amount` (hundredths)
    of those that were paid, `refunded_amount` of those that were given back since. `validation_time`: the microseconds
    from creation to success, of those that were paid and not given back."""

    paid: int = 0
    failed: int = 0
    refunded: int = 0
    amount: int = 0
    refunded_amount: int = 0
    validation_time: int = 0

    @property
    def success_rate(self) -> float | None:
        """None when there is no payment."""
        final = self.paid + self.failed
        return self.paid / final if final else None

    @property
    def average_time(self) -> int | None:
        """Microseconds from creation to success. A clock that was set back must not show a negative time."""
        validated = self.paid - self.refunded
        return max(0, self.validation_time // validated) if validated else None


NO_FIGURES: Final = Figures()


class MonthFigures(Record, frozen=True):
    """The figures of DAYS days in one currency. `by_day`: the oldest first; `before`: the amounts of the DAYS days
    before them; `yesterday`: the amount until the hour that it is now. `by_operator`: of the last days that were asked
    for, by the operators' codes. `other_currencies`: those that other payments of the DAYS days are in."""

    by_day: list[Figures]
    before: list[int]
    yesterday: int
    by_operator: dict[str, Figures]
    other_currencies: set[Currency]

    @property
    def is_empty(self) -> bool:
        return not any(map(any, self.by_day))


def _sums(table: Table) -> tuple[ColumnElement[int], ...]:
    """The columns of `Figures`."""
    c = table.c
    count = c.payment_count if table is payment_figures else c.delta
    failed, refunded = c.status == "failed", c.status == "refunded"
    sums = (
        func.sum(count).filter(~failed),
        func.sum(count).filter(failed),
        func.sum(count).filter(refunded),
        func.sum(c.amount).filter(~failed),
        func.sum(c.amount).filter(refunded),
        func.sum(c.validation_time),
    )
    return tuple(func.coalesce(total, 0) for total in sums)


def _of_the_merchant(table: Table, since: Any, until: Any, *, other: bool = False) -> list[ColumnElement[bool]]:
    """Of these hours. `other`: in the other currencies."""
    c, currency = table.c, bindparam("currency", type_=table.c.currency.type)
    of_payments = [c.list_name == "payments", c.operator != ""] if table is list_count_changes else []
    return [
        c.merchant_id == bindparam("merchant_id"),
        c.env == bindparam("environment"),
        c.currency != currency if other else c.currency == currency,
        c.hour >= since,
        c.hour < until,
        *of_payments,
    ]


def _by_day(days: str, sums: Sequence[ColumnElement[int]]) -> ScalarSelect[str]:
    """[first hour, sums] of each day. `days`: the parameter with the first hour of each, and of the day after it."""
    day = json_pairs(bindparam(days, type_=Text)).table_valued("key", "value")
    since, until = cast(day.c.key, Integer), cast(day.c.value, Integer)
    of_day = select(json_row(since, *sums)).where(*_of_the_merchant(payment_figures, since, until))
    # Not a join: its groups would be sorted, which takes as long as reading them.
    return select(json_rows(of_day.scalar_subquery())).select_from(day).scalar_subquery()


def _by(table: Table, names: Sequence[str], since: str, *, other: bool = False) -> ScalarSelect[str]:
    """[names, sums] from an hour on; of the other currencies only how many payments."""
    of, sums = [table.c[name] for name in names], _sums(table)
    hours = bindparam(since, type_=Integer), bindparam("end", type_=Integer)
    rows = select(json_row(*of, *(sums[:2] if other else sums)).label("json")).group_by(*of)
    listed = rows.where(*_of_the_merchant(table, *hours, other=other)).subquery()
    return select(json_rows(listed.c.json)).scalar_subquery()


_amount: Final = _sums(payment_figures)[Figures._fields.index("amount")]
_FIGURES: Final = select(
    _by_day("days_before", [_amount]),
    _by_day("days", _sums(payment_figures)),
    select(_amount)
    .where(*_of_the_merchant(payment_figures, bindparam("first_of_yesterday"), bindparam("same_hour")))
    .scalar_subquery(),
    _by(payment_figures, ["operator"], "first_of_period"),
    _by(payment_figures, ["currency"], "first", other=True),
    _by(list_count_changes, ["hour", "operator"], "first_before"),
    _by(list_count_changes, ["currency"], "first", other=True),
)


async def month_figures(
    db: Database,
    merchant_id: MerchantId,
    env: Environment,
    bounds: Sequence[int],
    currency: Currency,
    last_days: int,
    same_hour: int,
) -> MonthFigures:
    """`bounds`: the first hour of each of twice DAYS days, counted from 1970, and the first one after the last day.
    `last_days`: how many of them the operators' figures are about. `same_hour`: of yesterday, as it is now today."""
    first_of_period = bounds[-1 - last_days]
    [row] = await db.scan(
        _FIGURES,
        merchant_id=merchant_id,
        environment=env,
        currency=currency,
        days_before=_pairs(tuple(bounds[: DAYS + 1])),
        days=_pairs(tuple(bounds[DAYS:])),
        first_before=bounds[0],
        first=bounds[DAYS],
        first_of_yesterday=bounds[-3],
        same_hour=same_hour,
        first_of_period=first_of_period,
        end=bounds[-1],
    )
    yesterday = int(row[2])
    days_before, days, by_operator, others, changes, changed_others = map(json.decode, (*row[:2], *row[3:]))
    before = [amount for _, amount in days_before]
    by_day = [Figures(*sums) for _, *sums in days]
    operators: defaultdict[str, Figures] = defaultdict(lambda: NO_FIGURES)
    operators.update((operator, Figures(*sums)) for operator, *sums in by_operator)
    for hour, operator, *sums in changes:
        figures, day = Figures(*sums), bisect_right(bounds, hour) - 1 - DAYS
        if day < 0:
            before[day] += figures.amount
            continue
        by_day[day] = added_up((by_day[day], figures))
        if hour >= first_of_period:
            operators[operator] = added_up((operators[operator], figures))
        if bounds[-3] <= hour < same_hour:
            yesterday += figures.amount
    currencies: Counter[Currency] = Counter()
    for other, paid, failed in others + changed_others:
        currencies[other] += paid + failed
    return MonthFigures(
        by_day=by_day,
        before=before,
        yesterday=yesterday,
        by_operator={operator: figures for operator, figures in operators.items() if any(figures)},
        other_currencies={other for other, count in currencies.items() if count},
    )


@lru_cache(maxsize=64)  # They are the same until midnight.
def _pairs(bounds: tuple[int, ...]) -> str:
    """JSON: the first hour of each day, and of the day after it."""
    return json.encode(dict(pairwise(bounds))).decode()


def added_up(figures: Sequence[Figures]) -> Figures:
    """At least one."""
    return figures[0] if len(figures) == 1 else Figures(*map(sum, zip(*figures, strict=True)))


def hour_from(instant: int) -> int:
    """The first hour that begins at this instant or after it, counted from 1970."""
    return -(-instant // HOUR)
