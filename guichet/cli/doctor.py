"""`guichet doctor`: everything that a person must look into, on one screen."""

from collections.abc import Sequence

import typer

from guichet.cli.arguments import Json
from guichet.cli.console import console, print_json
from guichet.cli.runner import run
from guichet.context import AppContext
from guichet.db.errors import DatabaseDamaged
from guichet.domain.messages import Message
from guichet.server.doctor.check import Check
from guichet.server.doctor.checks import of_the_service
from guichet.server.doctor.providers import accounts_in_use
from guichet.server.doctor.replication import standbys_and_archive
from guichet.server.doctor.storage import database_file, file_modes


def report(checks: Sequence[Check], *, as_json: bool) -> None:
    """Prints the results; ends the command with exit code 1 when there is a problem."""
    healthy = not any(check.problems for check in checks)
    if as_json:
        described = {
            check.name: {
                "ok": not check.problems,
                "problems": [str(problem) for problem in check.problems],
                "findings": [
                    {"code": problem.code, "facts": problem.facts}
                    for problem in check.problems
                    if isinstance(problem, Message)
                ],
                "warnings": [str(warning) for warning in check.warnings],
                "rows": check.rows,
            }
            for check in checks
        }
        print_json({"healthy": healthy, "checks": described})
    else:
        for check in checks:
            mark = "✗" if check.problems else "!" if check.warnings else "✓"
            line = f"{mark} {check.name}{': ' if check.note else ''}{check.note}"
            console.print(line, style="red" if check.problems else None, soft_wrap=True)
            for problem in (*check.problems, *check.warnings):
                console.print(f"    {problem}", soft_wrap=True)
    if not healthy:
        raise typer.Exit(1)


app = typer.Typer()


@app.command(epilog="Example: `guichet doctor --json`")
def doctor(as_json: Json = False) -> None:
    """Show what a person must look into: stuck payments, late queues, failing routes and webhook endpoints, API keys
    that expire, incidents, low balances with providers, the hash chain, the audit, heads that do not leave the machine,
    the daily comparison with providers, operators that do not work, accounts that left the providers' file, a damaged
    or full database, standbys that are missing, an archive that fails and files that others can read.

    Exit code 1 when there is a problem.
    """

    async def work(ctx: AppContext) -> list[Check]:
        db, now = ctx.db, ctx.clock.now()
        standbys, writable = await _standbys(ctx)
        storage = [*standbys, await database_file(ctx, writable), file_modes(ctx.settings)]
        try:
            accounts = await accounts_in_use(db, ctx.settings.providers_file)
            return [*[check async for check in of_the_service(db, now)], accounts, *storage]
        except DatabaseDamaged:  # Nothing else can be said.
            return storage

    report(run(work, direct=True), as_json=as_json)


async def _standbys(ctx: AppContext) -> tuple[list[Check], bool]:
    """Nothing for the embedded database. Also returns whether a write may be tried: not if it is known to wait."""
    if ctx.settings.embedded:
        return [], True
    check, replication = await standbys_and_archive(ctx.db, ctx.clock.now())
    return [check], not replication.missing
