"""`bench/budget.md`: the lines, read from its table and written into it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parent.parent / "budget.md"
#: A measure may be so much over its line.
TOLERANCE: Final = 0.03
MEGABYTES: Final = 3
_ROW: Final = re.compile(r"^\| (?P<name>[^|]+?) \| (?P<line>[\d,.]+) \|(?P<rest>.*)$")


def lines() -> dict[str, float]:
    rows = (_ROW.match(row) for row in PAGE.read_text(encoding="utf-8").splitlines())
    return {row["name"]: float(row["line"].replace(",", "")) for row in rows if row}


def over(name: str, measured: float, line: float | None) -> bool:
    """A measure without a line is over it: `--write` gives it one."""
    if line is None:
        return True
    return measured > (line + MEGABYTES if name.endswith(", MB") else line * (1 + TOLERANCE))


def write(measured: Mapping[str, float], *, everything: bool) -> None:
    """Lowers lines, adds those that are missing, takes away those of what is no more if `everything` was measured.
    It raises none: that is done by hand, in a commit that says what users got for it."""
    rows, known = [], lines()
    for row in PAGE.read_text(encoding="utf-8").splitlines():
        if found := _ROW.match(row):
            name = found["name"]
            if name in measured or not everything:
                line = min(measured.get(name, known[name]), known[name])
                rows.append(f"| {name} | {shown(line)} |{found['rest']}")
        else:
            rows.append(row)
    rows += [f"| {name} | {shown(value)} | |" for name, value in measured.items() if name not in known]
    PAGE.write_text("\n".join(rows) + "\n", encoding="utf-8")


def shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}".removesuffix(".0")
