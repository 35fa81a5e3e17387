"""A decision that is cited exists, and every number is given once."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DECISIONS = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")


def _given() -> list[int]:
    return [int(number) for number in re.findall(r"^- \*\*D(\d+)\*\* ", DECISIONS, re.MULTILINE)]


def test_decisions_are_numbered_in_order_without_gaps() -> None:
    assert len(_given()) >= 42
    assert _given() == list(range(1, len(_given()) + 1))


def test_what_the_code_and_the_docs_cite_was_decided() -> None:
    files = [*ROOT.glob("guichet/**/*.py"), *ROOT.glob("docs/*.md"), *ROOT.glob("tests/**/*.py")]
    given = set(_given())
    unknown = {
        f"{path.relative_to(ROOT)}: D{number}"
        for path in files
        for number in re.findall(r"\((?:[^()]*\b)?D(\d+)\b[^()]*\)", path.read_text(encoding="utf-8"))
        if int(number) not in given
    }

    assert files
    assert not unknown
