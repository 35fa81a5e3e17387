"""What PostgreSQL says of its standbys and of its archive of WAL. All of it is read, so nothing waits for a standby.

Any role sees its own sessions, the names of connected standbys, the slots and the archiver. What the standbys have
received is for roles with `pg_monitor`; without it those fields are None (docs/operations/metrics.md).
"""

import re
from typing import Final

from sqlalchemy import text

from guichet.db.engine import Database, Row
from guichet.domain.records import Record

#: Our own sessions, of every process on every machine: those of other roles show no `wait_event`.
_WAITING: Final = text(
    "SELECT count(*), CAST(coalesce(max(extract(epoch FROM clock_timestamp() - query_start)), 0) AS float8)"
    " FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
)
_CONFIGURED: Final = text(
    "SELECT current_setting('synchronous_standby_names'), pg_has_role('pg_read_all_stats', 'USAGE')"
)
_STANDBYS: Final = text(
    "SELECT application_name, state, sync_state, CAST(greatest(pg_wal_lsn_diff(written.lsn, flush_lsn), 0) AS float8),"
    " CAST(extract(epoch FROM replay_lag) AS float8) FROM pg_stat_replication, (SELECT CASE WHEN pg_is_in_recovery()"
    " THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END AS lsn) AS written"
)
_SLOTS: Final = text(
    "SELECT slot_name, active, wal_status = 'lost',"
    " CAST(greatest(pg_wal_lsn_diff(written.lsn, restart_lsn), 0) AS float8)"
    " FROM pg_replication_slots, (SELECT CASE WHEN pg_is_in_recovery()"
    " THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END AS lsn) AS written"
    " WHERE NOT temporary ORDER BY slot_name"
)
_ARCHIVE: Final = text(
    "SELECT current_setting('archive_mode') <> 'off', CAST(extract(epoch FROM last_archived_time) AS float8),"
    " coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false), last_archived_wal,"
    " CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_walfile_name(pg_current_wal_lsn()) END,"
    " (SELECT CAST(setting AS bigint) FROM pg_settings WHERE name = 'wal_segment_size') FROM pg_stat_archiver"
)
#: `FIRST 1 (a, b)`, `ANY 2 (a, b, c)`, `2 (a, b)`; a bare list is `FIRST 1`.
_QUORUM: Final = re.compile(r"\s*(?:FIRST\s+|ANY\s+)?(\d+)\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
_NAME: Final = re.compile(r'"((?:[^"]|"")*)"|([^\s,"]+)')
_SEGMENT: Final = re.compile(r"[0-9A-F]{8}([0-9A-F]{8})([0-9A-F]{8})")


class Standby(Record, frozen=True):
    """A connected standby. None where the role has no `pg_monitor`. `lag_bytes`: WAL that it has not on its disk yet;
    `lag_seconds`: how long it took to apply the latest WAL, 0 when there is none to apply."""

    name: str
    state: str | None
    synchronous: bool | None
    lag_bytes: float | None
    lag_seconds: float | None


class Slot(Record, frozen=True):
    """A replication slot. `lost`: the WAL that its standby needs is gone, so it must be copied again; `kept_bytes`: WAL
    that the server keeps for it, None if it never was used or is lost."""

    name: str
    active: bool
    lost: bool
    kept_bytes: float | None


class Archive(Record, frozen=True):
    """The archive of WAL. `archived_at`: when the last file was stored, in Unix seconds; `failing`: the last attempt
    failed; `waiting_segments`: full segments that are not stored yet, None if it cannot be told."""

    on: bool
    archived_at: float | None
    failing: bool
    waiting_segments: int | None


class WaitingCommits(Record, frozen=True):
    """Our commits that wait for a synchronous standby: how many, and for how many seconds the first of them."""

    count: int
    longest: float


class Replication(Record, frozen=True):
    """`required`: how many of the standbys `named` must confirm a commit; `missing`: how many too few are there.
    `absent`: those that are named and not connected."""

    required: int
    named: tuple[str, ...]
    absent: tuple[str, ...]
    missing: int
    waiting: WaitingCommits
    standbys: list[Standby]
    slots: list[Slot]
    archive: Archive


async def waiting_commits(db: Database) -> WaitingCommits:
    """One row of every session of the server is read, in memory."""
    [(count, longest)] = await db.scan(_WAITING)
    return WaitingCommits(count, max(0.0, longest))


async def replication(db: Database) -> Replication:
    """Five small reads. `db` is a PostgreSQL."""
    [(configured, privileged)] = await db.scan(_CONFIGURED)
    required, named = parse_synchronous_standby_names(configured)
    standbys = [_standby(row, privileged) for row in await db.scan(_STANDBYS)]
    connected = {standby.name.lower() for standby in standbys}
    any_name = "*" in named
    confirming = sum(
        standby.synchronous if standby.synchronous is not None else any_name or standby.name.lower() in named
        for standby in standbys
    )
    return Replication(
        required=required,
        named=named,
        absent=tuple(name for name in named if name != "*" and name not in connected),
        missing=max(0, required - confirming),
        waiting=await waiting_commits(db),
        standbys=standbys,
        slots=[Slot(*row) for row in await db.scan(_SLOTS)],
        archive=_archive((await db.scan(_ARCHIVE))[0]),
    )


def parse_synchronous_standby_names(setting: str) -> tuple[int, tuple[str, ...]]:
    """How many standbys must confirm, and which ones may (in lower case, as PostgreSQL compares them; `*`: any)."""
    quorum = _QUORUM.fullmatch(setting)
    listed = quorum[2] if quorum else setting
    names = tuple((quoted.replace('""', '"') or bare).lower() for quoted, bare in _NAME.findall(listed))
    return (int(quorum[1]) if quorum else min(1, len(names))), names


def _standby(row: Row, privileged: bool) -> Standby:
    name, state, sync_state, lag_bytes, lag_seconds = row
    if not privileged:
        return Standby(name, None, None, None, None)
    return Standby(name, state, sync_state in ("sync", "quorum"), lag_bytes, lag_seconds or 0.0)


def _archive(row: Row) -> Archive:
    on, archived_at, failing, last, current, segment_size = row
    archived, written = _segment_number(last, segment_size), _segment_number(current, segment_size)
    waiting = None if archived is None or written is None else max(0, written - archived - 1)
    return Archive(on, archived_at, on and failing, waiting if on else None)


def _segment_number(name: str | None, segment_size: int) -> int | None:
    """The place of a segment in the WAL, whatever its timeline; None for a file that is no segment."""
    parts = _SEGMENT.match(name or "")
    return int(parts[1], 16) * (2**32 // segment_size) + int(parts[2], 16) if parts else None
