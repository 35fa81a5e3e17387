"""What commands print: text and tables for people, JSON for programs, errors on stderr."""

import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from guichet.clock import Instant, iso
from guichet.schemas.json_codec import encode

#: Columns when stdout is not a terminal: wide enough for any table, so that a pipe receives whole lines.
_PIPE_WIDTH: Final = 200

console = Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)
error_console = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


class CommandError(Exception):
    """The command is refused or failed. The message is one sentence; the exit code is 1."""


def fail(sentence: str, code: int = 1) -> NoReturn:
    """Prints one sentence on stderr and exits."""
    error_console.print(Text.assemble(("✗", "red"), f" {sentence}"))
    raise typer.Exit(code)


def print_json(value: object) -> None:
    """Prints one JSON object on stdout."""
    sys.stdout.write(encode(value).decode() + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    table = Table(*columns, header_style="bold")
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    console.print(table)


def iso_or_none(instant: Instant | None) -> str | None:
    return None if instant is None else iso(instant)


def command_name() -> str:
    """How a user can start this command again in the same shell."""
    started = Path(sys.argv[0])
    if started.name == "__main__.py":
        return f"{sys.executable} -m guichet"
    return started.name if shutil.which(started.name) == str(started) else str(started)
