"""The figures of payments are what SQL finds in the payments themselves, at every moment."""

import asyncio
import random
from collections import defaultdict
from itertools import product
from typing import Any

import pytest
from sqlalchemy import bindparam, func, insert, select, text, update

from guichet.bootstrap import database
from guichet.clock import DAY, HOUR, MINUTE, SECOND
from guichet.db.engine import Database
from guichet.db.lists.rollup import roll_up_list_counts
from guichet.db.tables import list_count_changes, merchants, payments
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import CURRENCIES
from guichet.history.figures import DAYS, Figures, hour_from, month_figures
from guichet.settings import Settings
from tests.db.rows import MERCHANT, PAYMENT

pytestmark = pytest.mark.both_databases

START = 20_000 * DAY
#: Whole days of UTC, except for one of 23 hours and one of 25.
BOUNDS = [START // HOUR + 24 * day + (day == 11) - (day == 20) for day in range(DAYS + 1)]
#: As many days before them, that the figures are compared with.
EARLIER = [BOUNDS[0] - 24 * day for day in range(DAYS, 0, -1)]
OPERATORS = ("mtn", "moov", "wave_ci")
SCOPES: tuple[tuple[int, Environment], ...] = ((1, "test"), (1, "live"), (2, "live"))
TRAFFIC = 150


async def _open(settings: Settings) -> Database:
    db = database(settings)
    await db.open()
    return db


async def _create(db: Database, chance: random.Random, number: int) -> None:
    """A pending payment; some are outside the month that is asked for, by a microsecond too."""
    merchant_id, env = chance.choice(SCOPES)
    at = START + chance.randrange(-2 * DAY, (DAYS + 2) * DAY)
    if chance.random() < 0.1:
        at = chance.choice([START, START - 1, START + DAYS * DAY])
    amount = chance.randrange(1, 10**8)
    row = {
        **PAYMENT,
        "merchant_id": merchant_id,
        "env": env,
        "reference": f"00000000-0000-4000-8000-{number:012d}",
        "amount": amount,
        "total_amount": amount + 5,
        "currency": chance.choice(["XOF", "XOF", "XOF", "EUR"]),
        "operator": chance.choice(OPERATORS),
        "created_at": at,
        "updated_at": at,
    }
    if chance.random() < 0.1:  # Loaded with its result, as `bench` does.
        row |= {"status": "succeeded", "updated_at": at + 7 * SECOND, "next_poll_at": None}
    await db.write(insert(payments).values(row))


async def _change(db: Database, chance: random.Random, number: int) -> None:
    """pending → succeeded or failed, failed → succeeded (late), succeeded → refunded; a few rows are deleted."""
    reference = f"00000000-0000-4000-8000-{chance.randrange(number + 1):012d}"
    found = await db.one(select(payments.c.status, payments.c.updated_at).where(payments.c.reference == reference))
    assert found is not None
    status, updated_at = found
    if chance.random() < 0.02:
        await db.write(text("DELETE FROM payments WHERE reference = :reference"), reference=reference)
        await _create(db, chance, int(reference[-12:]))
        return
    target = {"pending": chance.choice(["succeeded", "succeeded", "failed"]), "succeeded": "refunded"}
    await db.write(
        update(payments)
        .where(payments.c.reference == reference)
        .values(
            status=target.get(status, "succeeded"),
            updated_at=updated_at + chance.randrange(3 * MINUTE),
            next_poll_at=None,
        )
    )


async def _check(db: Database) -> int:
    """How many figures agree: of each currency, for the operators of the last day, of a week and of all days."""
    seen = 0
    for merchant_id, env in SCOPES:
        sums, currencies = await _by_hand(db, merchant_id, env)
        for currency, last_days in product(CURRENCIES, (1, 7, DAYS)):
            figures = await month_figures(
                db, MerchantId(merchant_id), env, [*EARLIER, *BOUNDS], currency, last_days, BOUNDS[-2]
            )
            assert figures.by_day == [Figures(*sums[currency, day]) for day in range(DAYS)]
            assert figures.before == [Figures(*sums[currency, day]).amount for day in range(-DAYS, 0)]
            assert figures.yesterday == figures.by_day[-2].amount
            operators = ((operator, sums[currency, operator, last_days]) for operator in OPERATORS)
            assert figures.by_operator == {operator: Figures(*each) for operator, each in operators if any(each)}
            assert figures.other_currencies == currencies - {currency}
            assert figures.is_empty == (currency not in currencies)
            seen += sum(map(any, figures.by_day))
    return seen


async def _by_hand(db: Database, merchant_id: int, env: Environment) -> tuple[dict[Any, list[int]], set[str]]:
    """The sums by currency and day, and by currency, operator and number of days; the currencies that are used."""
    sums: defaultdict[Any, list[int]] = defaultdict(lambda: [0] * len(Figures._fields))
    currencies = set()
    for at, operator, currency, status, amount, updated_at in await db.all(
        _ROWS, merchant=merchant_id, environment=env
    ):
        bounds = [*EARLIER, *BOUNDS]
        days = range(2 * DAYS)
        day = next((day - DAYS for day in days if bounds[day] * HOUR <= at < bounds[day + 1] * HOUR), None)
        if day is None:
            continue
        if day >= 0:
            currencies.add(currency)
        paid, refunded = status != "failed", status == "refunded"
        time = updated_at - at if status == "succeeded" else 0
        row = (int(paid), int(not paid), int(refunded), amount * paid, amount * refunded, time)
        for key in ((day,), *((operator, last) for last in (1, 7, DAYS) if day >= DAYS - last)):
            sums[currency, *key] = [one + other for one, other in zip(sums[currency, *key], row, strict=True)]
    return sums, currencies


_columns = (payments.c[name] for name in ("created_at", "operator", "currency", "status", "amount", "updated_at"))
_ROWS = select(*_columns).where(
    payments.c.status != "pending",
    payments.c.merchant_id == bindparam("merchant"),
    payments.c.env == bindparam("environment"),
)


async def _add_merchants(db: Database) -> None:
    for _ in range(2):
        await db.write(insert(merchants).values(MERCHANT))


async def test_a_month_of_figures_is_what_sql_finds(settings: Settings) -> None:
    """Rolled up a little at a time, by two workers at once, and by statements of an older release."""
    db = await _open(settings)
    chance = random.Random(21)
    await _add_merchants(db)
    seen = 0
    for number in range(TRAFFIC):
        await _create(db, chance, number)
        for _ in range(chance.randrange(3)):
            await _change(db, chance, number)
        if chance.random() < 0.1:
            await asyncio.gather(*(roll_up_list_counts(db, chance.randrange(1, 60)) for _ in range(2)))
        if number == 74:
            seen = await _check(db)
    assert await db.one(select(func.count()).select_from(list_count_changes)) != (0,), "some is not rolled up yet"
    older = "DELETE FROM list_count_changes WHERE id IN (SELECT id FROM list_count_changes ORDER BY id LIMIT 40)"
    await db.write(text(older))
    await _check(db)
    while await roll_up_list_counts(db, 1000):
        """Until nothing is left to add up."""
    assert await _check(db) > seen > 20
    await db.close()


@pytest.mark.parametrize(("instant", "hour"), [(0, 0), (1, 1), (HOUR, 1), (HOUR + 1, 2), (5 * HOUR - 1, 5)])
def test_hours_belong_to_the_day_in_which_they_begin(instant: int, hour: int) -> None:
    assert hour_from(instant) == hour
