"""`guichet providers`: the accounts with providers and the routes. `check` asks whether the accounts answer."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Annotated, Final, TypeVar

import typer
from rich.table import Table

from guichet.cli.approvals import ask_for_approval
from guichet.cli.arguments import EXAMPLE_REFERENCE, By, Evidence, Json, Reference
from guichet.cli.console import console, error_console, print_json, print_table, show_rows, with_sentence
from guichet.cli.provider_accounts import chosen_accounts, load_providers, open_registry
from guichet.cli.provider_setup import setup
from guichet.cli.provider_try import try_account
from guichet.cli.runner import load_settings
from guichet.domain.approvals import ActRequest
from guichet.domain.money import plain
from guichet.domain.records import described
from guichet.printable import printable
from guichet.providers.account_review import BalanceLine, balance_lines, findings_of, probe_accounts
from guichet.providers.providers_file import ProvidersConfig
from guichet.providers.registry import Registry
from guichet.providers.shared.account_checks import Finding, FindingState
from guichet.settings import Settings

T = TypeVar("T")

app = typer.Typer(help="The accounts with providers, and the routes.", no_args_is_help=True)

_Accounts = Annotated[list[str] | None, typer.Argument(metavar="[ACCOUNT]…", help="Names of accounts; all by default.")]
_BALANCE: Final = {
    "provider_account": "Account",
    "wallet": "Wallet",
    "balance": "Balance",
    "currency": "Currency",
    "alert_below": "Alert below",
}
_MARKS: Final[dict[FindingState, str]] = {"ok": "✓", "wrong": "✗", "unchecked": "–"}
_STYLES: Final[dict[FindingState, str]] = {"ok": "green", "wrong": "red", "unchecked": "dim"}


@app.command(epilog="Example: `guichet providers check --deep`")
def check(
    account: _Accounts = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Everything that can be known: signatures, scopes, limits, callbacks.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Send each provider account a harmless request, and show the routes of each operator.

    With --deep, a table for each account: ✓ right, ✗ wrong, – not known or for a person to look up. No call moves
    money. Exit code 1 when an account does not answer as it should, or something is ✗.
    """
    settings = load_settings()
    providers = load_providers(settings)
    names = chosen_accounts(providers, account)
    if deep:
        _deep_check(settings, providers, names, as_json=as_json)
        return
    results = _ask(settings, providers, lambda registry: probe_accounts(registry, names))
    routes = {operator: list(accounts) for operator, accounts in providers.routes.items()}
    accounts = [
        {"provider_account": name, "provider": entry.provider, "base_url": entry.base_url, "result": str(results[name])}
        for name in names
        for entry in (providers.accounts[name],)
    ]
    if as_json:
        print_json({"accounts": accounts, "routes": routes})
    else:
        columns = ("Account", "Provider", "Address", "Result")
        print_table(columns, [tuple(row.values()) for row in accounts])
        print_table(("Operator", "Accounts, in order"), [(code, ", ".join(names)) for code, names in routes.items()])
    if any(result != "ok" for result in results.values()):
        raise typer.Exit(1)


def _deep_check(settings: Settings, providers: ProvidersConfig, names: list[str], *, as_json: bool) -> None:
    """Prints the findings about these accounts; exit code 1 when something is wrong."""
    findings = _ask(settings, providers, lambda registry: findings_of(registry, providers, names, settings.public_url))
    if as_json:
        print_json({"accounts": {name: [_described(row) for row in rows] for name, rows in findings.items()}})
    else:
        for name, rows in findings.items():
            _show(name, providers, rows)
    if any(finding.state == "wrong" for rows in findings.values() for finding in rows):
        raise typer.Exit(1)


def _described(finding: Finding) -> dict[str, object]:
    return {"subject": str(finding.subject), "state": finding.state, **with_sentence("sentence", finding.message)}


def _show(name: str, providers: ProvidersConfig, findings: list[Finding]) -> None:
    account = providers.accounts[name]
    count = Counter(finding.state for finding in findings)
    title = f"{name}: {account.provider} at {account.base_url} ({count['wrong']} wrong)"
    table = Table("", "What", "Finding", title=title, title_justify="left", header_style="bold")
    for row in findings:
        table.add_row(
            _MARKS[row.state], printable(str(row.subject)), printable(str(row.message)), style=_STYLES[row.state]
        )
    console.print(table)


@app.command(epilog="Example: `guichet providers balances --json`")
def balances(account: _Accounts = None, as_json: Json = False) -> None:
    """Ask every provider for our balances with it, from which refunds are paid.

    Exit code 1 when a balance cannot be read, or is below `float_alert_below` of the providers' file.
    """
    settings = load_settings()
    providers = load_providers(settings)
    names = chosen_accounts(providers, account)
    lines = _ask(settings, providers, lambda registry: balance_lines(registry, providers, names))
    rows = [_row(line) for line in lines]
    show_rows("balances", rows, {**_BALANCE, "problem": "Problem"}, as_json=as_json)
    if any(row["problem"] for row in rows):
        raise typer.Exit(1)


def _row(line: BalanceLine) -> dict[str, object]:
    """Amounts are texts in main units."""
    balance, least = (None if amount is None else plain(amount) for amount in (line.balance, line.alert_below))
    return {**described(line, _BALANCE, balance=balance, alert_below=least), **with_sentence("problem", line.problem)}


def _ask(settings: Settings, providers: ProvidersConfig, question: Callable[[Registry], Awaitable[T]]) -> T:
    async def main() -> T:
        async with open_registry(settings, providers) as registry:
            return await question(registry)

    with error_console.status("Calling the providers…"):
        return asyncio.run(main())


@app.command(
    "confirm-account",
    epilog=f'Example: `guichet providers confirm-account {EXAMPLE_REFERENCE} --evidence "renewed key" --by Awa`',
)
def confirm_account(reference: Reference, evidence: Evidence, by: By, as_json: Json = False) -> None:
    """Say that an account whose key was changed is still the one that this payment or refund was sent to (incident
    `account_changed`). Another person approves it in the console; then all that was sent there under the earlier key
    is followed again.
    """
    ask_for_approval(ActRequest("account.confirm", reference, {}, evidence), by, as_json=as_json)


app.command("try", epilog="Example: `guichet providers try mtn_benin --phone 2290197000000 --amount 100`")(try_account)
app.add_typer(setup, name="setup")
