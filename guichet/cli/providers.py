"""`guichet providers check`: whether the accounts of the providers' file answer."""

import asyncio

import typer

from guichet.bootstrap import live_providers
from guichet.cli.arguments import Json
from guichet.cli.console import error_console, fail, print_json, print_table
from guichet.cli.runner import load_settings
from guichet.clock import SystemClock
from guichet.http_client import HttpClient
from guichet.providers.providers_file import ProvidersConfig
from guichet.settings import Settings, SettingsError, with_development_key


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="The accounts with providers, and the routes.", no_args_is_help=True)
    group.command("check", epilog="Example: `guichet providers check`")(check)
    app.add_typer(group, name="providers")


def check(as_json: Json = False) -> None:
    """Send each provider account a harmless request, and show the routes of each operator.

    Exit code 1 when an account does not answer as it should.
    """
    settings = with_development_key(load_settings())
    providers = load_providers(settings)
    with error_console.status("Calling the providers…"):
        results = asyncio.run(_probe(settings, providers))
    routes = {operator: list(accounts) for operator, accounts in providers.routes.items()}
    accounts = [
        {"provider_account": name, "provider": account.provider, "base_url": account.base_url, "result": results[name]}
        for name, account in providers.accounts.items()
    ]
    if as_json:
        print_json({"accounts": accounts, "routes": routes})
    else:
        columns = ("Account", "Provider", "Address", "Result")
        print_table(columns, [tuple(account.values()) for account in accounts])
        print_table(("Operator", "Accounts, in order"), [(code, ", ".join(names)) for code, names in routes.items()])
    if any(result != "ok" for result in results.values()):
        raise typer.Exit(1)


def load_providers(settings: Settings) -> ProvidersConfig:
    """The providers' file, or what stands in for it; a wrong one ends the command with one sentence."""
    try:
        return live_providers(settings)
    except SettingsError as error:
        fail(str(error))


async def _probe(settings: Settings, providers: ProvidersConfig) -> dict[str, str]:
    """`ok` or what is wrong, by account."""
    http_client = HttpClient(ca_file=settings.egress_ca_file, loopback=settings.development)
    try:
        registry = providers.registry(SystemClock(), http_client)
        names = list(providers.accounts)
        results = await asyncio.gather(*(registry.provider(name).probe() for name in names))
        return dict(zip(names, results, strict=True))
    finally:
        await http_client.aclose()
