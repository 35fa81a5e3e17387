"""Turns: work that one process does for all of them at times."""

from typing import Final

from sqlalchemy import bindparam, select, update

from guichet.clock import Instant, later
from guichet.db.engine import Database
from guichet.db.sql_functions import upsert
from guichet.db.tables import worker_leases

_lease: Final = upsert(worker_leases).values(name=bindparam("name"), until=bindparam("until"))
_CLAIM: Final = _lease.on_conflict_do_update(
    index_elements=["name"],
    set_={"until": _lease.excluded.until},
    where=worker_leases.c.until <= bindparam("now"),
).returning(worker_leases.c.until)


async def claim_turn(db: Database, name: str, now: Instant, duration: int) -> bool:
    """Whether this process may do the work `name` now; no other one may for `duration` (microseconds)."""
    return await db.write(_CLAIM, name=name, now=now, until=later(now, duration)) is not None


_OF_NAME: Final = worker_leases.c.name == bindparam("work")
_KEEP: Final = update(worker_leases).where(_OF_NAME).values(until=bindparam("until"), result=bindparam("result"))


async def keep_result(db: Database, name: str, result: str, until: Instant) -> None:
    """What a turn found, at its end. The next turn begins at `until`."""
    await db.write(_KEEP, work=name, until=until, result=result)


_RESULT: Final = select(worker_leases.c.result).where(_OF_NAME)


async def last_result(db: Database, name: str) -> str | None:
    """What the last turn that ended found; None if none ever did."""
    row = await db.one(_RESULT, work=name)
    return None if row is None else row[0]


_UNTIL: Final = select(worker_leases.c.until).where(_OF_NAME)


async def turn_ends_at(db: Database, name: str) -> Instant | None:
    """When the turn that was claimed last ends; None if no process has ever done this work."""
    return await db.one_as(Instant, _UNTIL, work=name)
