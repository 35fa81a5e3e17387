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
BLOCKS = [block for page in PAGES for block in SHELL.findall(page.read_text(encoding="utf-8"))]
#: Restarts of more than one server, written out or in a loop.
ROLLING_RESTARTS = [
    block for block in BLOCKS if re.search(r"restart guichet@(\$|.*restart guichet@)", block, re.DOTALL)
]


def _anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def _lines() -> list[str]:
    lines = [line for block in BLOCKS for line in block.splitlines() if re.match(r"(/\S*/|as_)?guichet ", line)]
    lines = [re.sub(r"^as_guichet (--release \S+ )?", "guichet ", line.removesuffix(" &&")) for line in lines]
    units = [re.findall(r"^ExecStart=(.+)$", unit.read_text(), re.MULTILINE)[0] for unit in UNITS]
    return [*lines, *(line.replace("%i", "8001") for line in units)]


def test_the_operations_docs_contain_commands() -> None:
    assert len(PAGES) >= 7
    assert len(UNITS) == 3
    assert len(_lines()) >= 8
    assert len(ROLLING_RESTARTS) >= 3


@pytest.mark.parametrize("line", _lines())
def test_the_command_understands_every_line(line: str) -> None:
    assert line.endswith(" --version") or parses(line)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "docs" / "admin-guide.md"], ids=lambda page: page.name)
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


@pytest.mark.parametrize("unit", [unit for unit in UNITS if "audit" not in unit.name], ids=lambda unit: unit.name)
def test_a_unit_never_gives_up(unit: Path) -> None:
    """Tried under systemd: with its defaults a service whose database was away for long stayed down."""
    text = unit.read_text(encoding="utf-8")
    head, _, service = text.partition("[Service]")
    assert "StartLimitIntervalSec=0" in head
    assert re.search(r"^After=.*postgresql\.service", head, re.MULTILINE), (
        "stopped before the database, started after it"
    )
    seconds = sum(int(each) for each in re.findall(r"--(?:drain|grace) (\d+)", service))
    (patience,) = re.findall(r"^TimeoutStopSec=(\d+)$", service, re.MULTILINE)
    assert int(patience) > seconds + 2


def test_units_on_one_machine_share_no_port() -> None:
    ports = [re.findall(r"^Environment=GUICHET_METRICS_PORT=(\S+)$", unit.read_text(), re.MULTILINE) for unit in UNITS]
    assert sorted(ports) == [[], ["1%i"], ["18000"]]
    environment = (FOLDER / "systemd" / "guichet.env").read_text(encoding="utf-8")
    assert not re.search(r"^GUICHET_METRICS_PORT", environment, re.MULTILINE), "it would win over the units"


@pytest.mark.parametrize("block", ROLLING_RESTARTS)
def test_a_rolling_restart_waits_until_the_proxy_has_noticed(block: str) -> None:
    """A server that says it is ready gets nothing before the proxy's next check: until then the other one is needed."""
    caddy = (FOLDER / "Caddyfile").read_text(encoding="utf-8")
    (interval,), (timeout,) = re.findall(r"health_interval (\d+)ms", caddy), re.findall(r"health_timeout (\d+)s", caddy)
    noticed = int(interval) / 1000 + int(timeout)
    pauses = re.findall(r"/readyz &&\s+sleep (\d+)\b[^/]*?(?:systemctl restart guichet@|done$)", block, re.MULTILINE)
    assert pauses
    assert all(int(pause) > noticed for pause in pauses)
    (drain,) = re.findall(r"--drain (\d+)", (FOLDER / "systemd" / "guichet@.service").read_text(encoding="utf-8"))
    assert int(drain) > noticed
