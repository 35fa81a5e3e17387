"""The founders' decisions keep their numbers and have each a test, the later ones a title (tests/docs: citations)."""

import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
DECISIONS = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
#: Seen on hosted pages, where tests/checkout and tests/browser check it.
ELSEWHERE = {30}
#: The files with the decisions about requests, D1 to D19; D42 is about dates, with D13.
ABOUT_REQUESTS = (
    "test_request_amounts.py",
    "test_request_bodies.py",
    "test_request_fields.py",
    "test_lists_and_dates.py",
    "test_link_requests.py",
)


def _given() -> list[int]:
    return [int(number) for number in re.findall(r"^- \*\*D(\d+)\*\* ", DECISIONS, re.MULTILINE)]


def test_the_founders_decisions_keep_their_numbers_and_others_have_titles() -> None:
    titles = re.findall(r"^- \*\*(?!D\d)([^*]+)\*\*(?: \(was D\d+(?:, D\d+)*\))?\. ", DECISIONS, re.MULTILINE)

    assert _given() == list(range(1, 43))
    assert len(titles) == len(set(titles)) == DECISIONS.count("\n- **") - 42


def test_every_decision_of_the_contract_has_a_test_named_after_it() -> None:
    assert set(_given()) - _tested(Path(__file__).parent.glob("test_*.py")) == ELSEWHERE


def test_the_decisions_about_requests_are_tested_together() -> None:
    assert _tested(Path(__file__).parent / name for name in ABOUT_REQUESTS) == {*range(1, 20), 42}


def _tested(files: Iterable[Path]) -> set[int]:
    """The numbers of the decisions that tests of these files are named after."""
    return {int(number) for file in files for number in re.findall(r"def test_d(\d+)_", file.read_text("utf-8"))}
