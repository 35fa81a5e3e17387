"""The result of a check of `guichet doctor` or `guichet check-config`, the problems that it can find, and how long
something has lasted."""

from collections.abc import Sequence
from typing import Final

from msgspec import field

from guichet.clock import DAY, HOUR, MINUTE, Instant
from guichet.domain.messages import Code, Message
from guichet.domain.records import Record


class Age(Code):
    """The time between two instants in its largest whole unit."""

    MOMENT = "age.moment"
    MINUTE = "age.minute"
    HOUR = "age.hour"
    DAY = "age.day"
    MINUTES = "age.minutes", "count"
    HOURS = "age.hours", "count"
    DAYS = "age.days", "count"


class DoctorProblem(Code):
    """What `guichet doctor` finds: the back office shows it too, in the reader's language. `answer`: what a provider
    said. `waiting` and `last`: another message of these. `why`: of the operator's state."""

    PENDING = "doctor_problem.pending", "count", "subjects", "operator", "age"
    QUEUE_LATE = "doctor_problem.queue_late", "count", "queue", "age"
    ROUTE_FAILS = "doctor_problem.route_fails", "failed", "operator", "account", "succeeded"
    ENDPOINT_FAILS = (
        "doctor_problem.endpoint_fails",
        "destination",
        "merchant",
        "name",
        "env",
        "abandoned",
        "retrying",
        "delivered",
    )
    KEY_EXPIRES = "doctor_problem.key_expires", "key", "env", "merchant", "name", "age"
    CALLBACKS_UNMATCHED = "doctor_problem.callbacks_unmatched", "count"
    INCIDENTS = "doctor_problem.incidents", "count", "incident", "age"
    BALANCE_LOW = "doctor_problem.balance_low", "balance", "wallet", "bound"
    BALANCE_UNREAD = "doctor_problem.balance_unread", "account", "answer"
    POSTING_UNCHAINED = "doctor_problem.posting_unchained", "posting", "age"
    NEVER_AUDITED = "doctor_problem.never_audited"
    AUDIT_FAULT = "doctor_problem.audit_fault", "age", "audit_fault"
    AUDIT_OLD = "doctor_problem.audit_old", "age"
    HEADS_NEVER_LEFT = "doctor_problem.heads_never_left"
    HEADS_OLD = "doctor_problem.heads_old", "age"
    DIFFERENCES = "doctor_problem.differences", "count", "account"
    NOT_COMPARED = "doctor_problem.not_compared", "account", "age"
    NOT_COMPARABLE = "doctor_problem.not_comparable", "account", "age", "answer"
    OPERATOR_STATE = "doctor_problem.operator_state", "operator", "availability", "age", "availability_reason"
    ACCOUNT_MISSING = "doctor_problem.account_missing", "count", "account"
    FILE_MODE = "doctor_problem.file_mode", "path", "mode", "wanted", "target"
    # PostgreSQL: standbys and the archive.
    COMMITS_WAIT = "doctor_problem.commits_wait", "count", "seconds"
    NO_STANDBY = "doctor_problem.no_standby", "waiting"
    STANDBY_MISSING = "doctor_problem.standby_missing", "names", "waiting"
    STANDBY_SILENT = "doctor_problem.standby_silent", "waiting"
    WAL_GONE = "doctor_problem.wal_gone", "slot"
    SLOT_UNUSED = "doctor_problem.slot_unused", "slot", "size"
    NOTHING_ARCHIVED = "doctor_problem.nothing_archived"
    LAST_ARCHIVED = "doctor_problem.last_archived", "age"
    ARCHIVE_FAILS = "doctor_problem.archive_fails", "last"
    ARCHIVE_WAITS = "doctor_problem.archive_waits", "count", "last"


_UNITS: Final = (
    (DAY, Age.DAY, Age.DAYS),
    (HOUR, Age.HOUR, Age.HOURS),
    (MINUTE, Age.MINUTE, Age.MINUTES),
)


class Check(Record, frozen=True):
    """The result of one check. `name` is stable; `problems`: those of the configuration are texts; `rows`: the details,
    for `--json`; `note`: what was checked, for people."""

    name: str
    problems: Sequence[Message | str]
    rows: list[dict[str, object]] = field(default_factory=list)
    note: str = ""
    warnings: Sequence[Message | str] = ()

    @property
    def key(self) -> str:
        """The name as a part of other names: `balances_with_providers`."""
        return self.name.lower().replace(" ", "_")


class DoctorCheck(Check, frozen=True):
    """A check that the back office shows too, in the reader's language."""

    problems: Sequence[Message]


def age(since: Instant, now: Instant) -> Message:
    """The time between two instants in its largest whole unit: days, hours or minutes."""
    for unit, singular, plural in _UNITS:
        if (count := (now - since) // unit) >= 1:
            return plural(count=count) if count > 1 else singular()
    return Age.MOMENT()
