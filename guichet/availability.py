"""The availability of each operator, as the worker last found it, and how often live payments could not be initiated
for technical reasons, by operator and minute.

Each process counts in memory and adds its counts to the table every few seconds: no statement for a single payment.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from sqlalchemy import bindparam, delete, select

from guichet.clock import HOUR, MINUTE, Clock, Instant, earlier
from guichet.db.engine import Database
from guichet.db.errors import StorageError
from guichet.db.read_cache import ReadCache
from guichet.db.sql_functions import params, upsert
from guichet.db.tables import operator_attempts, operator_availability
from guichet.domain.availability import HISTORY, Attempts, OperatorState
from guichet.domain.messages import Message, decode, encode
from guichet.domain.records import Record
from guichet.providers.base import InitiationResult, NotProcessed, Refused, Unknown

_ALL: Final = select(operator_availability).order_by(operator_availability.c.operator)
_ROW: Final = upsert(operator_availability).values(params(*operator_availability.c.keys()))
_SET: Final = _ROW.on_conflict_do_update(
    index_elements=["operator"],
    set_={column.name: _ROW.excluded[column.name] for column in operator_availability.c if column.name != "operator"},
)


class OperatorAvailability(Record, frozen=True):
    """A row of `operator_availability`. `state` is the worse of `measured` (by our attempts) and `stated` (by the
    provider that takes the operator's payments, None where it says nothing); `since`: when `state` began."""

    operator: str
    state: OperatorState
    since: Instant
    reason: Message | None
    measured: OperatorState
    stated: OperatorState | None
    stated_by: str | None
    stated_at: Instant | None


async def availabilities(db: Database) -> list[OperatorAvailability]:
    """One for each operator of which something is known, by code. Reads as many rows."""
    return [
        OperatorAvailability(operator, state, since, decode(reason), *rest)
        for operator, state, since, reason, *rest in await db.scan(_ALL)
    ]


async def set_availability(db: Database, availability: OperatorAvailability) -> None:
    values = {column.name: getattr(availability, column.name) for column in operator_availability.c}
    await db.write(_SET, **{**values, "reason": encode(availability.reason) if availability.reason else ""})


class AvailabilityReader:
    """The states for the API, at most one second old."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._cached: ReadCache[None, dict[str, OperatorState]] = ReadCache(clock, self._load)

    async def states(self) -> Mapping[str, OperatorState]:
        """By operator; one that is not in it is up."""
        return await self._cached.get(None)

    async def _load(self, _: None) -> dict[str, OperatorState]:
        return {row.operator: row.state for row in await availabilities(self._db)}


#: Seconds between two times at which a process adds its counts to the table.
FLUSH_EVERY: Final = 5.0
#: Minutes older than this are deleted.
_KEPT: Final = 6 * HOUR
_UNAVAILABLE: Final = "operator_unavailable"

_counted: Final = upsert(operator_attempts).values(params(*operator_attempts.c.keys()))
_ADD_COUNTS: Final = _counted.on_conflict_do_update(
    index_elements=["minute", "operator"],
    set_={name: operator_attempts.c[name] + _counted.excluded[name] for name in ("attempts", "failures")},
)
_RECENT: Final = select(
    operator_attempts.c.operator, operator_attempts.c.minute, operator_attempts.c.attempts, operator_attempts.c.failures
).where(operator_attempts.c.minute >= bindparam("since"))
_PRUNE: Final = delete(operator_attempts).where(operator_attempts.c.minute < bindparam("before"))


def is_technical_failure(result: InitiationResult) -> bool | None:
    """Whether an initiation failed because the operator could not be reached or could not work.

    None when it says nothing about the operator: our own configuration was refused, or it was not asked.
    """
    match result:
        case Unknown():
            return True
        case NotProcessed(reason="configuration" | "currency_not_accepted") | Refused(reason="configuration"):
            return None
        case NotProcessed() | Refused():
            return result.reason == _UNAVAILABLE
        case _:
            return False


class AttemptCounts:
    """The counts of this process that are not in the table yet."""

    def __init__(self) -> None:
        self._counts: dict[tuple[Instant, str], list[int]] = defaultdict(lambda: [0, 0])

    def add(self, operator: str, result: InitiationResult, now: Instant) -> None:
        failed = is_technical_failure(result)
        if failed is None:
            return
        counts = self._counts[earlier(now, now % MINUTE), operator]
        counts[0] += 1
        counts[1] += failed

    async def flush(self, db: Database) -> None:
        """Adds the counts to the table. They are kept for the next time if that fails, and lost with the process."""
        counts, self._counts = self._counts, defaultdict(lambda: [0, 0])
        if not counts:
            return
        rows = [
            {"minute": minute, "operator": operator, "attempts": attempts, "failures": failures}
            for (minute, operator), (attempts, failures) in sorted(counts.items())
        ]
        try:
            await db.write_many(_ADD_COUNTS, rows)
        except StorageError:
            for key, (attempts, failures) in counts.items():
                self._counts[key][0] += attempts
                self._counts[key][1] += failures
            raise


async def recent_attempts(db: Database, now: Instant) -> dict[str, list[Attempts]]:
    """By operator, the attempts of all processes in the last 75 minutes. Reads one row for each operator and minute."""
    by_operator: dict[str, list[Attempts]] = defaultdict(list)
    for operator, minute, attempts, failures in await db.scan(_RECENT, since=earlier(now, HISTORY + MINUTE)):
        by_operator[operator].append(Attempts(minute, attempts, failures))
    return dict(by_operator)


async def prune_attempts(db: Database, now: Instant) -> None:
    """Deletes what is older than six hours. Cost: the rows that it deletes."""
    await db.write(_PRUNE, before=earlier(now, _KEPT))
