"""`docs/operations/` names only commands, settings and places that there are."""

import re
from pathlib import Path

import pytest

from guichet.settings import VARIABLES
from tests.cli.conftest import ROOT
from tests.cli.tree import parses

FOLDER = ROOT / "docs" / "operations"
PAGES = sorted(FOLDER.glob("*.md"))
UNITS = sorted((FOLDER / "systemd").glob("*.service"))
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def _lines() -> list[str]:
    blocks = [block for page in PAGES for block in SHELL.findall(page.read_text(encoding="utf-8"))]
    lines = [line for block in blocks for line in block.splitlines() if re.match(r"(/\S*/)?guichet ", line)]
    units = [re.findall(r"^ExecStart=(.+)$", unit.read_text(), re.MULTILINE)[0] for unit in UNITS]
    return [*lines, *(line.replace("%i", "8001") for line in units)]


def test_there_is_something_to_hold() -> None:
    assert len(PAGES) >= 7
    assert len(UNITS) == 3
    assert len(_lines()) >= 8


@pytest.mark.parametrize("line", _lines())
def test_the_command_understands_every_line(line: str) -> None:
    assert parses(line)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "docs" / "operators-guide.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]*(?:#[^)]*)?)\)", text):
        file, _, anchor = target.partition("#")
        place = (page.parent / file).resolve() if file else page
        assert place.exists(), target
        assert not anchor or anchor in _anchors(place.read_text(encoding="utf-8")), target


def test_settings_are_settings() -> None:
    known = {variable.name for variable in VARIABLES}
    for path in (*PAGES, FOLDER / "systemd" / "guichet.env", FOLDER / "nginx.conf", FOLDER / "Caddyfile"):
        assert set(re.findall(r"GUICHET_[A-Z_]+[A-Z]", path.read_text(encoding="utf-8"))) <= known, path.name
