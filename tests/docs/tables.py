"""Reads a table of a page that is announced by `<!-- table: name -->`."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


def cells(page: str, name: str) -> dict[str, list[str]]:
    """First cell of each row → its other cells, without the header. Raises ValueError if there is no such table."""
    _, announced, after = (ROOT / page).read_text().partition(f"<!-- table: {name} -->")
    if not announced:
        raise ValueError(f"{page} has no table {name}")
    lines = after.strip().split("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return {first: rest for first, *rest in rows}
