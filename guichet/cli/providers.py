"""`guichet providers`: the accounts with providers and the routes. `check` asks whether the accounts answer."""

import asyncio
from collections import Counter
from typing import Annotated, Final

import typer
from rich.table import Table

from guichet.cli.arguments import Json
from guichet.cli.console import console, described, error_console, print_json, print_table, with_sentence
from guichet.cli.provider_accounts import chosen_accounts, load_providers, open_registry
from guichet.cli.provider_setup import mtn_sandbox, sonatel_callback, wave_merchants
from guichet.cli.provider_try import try_account
from guichet.cli.runner import load_settings
from guichet.domain.messages import Answer
from guichet.domain.money import plain
from guichet.printable import printable
from guichet.providers.account_review import BalanceLine, balance_lines, findings_of, probe_accounts
from guichet.providers.providers_file import ProvidersConfig
from guichet.providers.shared.account_checks import Finding, FindingState
from guichet.settings import Settings

_MARKS: Final[dict[FindingState, str]] = {"ok": "✓", "wrong": "✗", "unchecked": "–"}
_STYLES: Final[dict[FindingState, str]] = {"ok": "green", "wrong": "red", "unchecked": "dim"}


def deep_check(settings: Settings, providers: ProvidersConfig, names: list[str], *, as_json: bool) -> None:
    """Prints the findings about these accounts; exit code 1 when something is wrong."""
    with error_console.status("Calling the providers…"):
        findings = asyncio.run(_find(settings, providers, names))
    if as_json:
        print_json({"accounts": {name: [_described(each) for each in found] for name, found in findings.items()}})
    else:
        for name, found in findings.items():
            _show(name, providers, found)
    if any(each.state == "wrong" for found in findings.values() for each in found):
        raise typer.Exit(1)


async def _find(settings: Settings, providers: ProvidersConfig, names: list[str]) -> dict[str, list[Finding]]:
    async with open_registry(settings, providers) as registry:
        return await findings_of(registry, providers, names, settings.public_url)


def _described(found: Finding) -> dict[str, object]:
    return {"subject": str(found.subject), "state": found.state, **with_sentence("sentence", found.sentence)}


def _show(name: str, providers: ProvidersConfig, found: list[Finding]) -> None:
    account = providers.accounts[name]
    count = Counter(each.state for each in found)
    title = f"{name}: {account.provider} at {account.base_url} ({count['wrong']} wrong)"
    table = Table("", "What", "Finding", title=title, title_justify="left", header_style="bold")
    for each in found:
        table.add_row(
            _MARKS[each.state], printable(str(each.subject)), printable(str(each.sentence)), style=_STYLES[each.state]
        )
    console.print(table)


def balances(
    account: Annotated[
        list[str] | None, typer.Argument(metavar="[ACCOUNT]…", help="Names of accounts; all by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask every provider for our balances with it, from which refunds are paid.

    Exit code 1 when a balance cannot be read, or is below `float_alert_below` of the providers' file.
    """
    settings = load_settings()
    providers = load_providers(settings)
    names = chosen_accounts(providers, account)
    with error_console.status("Calling the providers…"):
        rows = [_row(line) for line in asyncio.run(_ask(settings, providers, names))]
    if as_json:
        print_json({"balances": rows})
    else:
        columns = ("Account", "Wallet", "Balance", "Currency", "Alert below", "Problem")
        print_table(columns, [tuple(row.values())[: len(columns)] for row in rows])
    if any(row["problem"] for row in rows):
        raise typer.Exit(1)


async def _ask(settings: Settings, providers: ProvidersConfig, names: list[str]) -> list[BalanceLine]:
    async with open_registry(settings, providers) as registry:
        return await balance_lines(registry, providers, names)


def _row(line: BalanceLine) -> dict[str, object]:
    """Amounts are texts in main units."""
    names = ("provider_account", "wallet", "balance", "currency", "alert_below")
    balance, least = (None if each is None else plain(each) for each in (line.balance, line.alert_below))
    return {**described(line, names, balance=balance, alert_below=least), **with_sentence("problem", line.problem)}


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="The accounts with providers, and the routes.", no_args_is_help=True)
    group.command("check", epilog="Example: `guichet providers check --deep`")(check)
    group.command("balances", epilog="Example: `guichet providers balances --json`")(balances)
    group.command("try", epilog="Example: `guichet providers try mtn_benin --phone 2290197000000 --amount 100`")(
        try_account
    )
    setup = typer.Typer(help="What must be made once with a provider.", no_args_is_help=True)
    setup.command("wave-merchants", epilog="Example: `guichet providers setup wave-merchants --account wave_senegal`")(
        wave_merchants
    )
    setup.command("mtn-sandbox", epilog="Example: `guichet providers setup mtn-sandbox --product collection`")(
        mtn_sandbox
    )
    setup.command("sonatel-callback", epilog="Example: `guichet providers setup sonatel-callback --yes`")(
        sonatel_callback
    )
    group.add_typer(setup, name="setup")
    app.add_typer(group, name="providers")


def check(
    account: Annotated[
        list[str] | None, typer.Argument(metavar="[ACCOUNT]…", help="Names of accounts; all by default.")
    ] = None,
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
        deep_check(settings, providers, names, as_json=as_json)
        return
    with error_console.status("Calling the providers…"):
        results = asyncio.run(_probe(settings, providers, names))
    routes = {operator: list(accounts) for operator, accounts in providers.routes.items()}
    accounts = [
        {"provider_account": name, "provider": each.provider, "base_url": each.base_url, "result": str(results[name])}
        for name in names
        for each in (providers.accounts[name],)
    ]
    if as_json:
        print_json({"accounts": accounts, "routes": routes})
    else:
        columns = ("Account", "Provider", "Address", "Result")
        print_table(columns, [tuple(row.values()) for row in accounts])
        print_table(("Operator", "Accounts, in order"), [(code, ", ".join(names)) for code, names in routes.items()])
    if any(result != "ok" for result in results.values()):
        raise typer.Exit(1)


async def _probe(settings: Settings, providers: ProvidersConfig, names: list[str]) -> dict[str, Answer]:
    async with open_registry(settings, providers) as registry:
        return await probe_accounts(registry, names)
