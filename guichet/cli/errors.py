"""How a command fails: one sentence on stderr, and an exit code."""

from typing import NoReturn

import typer

from guichet.printable import printable


class CommandError(Exception):
    """The command is refused or failed. The message is one sentence; the exit code is 1."""


def fail(sentence: object, code: int = 1) -> NoReturn:
    """Prints one sentence on stderr and exits."""
    from rich.text import Text  # noqa: PLC0415 - a command that works does not wait for it

    from guichet.cli.console import error_console  # noqa: PLC0415

    error_console.print(Text.assemble(("✗", "red"), f" {printable(str(sentence))}"))
    raise typer.Exit(code)
