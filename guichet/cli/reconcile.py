"""`guichet reconcile`: compares a provider's statement with our ledger, and lists the daily comparisons."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from guichet.back_office.jobs.statement_comparison import fetched_statement
from guichet.cli.arguments import Json, Since, Until
from guichet.cli.console import console, error_console, print_json, print_table, with_sentence
from guichet.cli.errors import fail
from guichet.cli.provider_accounts import load_providers
from guichet.cli.runner import load_settings, run
from guichet.clock import Instant, iso
from guichet.context import AppContext
from guichet.domain.money import plain
from guichet.domain.payments import SUBJECT_TYPES
from guichet.domain.reconciliation import MATCHED, OUTCOMES, Finding
from guichet.domain.records import Record, described, iso_or_none
from guichet.exports import cells, differences
from guichet.ledger.provider_statement import (
    FIELDS,
    MEANINGS,
    MEANINGS_OF,
    ProviderStatement,
    StatementFault,
    StatementFormat,
    UnreadableStatement,
    read_statement,
)
from guichet.ledger.reconciliation import reconcile as compare
from guichet.ledger.reconciliation_runs import SHOWN_DAYS, Run, describe, recent_runs
from guichet.providers.account_review import NoHistory, UnreadableHistory
from guichet.providers.providers_file import ProvidersConfig

_SENTENCES: Final[dict[StatementFault, str]] = {
    "encoding": "this is not UTF-8. Save it as CSV UTF-8.",
    "nul": "it holds a NUL byte. Save it as CSV UTF-8.",
    "no_column": "no column for {field} among {known}; name it with --column {field}=NAME.",
    "width": "{found} columns where the header has {expected}.",
    "no_reference": "it has no reference.",
    "no_amount": "it has no amount.",
    "currency": "{value} is not one of {known}.",
    "word": "the {field} {value!r} is unknown; explain it with --word {value}={meaning} (or ignore).",
    "value": "the {field} {value!r} cannot be read.",
    "csv": "{problem}.",
    "too_many": "there are more than {most} lines.",
}


def sentence_of(error: UnreadableStatement) -> str:
    meaning = MEANINGS_OF[str(error.facts["field"])][0] if error.fault == "word" else ""
    return _SENTENCES[error.fault].format(**error.facts, meaning=meaning)


class Comparison(Record, frozen=True):
    """`counts`: findings by result; `differences`: those that do not match; `ignored`: lines left out on request."""

    counts: Counter[str]
    differences: list[Finding]
    ignored: int
    since: Instant | None
    until: Instant | None

    def add(self, finding: Finding) -> None:
        self.counts[finding.outcome] += 1
        if finding.outcome != MATCHED:
            self.differences.append(finding)


@contextmanager
def csv_report(path: Path | None) -> Iterator[Callable[[Finding], object]]:
    """Writes a finding to a CSV file; does nothing without a path."""
    if path is None:
        yield lambda _: None
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = cells.writer(file, differences.COLUMNS)
        yield lambda finding: rows.writerow(differences.row(finding))


def show(comparison: Comparison, *, as_json: bool) -> None:
    counts = {result: comparison.counts[result] for result in OUTCOMES}
    if as_json:
        differences = [with_note(describe(finding)) for finding in comparison.differences]
        period = {"from": iso_or_none(comparison.since), "to": iso_or_none(comparison.until)}
        print_json({**period, "counts": counts, "ignored": comparison.ignored, "differences": differences})
        return
    if comparison.differences:
        columns = ("Result", "Type", "Ours", "Amount here", "Theirs", "Amount there", "Line", "Note")
        print_table(columns, [_screen(finding) for finding in comparison.differences])
    if comparison.since is not None and comparison.until is not None:
        console.print(f"From {cells.moment(comparison.since)} to {cells.moment(comparison.until)} UTC:")
    console.print(", ".join(f"{count} {result}" for result, count in counts.items()) + ".")
    if comparison.ignored:
        console.print(f"{comparison.ignored} lines were ignored as requested.")


def with_note(difference: dict[str, Any]) -> dict[str, object]:
    """As `--json` prints it. Without a note its sentence is empty."""
    fields = with_sentence("note", difference["note"])
    return {**difference, **fields, "note": fields["note"] or ""}


def _screen(finding: Finding) -> tuple[object, ...]:
    line, subject = finding.line, finding.ours
    return (
        finding.outcome,
        line.kind if line else subject.kind if subject else "",
        subject.reference if subject else "",
        plain(subject.amount) if subject else "",
        line.references[0] if line and line.references else "",
        plain(line.amount) if line and line.amount is not None else "",
        line.number if line else "",
        finding.note or "",
    )


def show_runs(accounts: set[str] | None, *, as_json: bool) -> None:
    """Prints the runs of the last month, of these accounts or of all; exit code 1 when one found differences."""

    runs = run(lambda ctx: recent_runs(ctx.db, ctx.clock.now()))
    account_runs = [run for run in runs if accounts is None or run.provider_account in accounts]
    if as_json:
        print_json({"runs": [_described(run) for run in account_runs]})
    elif account_runs:
        columns = ("Day", "Account", "State", "Lines", "Matched", "Differences", "Compared at", "Problem")
        print_table(columns, [_row(run) for run in account_runs])
    else:
        console.print(f"No comparison in the last {SHOWN_DAYS} days: only accounts with a history are compared daily.")
    if any(run.differences for run in account_runs):
        raise typer.Exit(1)


def state(run: Run) -> str:
    """`compared`, `different`, `unreadable` (the latest attempt failed) or `waiting` (its day has not ended yet)."""
    if run.error is not None:
        return "unreadable"
    if run.finished_at is None:
        return "waiting"
    return "different" if run.differences else "compared"


def _row(run: Run) -> tuple[object, ...]:
    counts = (run.lines, run.matched, run.differences) if run.finished_at else ("", "", "")
    return (iso(run.day)[:10], run.provider_account, state(run), *counts, iso_or_none(run.finished_at), run.error)


def _described(run: Run) -> dict[str, object]:
    names = "day provider_account state attempts started_at finished_at due_at lines matched differences found"
    differences = [with_note(difference) for difference in run.details]
    day = iso(run.day)[:10]
    return {
        **described(run, names.split(), day=day, state=state(run), found=differences),
        **with_sentence("error", run.error),
    }


app = typer.Typer()


@app.command(epilog="Example: `guichet reconcile feexpay november.csv --csv differences.csv`")
def reconcile(
    provider: Annotated[
        str | None, typer.Argument(metavar="PROVIDER", help="A provider, or the name of one account.")
    ] = None,
    statement: Annotated[
        Path | None, typer.Argument(metavar="STATEMENT.csv", exists=True, dir_okay=False, help="The provider's export.")
    ] = None,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Ask the provider's API for its history instead of a file.")
    ] = False,
    runs: Annotated[bool, typer.Option("--runs", help="List the daily comparisons of the last month.")] = False,
    since: Since = None,
    until: Until = None,
    only: Annotated[str | None, typer.Option(metavar="payment|refund", help="The statement lists only these.")] = None,
    column: Annotated[
        list[str] | None, typer.Option(metavar="FIELD=NAME", help=f"Which column is which: {', '.join(FIELDS)}.")
    ] = None,
    word: Annotated[
        list[str] | None, typer.Option(metavar="WORD=MEANING", help=f"What a word means: {', '.join(MEANINGS)}.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--csv", metavar="OUT", help="Write every line to this file, also those that match.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare a provider's statement with our payments and refunds through its accounts.

    Exit code 1 when something differs, 2 when the statement cannot be read. Without dates the period is that of the
    statement. With `--runs`: what the worker found by itself, each day, for the accounts whose history can be fetched.
    """
    if runs:
        show_runs(None if provider is None else _names(provider), as_json=as_json)
        return
    if provider is None:
        raise typer.BadParameter("a provider is expected, or --runs.")
    if (statement is None) != fetch:
        raise typer.BadParameter("either a file or --fetch is expected.")
    if only is not None and only not in SUBJECT_TYPES:
        raise typer.BadParameter("--only payment or --only refund is expected.")
    providers = load_providers(load_settings(), code=2)
    accounts = _accounts_of(providers, provider)
    statement_format = StatementFormat(providers.accounts[accounts[0]].provider, _pairs(column, FIELDS), _words(word))
    file_content = None if statement is None else _read(statement, statement_format)

    async def work(ctx: AppContext) -> Comparison:
        content = file_content or await _fetch(ctx, accounts, since, until)
        start, end = since or content.since, until or content.until
        comparison = Comparison(Counter(), [], content.ignored, start, end)
        kinds = [kind for kind in SUBJECT_TYPES if only in (None, kind)]
        with csv_report(out) as report, error_console.status("Comparing…") as status:
            progress = lambda text: status.update(f"Comparing… {text}")  # noqa: E731
            async for finding in compare(ctx.db, content.lines, accounts, start, end, kinds, progress):
                comparison.add(finding)
                report(finding)
        return comparison

    comparison = run(work, message=None, providers=providers)
    show(comparison, as_json=as_json)
    if comparison.differences:
        raise typer.Exit(1)


def _names(name: str) -> set[str]:
    """The account of that name, which may have left the providers' file, and the accounts with a provider of it."""
    accounts = load_providers(load_settings(), code=2).accounts
    return {name, *(account for account, settings in accounts.items() if settings.provider == name)}


def _accounts_of(providers: ProvidersConfig, name: str) -> list[str]:
    """The accounts with a provider of that name, or the account of that name."""
    accounts = providers.accounts_of(name)
    if not accounts:
        names = sorted({account.provider for account in providers.accounts.values()} | set(providers.accounts))
        raise typer.BadParameter(f"there is no account with the provider {name}: {', '.join(names) or 'none'} exist.")
    return accounts


def _pairs(options: Sequence[str] | None, allowed: Sequence[str] | None) -> dict[str, str]:
    pairs = {}
    for option in options or ():
        key, equals, value = option.rpartition("=")
        if not equals or not key or not value or (allowed is not None and key not in allowed):
            raise typer.BadParameter(f"{option} is not of the form {'FIELD=NAME' if allowed else 'WORD=MEANING'}.")
        pairs[key] = value
    return pairs


def _words(options: Sequence[str] | None) -> dict[str, str]:
    words = {word.lower(): meaning for word, meaning in _pairs(options, None).items()}
    if unknown := next((meaning for meaning in words.values() if meaning not in MEANINGS), None):
        raise typer.BadParameter(f"{unknown} is not a meaning: one of {', '.join(MEANINGS)} is expected.")
    return words


def _read(path: Path, statement_format: StatementFormat) -> ProviderStatement:
    try:
        return asyncio.run(read_statement(path.read_bytes(), statement_format))
    except UnreadableStatement as error:
        fail(f"{path.name}, line {error.line}: {sentence_of(error)}", code=2)


async def _fetch(
    ctx: AppContext, accounts: Sequence[str], since: Instant | None, until: Instant | None
) -> ProviderStatement:
    if since is None:
        fail("--fetch needs --from: a provider lists a period.", code=2)
    try:
        return await fetched_statement(ctx, accounts, since, until)
    except NoHistory as error:
        fail(f"{error.provider_account} has no history to fetch: use a file that it exports.", code=2)
    except UnreadableHistory as error:
        fail(f"The history of {error.provider_account} cannot be read: {error.raw}.", code=2)
