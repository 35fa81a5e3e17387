"""`guichet providers setup`: what must be made once with a provider before an account can be used."""

from typing import Annotated

import typer
from rich.prompt import Confirm
from rich.text import Text

from guichet.cli.console import console, error_console
from guichet.printable import printable

Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking; for scripts.")]


def confirm(question: str, *, yes: bool) -> None:
    """Ends the command with exit code 1 unless a person agrees. `yes`: they did on the command line."""
    try:
        agreed = yes or Confirm.ask(Text(printable(question)), console=error_console, default=False)
    except EOFError:
        agreed = False
    if not agreed:
        error_console.print(Text("\nNothing was done; --yes does it without a question."))
        raise typer.Exit(1)


def step(text: str) -> None:
    """Prints one step, on a line of its own however long it is."""
    console.print(text, soft_wrap=True)
