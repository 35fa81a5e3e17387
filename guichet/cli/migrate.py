"""`guichet migrate`: the schema, and which versions of Guichet can run on it."""

import sys
from typing import Annotated

import typer

from guichet.cli.arguments import Json
from guichet.cli.console import console, error_console, print_json
from guichet.cli.runner import load_settings, name_database, run_async, tighten_files
from guichet.db.schema import parse_revision
from guichet.logs import configure_logs

app = typer.Typer()


@app.command(epilog="Example: `GUICHET_DATABASE_URL=postgresql://… guichet migrate`")
def migrate(
    plan: Annotated[
        bool, typer.Option("--plan", help="Change nothing: say what it would do, and whether servers may go on.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring the database schema up to date, and create it in an empty database. Harmless when it is up to date."""
    from guichet.db import migrate as schema  # noqa: PLC0415 - Alembic takes a tenth of a second to import

    settings = load_settings()
    configure_logs("warning", machine_readable=not sys.stderr.isatty())
    name_database(settings)
    if not plan:
        tighten_files(settings)
    with error_console.status("Migrating…"):
        before, after = run_async(schema.plan(settings) if plan else schema.upgrade(settings))
    oldest = f"v{parse_revision(after).oldest:04}"
    if as_json:
        print_json({"from": before, "to": after, "oldest_code": oldest})
    elif before == after:
        console.print(f"The schema is up to date ({after}).")
    else:
        went = "would go" if plan else "went"
        console.print(f"The schema {went} from {before or 'nothing'} to {after}.")
        if before:
            console.print(_older_versions(before, after), soft_wrap=True)


def _older_versions(before: str, after: str) -> str:
    """What becomes of the servers that run on the schema `before`."""
    if parse_revision(after).oldest <= parse_revision(before).number:
        return f"Versions of Guichet that need {before} run on it too: servers may go on, and you can go back to them."
    return f"Versions of Guichet that need {before} do not run on it: stop every server and worker before migrating."
