"""Availability of an operator: how its state follows from the initiations that failed for technical reasons
(docs/decisions.md, "Availability").

Refusals by payers never count: an operator whose customers have no money is up.

Why an operator is degraded or down: rows of `operator_availability` keep it, `guichet operators` and the back office
show it. `availability_reason`: what was wrong before an operator began to recover.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, get_args

from guichet.clock import HOUR, MINUTE, Instant, earlier
from guichet.domain.messages import Code, Message
from guichet.domain.records import Record


class AvailabilityReason(Code):
    FAILURES = "availability_reason.failures", "failures", "attempts", "minutes"
    RECOVERING = "availability_reason.recovering", "availability_reason"
    STATED = "availability_reason.stated", "account"


OperatorState = Literal["up", "degraded", "down"]
OPERATOR_STATES: Final[tuple[OperatorState, ...]] = get_args(OperatorState)
UP: Final = "up"
DEGRADED: Final = "degraded"
DOWN: Final = "down"

#: Fewer attempts than this in a window prove nothing; a longer window is then looked at.
LEAST_ATTEMPTS: Final = 20
WINDOW: Final = 15 * MINUTE
_WINDOWS: Final = (WINDOW, HOUR)
#: Percent of attempts without a technical failure.
_DEGRADED_BELOW: Final = 85
_DOWN_BELOW: Final = 40
#: How far back attempts must be known: the hour that ends with the window before the last one.
HISTORY: Final = HOUR + WINDOW


class Attempts(Record, frozen=True):
    """Initiations with one operator in the minute that begins at `minute`, and how many failed technically."""

    minute: Instant
    attempts: int
    failures: int


class Verdict(Record, frozen=True):
    """`reason`: what was counted or said, for the staff; None when nothing is wrong."""

    state: OperatorState
    reason: Message | None = None


def measured(history: Sequence[Attempts], now: Instant, before: OperatorState) -> Verdict:
    """The state by our own attempts; `before` is what the last measurement said.

    The last 15 minutes count, or the last hour when they have fewer than 20 attempts. A bad window counts at once; an
    operator is up again after two good windows in a row. A window with too few attempts is good: merchants who avoid
    an operator that is down would otherwise never see it come back.
    """
    last = _window(history, now)
    if last.state != UP or before == UP:
        return last
    previous = _window(history, earlier(now, WINDOW))
    return (
        last
        if previous.state == UP
        else Verdict(before, AvailabilityReason.RECOVERING(availability_reason=previous.reason or ""))
    )


def worse(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of them; the first one of several that are equally bad."""
    return max(verdicts, key=lambda verdict: OPERATOR_STATES.index(verdict.state))


def _window(history: Sequence[Attempts], end: Instant) -> Verdict:
    for width in _WINDOWS:
        inside = [counts for counts in history if earlier(end, width) <= counts.minute < end]
        attempts, failures = sum(counts.attempts for counts in inside), sum(counts.failures for counts in inside)
        if attempts >= LEAST_ATTEMPTS:
            return _judged(attempts, failures, width)
    return Verdict(UP)


def _judged(attempts: int, failures: int, width: int) -> Verdict:
    share = 100 * (attempts - failures)
    if share >= _DEGRADED_BELOW * attempts:
        return Verdict(UP)
    reason = AvailabilityReason.FAILURES(failures=failures, attempts=attempts, minutes=width // MINUTE)
    return Verdict(DOWN if share < _DOWN_BELOW * attempts else DEGRADED, reason)
