"""How `guichet doctor` and `guichet check-config` show the results of their checks."""

from collections.abc import Sequence

import typer

from guichet.cli.console import console, print_json
from guichet.domain.messages import Message
from guichet.server.doctor.check import Check


def report(checks: Sequence[Check], *, as_json: bool) -> None:
    """Prints the results; ends the command with exit code 1 when there is a problem."""
    healthy = not any(check.problems for check in checks)
    if as_json:
        described = {
            each.name: {
                "ok": not each.problems,
                "problems": [str(problem) for problem in each.problems],
                "findings": [
                    {"code": problem.code, "facts": problem.facts}
                    for problem in each.problems
                    if isinstance(problem, Message)
                ],
                "rows": each.rows,
            }
            for each in checks
        }
        print_json({"healthy": healthy, "checks": described})
    else:
        for check in checks:
            line = f"{'✗' if check.problems else '✓'} {check.name}{': ' if check.note else ''}{check.note}"
            console.print(line, style="red" if check.problems else None, soft_wrap=True)
            for problem in check.problems:
                console.print(f"    {problem}", soft_wrap=True)
    if not healthy:
        raise typer.Exit(1)
