"""Reads the tables of docs/contract.md, so that tests hold the code to each row.

A table is announced by `<!-- table: name -->` and follows it directly. A cell that holds `–` is an empty text; the
backquotes around a cell's whole text are dropped.
"""

import re
from functools import cache
from pathlib import Path
from typing import Final

Row = dict[str, str]

CONTRACT: Final = Path(__file__).parents[2] / "docs" / "contract.md"
EMPTY: Final = "–"

_ANNOUNCED: Final = re.compile(r"<!-- table: (.+) -->")
_RULE: Final = re.compile(r"\|(?: ?:?-+:? ?\|)+")


class TableError(Exception):
    """docs/contract.md is not written the way the tests read it; names the line."""


def table(name: str) -> list[Row]:
    """The rows of one table, header → cell; a name that is not there is an error, never an empty table."""
    found = parsed()
    if name not in found:
        raise TableError(f"docs/contract.md has no table named {name!r}; it has: {', '.join(found)}")
    return [dict(row) for row in found[name]]


def tables(prefix: str) -> dict[str, list[Row]]:
    """Every table whose name is `prefix`, a space and something, by that something: `tables("request")`."""
    start = f"{prefix} "
    found = {name.removeprefix(start): table(name) for name in parsed() if name.startswith(start)}
    if not found:
        raise TableError(f"docs/contract.md has no table whose name starts with {start!r}")
    return found


def column(name: str, header: str) -> list[str]:
    """One column of a table, top to bottom."""
    return [row[header] for row in table(name)]


@cache
def parsed() -> dict[str, list[Row]]:
    return parse(CONTRACT.read_text(encoding="utf-8"))


def parse(text: str) -> dict[str, list[Row]]:
    """All announced tables of a Markdown text; one that is not announced is an error, since nothing would read it."""
    found: dict[str, list[Row]] = {}
    lines = text.splitlines()
    read_until = 0
    for number, line in enumerate(lines):
        if match := _ANNOUNCED.fullmatch(line.strip()):
            name = match[1]
            if name in found:
                raise TableError(f"line {number + 1}: the table {name!r} stands here a second time")
            start = next((n for n in range(number + 1, len(lines)) if lines[n].strip()), len(lines))
            read_until, found[name] = _read(lines, start, name)
        elif line.startswith("|") and number >= read_until:
            raise TableError(f"line {number + 1}: this table has no <!-- table: name --> before it")
    return found


def _read(lines: list[str], start: int, name: str) -> tuple[int, list[Row]]:
    end = start
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    if end - start < 3 or not _RULE.fullmatch(lines[start + 1]):
        raise TableError(f"line {start + 1}: the table {name!r} needs a header, a rule and at least one row")
    headers = _cells(lines[start])
    rows = []
    for number in range(start + 2, end):
        cells = _cells(lines[number])
        if len(cells) != len(headers):
            raise TableError(f"line {number + 1}: {len(cells)} cells under {len(headers)} headers in {name!r}")
        rows.append(dict(zip(headers, cells, strict=True)))
    return end, rows


def _cells(line: str) -> list[str]:
    return [_text(cell.strip()) for cell in line.strip().strip("|").split("|")]


def _text(cell: str) -> str:
    if cell == EMPTY:
        return ""
    plain = cell[1:-1]
    return plain if cell.startswith("`") and cell.endswith("`") and "`" not in plain else cell
