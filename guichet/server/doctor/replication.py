"""The check of `guichet doctor` about PostgreSQL's standbys and the archive of its WAL."""

from collections.abc import Iterator
from typing import Final

from guichet.clock import SECOND, Instant
from guichet.db.engine import Database
from guichet.db.postgres.replication import Archive, Replication, Slot, replication
from guichet.domain.messages import Message
from guichet.server.doctor.check import DoctorCheck, DoctorProblem, age

#: Seconds after which a commit that waits for a connected standby is a problem.
_SLOW_COMMIT: Final = 5.0
#: Full segments, of 16 MB each by default, that may wait for the archive.
_WAITING_SEGMENTS: Final = 8


async def standbys_and_archive(db: Database, now: Instant) -> tuple[DoctorCheck, Replication]:
    """`db` is a PostgreSQL. Reads only, so it ends while every write waits for a standby."""
    status = await replication(db)
    problems = [*_synchronous(status), *_slots(status.slots), *_archive(status.archive, now)]
    rows: list[dict[str, object]] = [
        {"standby": node.name, "state": node.state, "synchronous": node.synchronous, "lag_bytes": node.lag_bytes}
        for node in status.standbys
    ]
    return DoctorCheck("standbys and archive", problems, rows), status


def _synchronous(status: Replication) -> Iterator[Message]:
    waiting = status.waiting
    commits: Message | str = ""
    if waiting.count:
        commits = DoctorProblem.COMMITS_WAIT(count=waiting.count, seconds=round(waiting.longest))
    if status.missing and status.absent:
        yield DoctorProblem.STANDBY_MISSING(names=", ".join(status.absent), waiting=commits)
    elif status.missing:
        yield DoctorProblem.NO_STANDBY(waiting=commits)
    elif waiting.longest > _SLOW_COMMIT:
        yield DoctorProblem.STANDBY_SILENT(waiting=commits)


def _slots(slots: list[Slot]) -> Iterator[Message]:
    for slot in slots:
        if slot.lost:
            yield DoctorProblem.WAL_GONE(slot=slot.name)
        elif not slot.active and slot.kept_bytes is not None:
            yield DoctorProblem.SLOT_UNUSED(slot=slot.name, size=round(slot.kept_bytes / 2**20))


def _archive(archive: Archive, now: Instant) -> Iterator[Message]:
    last = DoctorProblem.NOTHING_ARCHIVED()
    if archive.archived_at is not None:
        last = DoctorProblem.LAST_ARCHIVED(age=age(Instant(int(archive.archived_at * SECOND)), now))
    if archive.failing:
        yield DoctorProblem.ARCHIVE_FAILS(last=last)
    elif archive.waiting_segments is not None and archive.waiting_segments > _WAITING_SEGMENTS:
        yield DoctorProblem.ARCHIVE_WAITS(count=archive.waiting_segments, last=last)
