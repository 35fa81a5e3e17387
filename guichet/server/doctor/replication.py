"""The check of `guichet doctor` about PostgreSQL's standbys and the archive of its WAL."""

from collections.abc import Iterator
from typing import Final

from guichet.clock import SECOND, Instant
from guichet.db.engine import Database
from guichet.db.replication import Archive, Replication, Slot, replication
from guichet.server.doctor.check import Check, age

#: Seconds after which a commit that waits for a connected standby is a problem.
_SLOW_COMMIT: Final = 5.0
#: Full segments, of 16 MB each by default, that may wait for the archive.
_WAITING_SEGMENTS: Final = 8
_WHAT_TO_DO: Final = "(docs/operations/postgresql.md)"


async def standbys_and_archive(db: Database, now: Instant) -> tuple[Check, Replication]:
    """`db` is a PostgreSQL. Reads only, so it ends while every write waits for a standby."""
    found = await replication(db)
    problems = [*_synchronous(found), *_slots(found.slots), *_archive(found.archive, now)]
    rows: list[dict[str, object]] = [
        {"standby": each.name, "state": each.state, "synchronous": each.synchronous, "lag_bytes": each.lag_bytes}
        for each in found.standbys
    ]
    return Check("standbys and archive", problems, rows), found


def _synchronous(found: Replication) -> Iterator[str]:
    waiting = found.waiting
    commits = f" ({waiting.count} wait, the first for {waiting.longest:.0f} s)" if waiting.count else ""
    if found.missing:
        names = ", ".join(found.absent) or "none is connected that may confirm"
        yield (
            f"a synchronous standby is missing ({names}), so no write ends{commits}: bring it back, or decide to go on "
            f"without it {_WHAT_TO_DO}"
        )
    elif waiting.longest > _SLOW_COMMIT:
        yield (
            f"a synchronous standby is connected but does not confirm any write{commits}: look at it and at its "
            f"network, or decide to go on without it {_WHAT_TO_DO}"
        )


def _slots(slots: list[Slot]) -> Iterator[str]:
    for each in slots:
        if each.lost:
            yield f"the WAL that the standby of slot {each.name} needs is gone: copy that standby again {_WHAT_TO_DO}"
        elif not each.active and each.kept_bytes is not None:
            yield (
                f"the standby of slot {each.name} is not connected, and {each.kept_bytes / 2**20:.0f} MB of WAL are "
                "kept for it: bring it back, or drop the slot"
            )


def _archive(archive: Archive, now: Instant) -> Iterator[str]:
    last = "nothing was archived so far"
    if archive.archived_at is not None:
        last = f"the last file was archived {age(Instant(int(archive.archived_at * SECOND)), now)} ago"
    if archive.failing:
        yield f"archive_command fails, {last}: PostgreSQL's log says why (docs/operations/backup.md)"
    elif archive.waiting_segments is not None and archive.waiting_segments > _WAITING_SEGMENTS:
        yield f"{archive.waiting_segments} segments of WAL wait for the archive, {last}: does archive_command hang?"
