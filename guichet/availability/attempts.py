"""How often live payments could not be initiated for technical reasons, by operator and minute.

Each process counts in memory and adds its counts to the table every few seconds: no statement for a single payment.
"""

from collections import defaultdict
from typing import Final

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert as upsert

from guichet.clock import HOUR, MINUTE, Instant, earlier
from guichet.db.engine import Database
from guichet.db.errors import StorageError
from guichet.db.tables import operator_attempts
from guichet.domain.availability import HISTORY, Attempts
from guichet.providers.base import InitiationResult, NotProcessed, Refused, Unknown

_table: Final = operator_attempts
#: Minutes older than this are deleted.
_KEPT: Final = 6 * HOUR
_UNAVAILABLE: Final = "operator_unavailable"

_insert: Final = upsert(_table).values({column.name: bindparam(column.name) for column in _table.c})
_ADD: Final = _insert.on_conflict_do_update(
    index_elements=["minute", "operator"],
    set_={name: _table.c[name] + _insert.excluded[name] for name in ("attempts", "failures")},
)
_RECENT: Final = select(_table.c.operator, _table.c.minute, _table.c.attempts, _table.c.failures).where(
    _table.c.minute >= bindparam("since")
)
_PRUNE: Final = delete(_table).where(_table.c.minute < bindparam("before"))


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
            await db.execute_many(_ADD, rows)
        except StorageError:
            for key, (attempts, failures) in counts.items():
                self._counts[key][0] += attempts
                self._counts[key][1] += failures
            raise


async def recent_attempts(db: Database, now: Instant) -> dict[str, list[Attempts]]:
    """By operator, the attempts of all processes in the last 75 minutes. Reads one row for each operator and minute."""
    found: dict[str, list[Attempts]] = defaultdict(list)
    for operator, minute, attempts, failures in await db.scan(_RECENT, since=earlier(now, HISTORY + MINUTE)):
        found[operator].append(Attempts(minute, attempts, failures))
    return dict(found)


async def prune_attempts(db: Database, now: Instant) -> None:
    """Deletes what is older than six hours. Cost: the rows that it deletes."""
    await db.write(_PRUNE, before=earlier(now, _KEPT))
