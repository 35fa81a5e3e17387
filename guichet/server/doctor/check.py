"""The result of a check of `guichet doctor` or `guichet check-config`, and how long something has lasted."""

from collections.abc import Sequence
from typing import Final

from msgspec import field

from guichet.clock import DAY, HOUR, MINUTE, Instant
from guichet.domain.messages import Message
from guichet.domain.records import Record
from guichet.server.doctor.problems import Age

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
    for unit, one, several in _UNITS:
        if (count := (now - since) // unit) >= 1:
            return several(count=count) if count > 1 else one()
    return Age.MOMENT()
