"""`guichet providers`: the accounts with providers and the routes. `check` asks whether the accounts answer."""

import asyncio
from typing import Annotated

import typer

from guichet.cli.arguments import Json
from guichet.cli.console import error_console, print_json, print_table
from guichet.cli.provider_accounts import chosen_accounts, load_providers, open_registry
from guichet.cli.provider_balances import balances
from guichet.cli.provider_deep_check import deep_check
from guichet.cli.provider_setup_mtn import mtn_sandbox
from guichet.cli.provider_setup_sonatel import sonatel_callback
from guichet.cli.provider_setup_wave import wave_merchants
from guichet.cli.provider_try import try_account
from guichet.cli.runner import load_settings
from guichet.domain.messages import Answer
from guichet.providers.account_review import probe_accounts
from guichet.providers.providers_file import ProvidersConfig
from guichet.settings import Settings


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
