"""`guichet reconcile`: compares a provider's statement with our ledger, and lists the daily comparisons."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from guichet.bootstrap import Service, live_providers
from guichet.cli.arguments import Json, Since, Until
from guichet.cli.console import error_console
from guichet.cli.errors import fail
from guichet.cli.reconcile_report import Comparison, CsvReport, show
from guichet.cli.reconcile_runs import show_runs
from guichet.cli.runner import load_settings, run
from guichet.cli.statement_faults import sentence_of
from guichet.clock import DAY, Instant, later
from guichet.domain.payments import SUBJECT_TYPES
from guichet.ledger.provider_statement import (
    FIELDS,
    MEANINGS,
    ProviderStatement,
    StatementFormat,
    UnreadableStatement,
    read_statement,
)
from guichet.ledger.reconciliation import reconcile as compare
from guichet.providers.account_history import NoHistory, UnreadableHistory, histories_of
from guichet.providers.providers_file import ProvidersConfig
from guichet.settings import SettingsError


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: `guichet reconcile feexpay november.csv --csv differences.csv`")(reconcile)


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
    providers = _load_providers()
    accounts = _accounts_of(providers, provider)
    written = StatementFormat(providers.accounts[accounts[0]].provider, _pairs(column, FIELDS), _words(word))
    given = None if statement is None else _read(statement, written)

    async def work(opened: Service) -> Comparison:
        found = given or await _fetch(opened, accounts, since, until)
        start, end = since or found.since, until or found.until
        comparison = Comparison(Counter(), [], found.ignored, start, end)
        kinds = [kind for kind in SUBJECT_TYPES if only in (None, kind)]
        with CsvReport(out) as report, error_console.status("Comparing…") as status:
            progress = lambda text: status.update(f"Comparing… {text}")  # noqa: E731
            async for finding in compare(opened.ctx.db, found.lines, accounts, start, end, kinds, progress):
                comparison.add(finding)
                report.write(finding)
        return comparison

    comparison = run(work, message=None, providers=providers)
    show(comparison, as_json=as_json)
    if comparison.differences:
        raise typer.Exit(1)


def _load_providers() -> ProvidersConfig:
    try:
        return live_providers(load_settings())
    except SettingsError as error:
        fail(str(error), code=2)


def _names(name: str) -> set[str]:
    """The account of that name, which may have left the providers' file, and the accounts with a provider of it."""
    accounts = _load_providers().accounts
    return {name, *(account for account, each in accounts.items() if each.provider == name)}


def _accounts_of(providers: ProvidersConfig, name: str) -> list[str]:
    """The accounts with a provider of that name, or the account of that name."""
    accounts = providers.accounts_of(name)
    if not accounts:
        known = sorted({each.provider for each in providers.accounts.values()} | set(providers.accounts))
        raise typer.BadParameter(f"there is no account with the provider {name}: {', '.join(known) or 'none'} exist.")
    return accounts


def _pairs(given: Sequence[str] | None, allowed: Sequence[str] | None) -> dict[str, str]:
    pairs = {}
    for each in given or ():
        key, equals, value = each.rpartition("=")
        if not equals or not key or not value or (allowed is not None and key not in allowed):
            raise typer.BadParameter(f"{each} is not of the form {'FIELD=NAME' if allowed else 'WORD=MEANING'}.")
        pairs[key] = value
    return pairs


def _words(given: Sequence[str] | None) -> dict[str, str]:
    words = {word.lower(): meaning for word, meaning in _pairs(given, None).items()}
    if unknown := next((meaning for meaning in words.values() if meaning not in MEANINGS), None):
        raise typer.BadParameter(f"{unknown} is not a meaning: one of {', '.join(MEANINGS)} is expected.")
    return words


def _read(path: Path, written: StatementFormat) -> ProviderStatement:
    try:
        return asyncio.run(read_statement(path.read_bytes(), written))
    except UnreadableStatement as error:
        fail(f"{path.name}, line {error.line}: {sentence_of(error)}", code=2)


async def _fetch(
    opened: Service, accounts: Sequence[str], since: Instant | None, until: Instant | None
) -> ProviderStatement:
    if since is None:
        fail("--fetch needs --from: a provider lists a period.", code=2)
    ctx = opened.ctx
    now = ctx.clock.now()
    end = min(until or now, later(now, DAY))
    try:
        lines = await histories_of(ctx.registry, accounts, since, end, ctx.settings.callback_url)
    except NoHistory as error:
        fail(f"{error.provider_account} has no history to fetch: use a file that it exports.", code=2)
    except UnreadableHistory as error:
        fail(f"The history of {error.provider_account} cannot be read: {error.raw}.", code=2)
    return ProviderStatement(lines, 0, since, end)
