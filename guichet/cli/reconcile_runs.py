"""`guichet reconcile --runs`: what the daily comparisons found."""

import typer

from guichet.bootstrap import Service
from guichet.cli.console import console, iso_or_none, print_json, print_table, with_sentence
from guichet.cli.reconcile_report import with_note
from guichet.cli.runner import run
from guichet.clock import iso
from guichet.ledger.reconciliation_runs import SHOWN_DAYS, Run, recent_runs


def show_runs(accounts: set[str] | None, *, as_json: bool) -> None:
    """Prints the runs of the last month, of these accounts or of all; exit code 1 when one found differences."""

    async def work(opened: Service) -> list[Run]:
        return await recent_runs(opened.ctx.db, opened.ctx.clock.now())

    found = [each for each in run(work) if accounts is None or each.provider_account in accounts]
    if as_json:
        print_json({"runs": [_described(each) for each in found]})
    elif found:
        columns = ("Day", "Account", "State", "Lines", "Matched", "Differences", "Compared at", "Problem")
        print_table(columns, [_row(each) for each in found])
    else:
        console.print(f"No comparison in the last {SHOWN_DAYS} days: only accounts with a history are compared daily.")
    if any(each.differences for each in found):
        raise typer.Exit(1)


def state(each: Run) -> str:
    """`compared`, `different`, `unreadable` (the latest attempt failed) or `waiting` (its day has not ended yet)."""
    if each.error is not None:
        return "unreadable"
    if each.finished_at is None:
        return "waiting"
    return "different" if each.differences else "compared"


def _row(each: Run) -> tuple[object, ...]:
    counts = (each.lines, each.matched, each.differences) if each.finished_at else ("", "", "")
    return (iso(each.day)[:10], each.provider_account, state(each), *counts, iso_or_none(each.finished_at), each.error)


def _described(each: Run) -> dict[str, object]:
    return {
        "day": iso(each.day)[:10],
        "provider_account": each.provider_account,
        "state": state(each),
        "attempts": each.attempts,
        "started_at": iso_or_none(each.started_at),
        "finished_at": iso_or_none(each.finished_at),
        "due_at": iso_or_none(each.due_at),
        "lines": each.lines,
        "matched": each.matched,
        "differences": each.differences,
        "found": [with_note(found) for found in each.details],
        **with_sentence("error", each.error),
    }
