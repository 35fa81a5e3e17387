"""What providers and statements say that a place holds, compared with the ledger: SQL and row mapping."""

from typing import Final

from sqlalchemy import bindparam, delete, func, select

from guichet.clock import DAY, Instant, earlier
from guichet.db.engine import Reader, Transaction
from guichet.db.sql_functions import new_row, upsert, values_of
from guichet.db.tables import treasury_readings
from guichet.domain.records import Record
from guichet.domain.treasury import ReadingSource

#: How long readings are kept.
KEPT_FOR: Final = 90 * DAY

_rows: Final = treasury_readings.c
_OF_PLACE: Final = _rows.place == bindparam("of_place")
_INSERT: Final = upsert(treasury_readings).values(new_row(treasury_readings))
_PRUNE: Final = delete(treasury_readings).where(_OF_PLACE, _rows.read_at < bindparam("before"))
_NEWEST_UNTIL: Final = (
    select(treasury_readings)
    .where(_OF_PLACE, _rows.read_at <= bindparam("until"))
    .order_by(_rows.read_at.desc())
    .limit(1)
)
_OLDEST: Final = select(treasury_readings).where(_OF_PLACE).order_by(_rows.read_at).limit(1)
_LAST_EQUAL: Final = select(func.max(_rows.read_at)).where(_OF_PLACE, _rows.difference == 0)
_FIRST_SINCE: Final = select(func.min(_rows.read_at)).where(_OF_PLACE, _rows.read_at > bindparam("since"))
_PLACES: Final = select(_rows.place).distinct()


class Reading(Record, frozen=True):
    """A row of `treasury_readings`, in the order of its columns; amounts in hundredths. `difference`: what is stated
    less the nearest amount that the ledger and what is in flight admit (`low` to `high`). `moved`: all that went in and
    out until then."""

    id: int
    place: str
    source: ReadingSource
    stated: int
    ledger: int
    low: int
    high: int
    difference: int
    moved: int
    read_at: Instant


async def insert_new(tx: Transaction, reading: Reading) -> None:
    """Cost: one row written, and those of this place deleted that are too old."""
    await tx.write(_INSERT, **values_of(treasury_readings, reading))
    await tx.write(_PRUNE, of_place=reading.place, before=earlier(reading.read_at, KEPT_FOR))


async def newest(db: Reader, place: str, until: Instant) -> Reading | None:
    """The last one that was made until then. Cost: one row, by index."""
    return await db.one_as(Reading, _NEWEST_UNTIL, of_place=place, until=until)


async def oldest(db: Reader, place: str) -> Reading | None:
    return await db.one_as(Reading, _OLDEST, of_place=place)


async def differs_since(db: Reader, place: str) -> Instant | None:
    """When the first reading was made after the last one without a difference. Cost: the readings of this place."""
    last = await db.one(_LAST_EQUAL, of_place=place)
    row = await db.one(_FIRST_SINCE, of_place=place, since=(last[0] if last else None) or 0)
    return Instant(row[0]) if row and row[0] is not None else None


async def latest(db: Reader, until: Instant) -> list[Reading]:
    """The last reading of each place. Cost: a few rows for each of some dozens of places."""
    readings = [await newest(db, place, until) for (place,) in await db.all(_PLACES)]
    return sorted((reading for reading in readings if reading is not None), key=lambda reading: reading.place)
