"""Turns: work that one process does for all of them at times."""

from typing import Final

from sqlalchemy import bindparam, select

from guichet.clock import Instant, later
from guichet.db.engine import Database
from guichet.db.tables import worker_leases
from guichet.db.upsert import upsert

_lease: Final = upsert(worker_leases).values(name=bindparam("name"), until=bindparam("until"))
_CLAIM: Final = _lease.on_conflict_do_update(
    index_elements=["name"],
    set_={"until": _lease.excluded.until},
    where=worker_leases.c.until <= bindparam("now"),
).returning(worker_leases.c.until)


async def claim_turn(db: Database, name: str, now: Instant, duration: int) -> bool:
    """Whether this process may do the work `name` now; no other one may for `duration` (microseconds)."""
    return await db.write(_CLAIM, name=name, now=now, until=later(now, duration)) is not None


_UNTIL: Final = select(worker_leases.c.until).where(worker_leases.c.name == bindparam("name"))


async def turn_ends_at(db: Database, name: str) -> Instant | None:
    """When the turn that was claimed last ends; None if no process has ever done this work."""
    return await db.one_as(Instant, _UNTIL, name=name)
