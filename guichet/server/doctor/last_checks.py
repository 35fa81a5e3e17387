"""What the checks of `guichet doctor` marked last, for the staff's first page: a worker makes them for all processes,
because some read the payments of a day (`service_checks.py`)."""

from typing import Final

import msgspec

from guichet.clock import Instant
from guichet.db.engine import Database
from guichet.db.worker_leases import last_result
from guichet.domain.records import Record
from guichet.server.doctor.check import DoctorCheck

#: The name of the turn in which they are made.
TURN: Final = "checks"


class LastChecks(Record, frozen=True):
    """`marks`: the checks that found something, without their details; `complete`: whether all ended in time."""

    at: Instant
    complete: bool
    marks: list[DoctorCheck]


_DECODER: Final = msgspec.json.Decoder(LastChecks)


async def last_checks(db: Database) -> LastChecks | None:
    """None if no worker has made them yet."""
    stored = await last_result(db, TURN)
    return _DECODER.decode(stored) if stored else None
