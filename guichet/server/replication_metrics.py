"""The metrics about PostgreSQL's standbys, slots and archive (docs/admin-guide.md, "Metrics and alerts")."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily

from guichet.db.postgres.replication import Archive, Replication, Slot, Standby

_UNKNOWN: Final = "unknown"
_STATES: Final = ("streaming", "catchup", "other", _UNKNOWN)


def replication_families(status: Replication) -> Iterator[GaugeMetricFamily]:
    yield from _synchronous(status)
    yield from _standbys(status.standbys)
    yield from _slots(status.slots)
    yield from _archive(status.archive)


def _synchronous(status: Replication) -> Iterator[GaugeMetricFamily]:
    yield GaugeMetricFamily(
        "guichet_synchronous_standbys_required", "How many standbys must confirm each commit.", status.required
    )
    yield GaugeMetricFamily(
        "guichet_synchronous_standbys_missing", "How many of them are not there: every write waits.", status.missing
    )
    connected = GaugeMetricFamily(
        "guichet_synchronous_standby_connected",
        "1 if this standby, which synchronous_standby_names names, is connected, else 0.",
        labels=("standby",),
    )
    for name in dict.fromkeys(status.named):
        if name != "*":
            connected.add_metric((name,), name not in status.absent)
    yield connected
    yield GaugeMetricFamily(
        "guichet_commits_waiting_for_standby",
        "Commits of all processes that wait for a synchronous standby now.",
        status.waiting.count,
    )
    yield GaugeMetricFamily(
        "guichet_commits_waiting_for_standby_seconds",
        "How long the first of them has waited; milliseconds are normal.",
        status.waiting.longest,
    )


def _standbys(standbys: list[Standby]) -> Iterator[GaugeMetricFamily]:
    states = GaugeMetricFamily(
        "guichet_standbys",
        "Connected standbys by state: streaming, catchup, other; unknown without pg_monitor.",
        labels=("state",),
    )
    count = Counter(_state(standby) for standby in standbys)
    for state in _STATES:
        states.add_metric((state,), count[state])
    yield states
    lag_bytes = GaugeMetricFamily(
        "guichet_standby_lag_bytes", "WAL that this standby has not on its disk yet.", labels=("standby",)
    )
    lag_seconds = GaugeMetricFamily(
        "guichet_standby_lag_seconds", "How long this standby took to apply the latest WAL.", labels=("standby",)
    )
    for name in sorted({standby.name for standby in standbys}):  # Two may have one name: the one that lags more counts.
        namesakes = [standby for standby in standbys if standby.name == name]
        if any(standby.state is not None for standby in namesakes):
            lag_bytes.add_metric((name,), max(standby.lag_bytes or 0.0 for standby in namesakes))
            lag_seconds.add_metric((name,), max(standby.lag_seconds or 0.0 for standby in namesakes))
    yield lag_bytes
    yield lag_seconds


def _state(standby: Standby) -> str:
    state = standby.state or _UNKNOWN
    return state if state in _STATES else "other"


def _slots(slots: list[Slot]) -> Iterator[GaugeMetricFamily]:
    active = GaugeMetricFamily(
        "guichet_replication_slot_active", "1 if the standby of this slot is connected, else 0.", labels=("slot",)
    )
    kept = GaugeMetricFamily(
        "guichet_replication_slot_wal_bytes", "WAL that the server keeps for this slot.", labels=("slot",)
    )
    for slot in slots:
        active.add_metric((slot.name,), slot.active)
        if slot.kept_bytes is not None:
            kept.add_metric((slot.name,), slot.kept_bytes)
    yield active
    yield kept
    yield GaugeMetricFamily(
        "guichet_replication_slots_lost",
        "Slots whose WAL is gone: their standbys must be copied again.",
        sum(slot.lost for slot in slots),
    )


def _archive(archive: Archive) -> Iterator[GaugeMetricFamily]:
    yield GaugeMetricFamily("guichet_wal_archive_on", "1 if archive_mode is on, else 0.", float(archive.on))
    yield GaugeMetricFamily(
        "guichet_wal_archive_failing",
        "1 if the last attempt of archive_command failed, else 0.",
        float(archive.failing),
    )
    stored_at = GaugeMetricFamily(
        "guichet_wal_archive_last_success_timestamp_seconds",
        "When the last file was archived, in Unix seconds; absent before the first one.",
    )
    if archive.on and archive.archived_at is not None:
        stored_at.add_metric((), archive.archived_at)
    yield stored_at
    waiting = GaugeMetricFamily(
        "guichet_wal_archive_waiting_segments", "Full segments of WAL that are not archived yet; absent if unknown."
    )
    if archive.waiting_segments is not None:
        waiting.add_metric((), archive.waiting_segments)
    yield waiting
