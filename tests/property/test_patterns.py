"""No regular expression that a stranger's text meets takes more than linear time: steps are counted, nothing is timed.

A text that is four times as long takes four times the steps. Where it takes sixteen times, 48 KB of a body hold up
everybody for seconds.
"""

import re
from itertools import product
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.property.backtracking import TOO_MANY, Matcher, TooManySteps, characters_of
from tests.property.patterns import OURS, STRANGERS, Site, Worst, sites

_FEW: Final = 24
#: Patterns that take too long, each with a text: the property must see them.
_SLOW: Final = {
    r'"(?:[^"\\]|\\.)*"': Worst("", '\\"'),
    r"(a+)+b": Worst("", "a", "!"),
    r"\s+$": Worst("", " ", "a"),
    r"(\w+\s?)*:": Worst("", "w", "!"),
    r"a.*b.*c": Worst("", "ab"),
}


def _steps(site: Site, worst: Worst, repetitions: int) -> int:
    assert site.pattern is not None
    text = worst.text(repetitions)
    matcher = Matcher(site.pattern, site.flags, text.encode("latin-1") if isinstance(site.pattern, bytes) else text)
    try:
        found = matcher.search() if site.scans else matcher.fullmatch()
    except TooManySteps:
        return 1000 * TOO_MANY
    compiled = re.compile(site.pattern, site.flags)
    real = compiled.search if site.scans else compiled.fullmatch
    given_text = text.encode("latin-1") if isinstance(site.pattern, bytes) else text
    assert found is (real(given_text) is not None), "the steps are not those of `re`"  # type: ignore[arg-type]
    return matcher.steps


def _is_linear(site: Site, worst: Worst) -> bool:
    few, many = _steps(site, worst, _FEW), _steps(site, worst, 4 * _FEW)
    return few < TOO_MANY and many <= 6 * few + 200


def test_every_pattern_is_known() -> None:
    """A new one belongs into `STRANGERS` with the text for which it does most, or into `OURS`."""
    assert sorted(sites()) == sorted({**STRANGERS, **OURS})
    assert not STRANGERS.keys() & OURS.keys()


@pytest.mark.parametrize("name", STRANGERS)
def test_a_pattern_is_linear_in_its_worst_case_and_in_any_other(name: str) -> None:
    for site in sites()[name]:
        _check(name, site)


def _check(name: str, site: Site) -> None:
    assert site.pattern is not None
    assert _is_linear(site, STRANGERS[name])
    characters = characters_of(site.pattern, site.flags)
    pumps = [*characters, *("".join(pair) for pair in product(characters, repeat=2))]
    parts = st.sampled_from(["", STRANGERS[name].before, STRANGERS[name].pump, *characters])

    @settings(max_examples=12, deadline=None, database=None, derandomize=True)
    @given(before=parts, pump=st.sampled_from(pumps), after=parts)
    @example(before="", pump=STRANGERS[name].pump, after="")
    def holds(before: str, pump: str, after: str) -> None:
        assert _is_linear(site, Worst(before, pump, after))

    holds()


@pytest.mark.parametrize("pattern", _SLOW)
def test_the_property_sees_what_is_slow(pattern: str) -> None:
    assert not _is_linear(Site(pattern, 0, scans=True), _SLOW[pattern])
