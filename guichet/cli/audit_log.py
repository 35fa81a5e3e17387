"""`guichet audit-log …`: what people did, and the proof that nobody changed the log."""

from typing import Annotated

import msgspec
import typer

from guichet.audit_log import entries
from guichet.audit_log.entries import Entry
from guichet.chain_heads import known_heads
from guichet.cli.arguments import Json, KnownDigests, KnownHeadsFile
from guichet.cli.console import console, print_json, print_table, with_sentence
from guichet.cli.errors import fail
from guichet.cli.runner import run
from guichet.clock import iso
from guichet.context import AppContext

app = typer.Typer(no_args_is_help=True, help="What people did, in a log that nobody can change unnoticed.")


@app.command("list", epilog="Example: `guichet audit-log list --about 01a202b1-10b7-453a-868b-cad7dfa87efe`")
def list_entries(
    about: Annotated[str | None, typer.Option(metavar="REFERENCE|ID", help="Only acts on this subject.")] = None,
    as_json: Json = False,
) -> None:
    """Show the newest 500 acts, newest first."""

    acts = run(lambda ctx: entries.latest(ctx.db) if about is None else entries.about(ctx.db, about))
    if as_json:
        print_json({"entries": [_described(act) for act in acts]})
        return
    rows = [(act.number, iso(act.at), _who(act), act.action, act.subject, act.after, act.reason) for act in acts]
    print_table(("No.", "At", "Who", "Did", "Subject", "After", "Why"), rows)


def _who(entry: Entry) -> str:
    return entry.actor if entry.actor == entry.os_user else f"{entry.actor} ({entry.os_user})"


def _described(entry: Entry) -> dict[str, object]:
    facts = {"before": msgspec.json.decode(entry.before), "after": msgspec.json.decode(entry.after)}
    return {**entry._asdict(), **facts, "at": iso(entry.at)}


@app.command(epilog="Example: `guichet audit-log verify --known-heads heads.jsonl`")
def verify(
    known_head: KnownDigests = None,
    known_heads_file: KnownHeadsFile = None,
    as_json: Json = False,
) -> None:
    """Prove that no entry was changed, removed or cut off. Exit code 1 when one was.

    The log must still contain the heads in the file of `GUICHET_LEDGER_HEADS`, and those that are given: so even a log
    that was rewritten as a whole is found.
    """

    async def work(ctx: AppContext) -> entries.Verification:
        known = await known_heads(ctx.db, ctx.settings, known_head or (), known_heads_file)
        return await entries.verify(ctx.db, known)

    result = run(work, "Reading the audit log…")
    if as_json:
        print_json({"entries": result.entries, "head": result.head, **with_sentence("fault", result.fault)})
    elif result.fault is None:
        console.print(f"{result.entries} entries, head digest {result.head}")
    if result.fault is not None:
        if as_json:
            raise typer.Exit(1)
        fail(result.fault)
