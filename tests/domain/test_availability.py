"""The state of an operator by its attempts: the limits, the windows, and the way back up."""

import pytest

from guichet.clock import HOUR, MINUTE, Instant, earlier
from guichet.domain.availability import (
    DEGRADED,
    DOWN,
    UP,
    Attempts,
    AvailabilityReason,
    OperatorState,
    Verdict,
    measured,
    worse,
)
from guichet.domain.messages import verbatim

NOW = Instant(1000 * HOUR)


def minutes_ago(minutes: int, attempts: int, failures: int) -> Attempts:
    return Attempts(earlier(NOW, minutes * MINUTE), attempts, failures)


@pytest.mark.parametrize(
    ("attempts", "failures", "state"),
    [
        (100, 0, UP),
        (100, 15, UP),
        (100, 16, DEGRADED),
        (100, 60, DEGRADED),
        (100, 61, DOWN),
        (20, 20, DOWN),
        (19, 19, UP),
    ],
)
def test_a_window_is_judged_by_its_share_of_technical_failures(
    attempts: int, failures: int, state: OperatorState
) -> None:
    assert measured([minutes_ago(1, attempts, failures)], NOW, UP).state == state


def test_a_quiet_quarter_of_an_hour_is_judged_with_the_hour_around_it() -> None:
    quiet = [minutes_ago(3, 5, 5), minutes_ago(20, 5, 5), minutes_ago(50, 10, 10)]
    assert measured(quiet, NOW, UP) == Verdict(DOWN, AvailabilityReason.FAILURES(failures=20, attempts=20, minutes=60))
    assert measured(quiet[:2], NOW, UP).state == UP
    assert measured([*quiet, minutes_ago(70, 1000, 0)], NOW, UP).state == DOWN, "what is older does not count"
    assert measured([minutes_ago(3, 20, 0), minutes_ago(20, 1000, 1000)], NOW, UP).state == UP


def test_an_operator_is_up_again_after_two_good_windows_in_a_row() -> None:
    good, outage = minutes_ago(5, 50, 0), minutes_ago(20, 50, 50)
    for before in (DOWN, DEGRADED):
        assert measured([good, outage], NOW, before).state == before
    assert measured([good, minutes_ago(20, 50, 0)], NOW, DOWN).state == UP
    assert measured([minutes_ago(5, 100, 30), outage], NOW, DOWN).state == DEGRADED, "worse or better counts at once"


def test_an_operator_that_nobody_tries_any_more_comes_back() -> None:
    assert measured([], NOW, DOWN).state == UP


def test_the_worse_of_two_verdicts_counts() -> None:
    assert worse([Verdict(UP), Verdict(DEGRADED, verbatim("x")), Verdict(UP)]) == Verdict(DEGRADED, verbatim("x"))
    assert worse([Verdict(DOWN, verbatim("ours")), Verdict(DOWN, verbatim("theirs"))]).reason == verbatim("ours")
