"""The availability of each operator, as the worker last found it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert as upsert

from guichet.clock import Clock, Instant
from guichet.db.engine import Database
from guichet.db.read_cache import ReadCache
from guichet.db.tables import operator_availability
from guichet.domain.availability import OperatorState
from guichet.domain.messages import Message, decode, encode

_table: Final = operator_availability
_ALL: Final = select(_table).order_by(_table.c.operator)
_insert: Final = upsert(_table).values({column.name: bindparam(column.name) for column in _table.c})
_SET: Final = _insert.on_conflict_do_update(
    index_elements=["operator"],
    set_={column.name: _insert.excluded[column.name] for column in _table.c if column.name != "operator"},
)


@dataclass(frozen=True, slots=True)
class OperatorAvailability:
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


async def set_availability(db: Database, found: OperatorAvailability) -> None:
    values = {column.name: getattr(found, column.name) for column in _table.c}
    await db.write(_SET, **{**values, "reason": encode(found.reason) if found.reason else ""})


class AvailabilityReader:
    """The states for the API, at most one second old."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._cached: ReadCache[None, dict[str, OperatorState]] = ReadCache(clock, self._load)

    async def states(self) -> Mapping[str, OperatorState]:
        """By operator; one that is not in it is up."""
        return await self._cached.get(None) or {}

    async def _load(self, _: None) -> dict[str, OperatorState]:
        return {each.operator: each.state for each in await availabilities(self._db)}
