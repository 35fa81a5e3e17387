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
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    String,
    Table,
    bindparam,
    cast,
    func,
    literal_column,
    select,
    union_all,
)

from guichet.clock import HOUR
from guichet.db.engine import Database
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


#: What a row is about if not a day: an operator, another currency, yesterday until this hour.
_OPERATOR: Final = -1
_CURRENCY: Final = -2
_YESTERDAY: Final = -3


def _text(value: str) -> ColumnElement[str]:
    """One of our own words, spelled out: seventy parameters are enough."""
    return literal_column(f"'{value}'", String)


def _number(value: int) -> ColumnElement[int]:
    return literal_column(str(value), Integer)


def _sums(table: Table, only: str) -> list[ColumnElement[int]]:
    """The columns of `Figures`; `only`: the one that is added up, the others are 0."""
    c = table.c
    count = c.payment_count if table is payment_figures else c.delta
    failed, refunded = c.status == _text("failed"), c.status == _text("refunded")
    sums = (
        func.sum(count).filter(~failed),
        func.sum(count).filter(failed),
        func.sum(count).filter(refunded),
        func.sum(c.amount).filter(~failed),
        func.sum(c.amount).filter(refunded),
        func.sum(c.validation_time),
    )
    return [
        (cast(func.coalesce(each, _number(0)), BigInteger) if only in ("", name) else _number(0)).label(name)
        for name, each in zip(Figures._fields, sums, strict=True)
    ]


def _figures(
    table: Table,
    place: int | ColumnElement[int],
    name: ColumnElement[str],
    hours: tuple[str, str],
    *,
    other: bool = False,
    only: str = "",
) -> Select[*tuple[Any, ...]]:
    """Rows (place, name, sums) from the hour of one parameter until before that of the other. `other`: of the other
    currencies; `only`: see `_sums`."""
    rows = select(_number(place) if isinstance(place, int) else place, name, *_sums(table, only)).where(
        *_of_the_merchant(table, other=other), table.c.hour >= bindparam(hours[0]), table.c.hour < bindparam(hours[1])
    )
    if table is list_count_changes:
        rows = rows.where(table.c.list_name == _text("payments"), table.c.operator != _text(""))
    return rows


def _of_the_merchant(table: Table, *, other: bool = False) -> list[ColumnElement[bool]]:
    c, currency = table.c, bindparam("currency", type_=table.c.currency.type)
    return [
        c.merchant_id == bindparam("merchant_id"),
        c.env == bindparam("environment"),
        c.currency != currency if other else c.currency == currency,
    ]


def _by_day(days: range, only: str) -> Select[*tuple[Any, ...]]:
    """Rows like those of `_figures`, of each of these days that has a payment."""
    hour = payment_figures.c.hour.type
    day = union_all(
        *(
            select(
                _number(each).label("place"),
                bindparam(_BOUNDS[each], type_=hour).label("since"),
                bindparam(_BOUNDS[each + 1], type_=hour).label("until"),
            )
            for each in days
        )
    ).subquery()
    hours = payment_figures.c.hour
    return (
        select(day.c.place, _text(""), *_sums(payment_figures, only))
        .join(payment_figures, (hours >= day.c.since) & (hours < day.c.until))
        .where(*_of_the_merchant(payment_figures))
        .group_by(day.c.place)
    )


#: The parameters that name the first hour of each day, and of the one after them.
_BOUNDS: Final = [f"bound_{day}" for day in range(2 * DAYS + 1)]
_MONTH: Final = (_BOUNDS[DAYS], _BOUNDS[-1])
_rolled_up, _changes = payment_figures.c, list_count_changes.c
_FIGURES: Final = union_all(
    _by_day(range(DAYS), "amount"),
    _by_day(range(DAYS, 2 * DAYS), ""),
    _figures(payment_figures, _YESTERDAY, _text(""), (_BOUNDS[-3], "same_hour"), only="amount"),
    _figures(payment_figures, _OPERATOR, _rolled_up.operator, ("first_of_period", _MONTH[1])).group_by(
        _rolled_up.operator
    ),
    _figures(payment_figures, _CURRENCY, _rolled_up.currency, _MONTH, other=True).group_by(_rolled_up.currency),
    # By the hour that they are about, which is above all days, and by operator.
    _figures(list_count_changes, _changes.hour, _changes.operator, (_BOUNDS[0], _BOUNDS[-1])).group_by(
        _changes.hour, _changes.operator
    ),
    _figures(list_count_changes, _CURRENCY, _changes.currency, _MONTH, other=True).group_by(_changes.currency),
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
    days: defaultdict[int, list[Figures]] = defaultdict(list)
    yesterday = 0
    operators: defaultdict[str, list[Figures]] = defaultdict(list)
    currencies: Counter[Currency] = Counter()
    for place, name, *sums in await db.scan(
        _FIGURES,
        merchant_id=merchant_id,
        environment=env,
        currency=currency,
        first_of_period=first_of_period,
        same_hour=same_hour,
        **dict(zip(_BOUNDS, bounds, strict=True)),
    ):
        if not any(sums):
            continue
        figures = Figures(*sums)
        if place == _CURRENCY:
            currencies[name] += figures.paid + figures.failed
        elif place == _OPERATOR:
            operators[name].append(figures)
        elif place == _YESTERDAY:
            yesterday += figures.amount
        elif place < 2 * DAYS:
            days[place].append(figures)
        else:
            days[bisect_right(bounds, place) - 1].append(figures)
            if place >= first_of_period:
                operators[name].append(figures)
            if bounds[-3] <= place < same_hour:
                yesterday += figures.amount
    by_operator = {operator: added_up(figures) for operator, figures in operators.items()}
    return MonthFigures(
        by_day=[added_up(days[day]) if day in days else NO_FIGURES for day in range(DAYS, 2 * DAYS)],
        before=[sum(figures.amount for figures in days.get(day, ())) for day in range(DAYS)],
        yesterday=yesterday,
        by_operator={operator: figures for operator, figures in by_operator.items() if any(figures)},
        other_currencies={each for each, count in currencies.items() if count},
    )


def added_up(figures: Sequence[Figures]) -> Figures:
    """At least one."""
    return figures[0] if len(figures) == 1 else Figures(*map(sum, zip(*figures, strict=True)))


def hour_from(instant: int) -> int:
    """The first hour that begins at this instant or after it, counted from 1970."""
    return -(-instant // HOUR)
