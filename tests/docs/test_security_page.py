"""`docs/security.md` says what is so: each answer to the OWASP standard names the tests that hold it, the summary is
that of the table, and each rule of the other tables names its test. That the tests exist is looked at in
`test_citations.py`.
"""

import re
from collections import Counter
from typing import Final

import pytest

from tests.docs.tables import ROOT

PAGE: Final = (ROOT / "docs/security.md").read_text()
ANSWERS: Final = ("yes", "in part", "no", "does not apply")
ROW: Final = re.compile(r"^\| (\d+\.\d+\.\d+) \| (.+?) \| (.+?) \| (.+?) \| (.+) \|$", re.MULTILINE)
TEST: Final = re.compile(r"`(?:tests/[\w/]+\.py)?::test_\w+`")
ROWS: Final = [match.groups() for match in ROW.finditer(PAGE)]


def test_each_answer_is_one_of_four_and_each_line_stands_once() -> None:
    assert {answer for _, _, answer, _, _ in ROWS} == set(ANSWERS)
    numbers = [number for number, *_ in ROWS]
    assert len(numbers) == len(set(numbers)) > 130


@pytest.mark.parametrize("row", [row for row in ROWS if row[2] in ("yes", "in part")], ids=lambda row: row[0])
def test_what_is_claimed_is_held_by_a_test(row: tuple[str, ...]) -> None:
    """By a test and not by a file of tests."""
    held_by = row[4].split(", ")
    assert held_by
    assert [each for each in held_by if not TEST.fullmatch(each)] == []


def test_the_summary_is_that_of_the_table() -> None:
    counts = Counter(row[2] for row in ROWS)
    said = f"{len(ROWS)} lines: {counts['yes']} yes, {counts['in part']} in part, {counts['no']} no, "
    assert f"{said}{counts['does not apply']} do not apply." in PAGE


def test_what_is_not_so_is_listed_word_for_word() -> None:
    listed = re.findall(r"^- \*\*(\d+\.\d+\.\d+)\*\* \((.+?)\), (in part|no): (.+)\.$", PAGE, re.MULTILINE)
    assert listed == [(number, about, answer, how) for number, about, answer, how, _ in ROWS if answer in ANSWERS[1:3]]


@pytest.mark.parametrize(
    "table", re.findall(r"^\| Thing \| Rule \| Test \|\n\|---\|---\|---\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
)
def test_each_rule_names_its_test(table: str) -> None:
    for line in table.splitlines():
        assert re.search(r"\| `tests/[\w/]+\.py`(?:, `tests/[\w/]+\.py`)* \|$", line), line
