"""Each API family that Guichet calls has a page of facts, and each page answers the same questions."""

import re

import pytest

from tests.docs.citations import ROOT, headings

PAGES = ROOT / "docs" / "providers"
#: What every page tells; a page may have more.
HEADINGS = {
    "Addresses and credentials",
    "Initiating a payment",
    "Asking for its state",
    "Lost answers",
    "Refunds",
    "Callbacks",
    "Errors",
    "Codes and limits",
    "Other calls",
    "Sandbox",
    "Not certain",
    "Sources",
    "Going live",
}
FAMILIES = sorted(path.stem for path in PAGES.glob("*.md") if path.name not in ("README.md", "other-providers.md"))


def test_every_family_has_its_page() -> None:
    """docs/live.md lists the families, and another test holds that list to the code."""
    live = (ROOT / "docs" / "live.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \|.*\|.*\|.*\|$", live, re.MULTILINE)

    assert sorted(listed) == FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_every_provider_page_has_the_same_headings(family: str) -> None:
    assert headings((PAGES / f"{family}.md").read_text(encoding="utf-8")) >= HEADINGS
