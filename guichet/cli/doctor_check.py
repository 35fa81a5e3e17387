"""What `guichet doctor` and `guichet check-config` share: the result of a check, and how results are shown."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import typer

from guichet.cli.console import console, print_json
from guichet.clock import DAY, HOUR, MINUTE, Instant


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check. `problems`: one sentence each; `rows`: the details, for `--json`; `note`: what was
    checked, for people."""

    name: str
    problems: Sequence[str]
    rows: list[dict[str, object]] = field(default_factory=list)
    note: str = ""


def report(checks: Sequence[Check], *, as_json: bool) -> None:
    """Prints the results; ends the command with exit code 1 when there is a problem."""
    healthy = not any(check.problems for check in checks)
    if as_json:
        described = {
            each.name: {"ok": not each.problems, "problems": list(each.problems), "rows": each.rows} for each in checks
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


def age(since: Instant, now: Instant) -> str:
    """The time between two instants in its largest whole unit: days, hours or minutes."""
    for unit, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute")):
        if (count := (now - since) // unit) >= 1:
            return f"{count} {name}{'s' if count > 1 else ''}"
    return "a moment"
