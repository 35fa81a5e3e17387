"""`guichet providers setup sonatel-callback`: registers our callback address with Sonatel."""

from typing import Annotated

import typer

from guichet.cli.arguments import Json
from guichet.cli.console import print_json
from guichet.cli.errors import CommandError
from guichet.cli.provider_accounts import load_providers, open_registry
from guichet.cli.provider_setup import Yes, confirm, step
from guichet.cli.runner import load_settings, run_async
from guichet.providers.providers_file import ProvidersConfig
from guichet.providers.shared.account_checks import AccountSetup
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.sonatel.checks import callback_url
from guichet.providers.sonatel.provider import Sonatel
from guichet.settings import Settings


def sonatel_callback(
    account: Annotated[
        str | None, typer.Option(metavar="NAME", help="The account; needed only if there are several of Sonatel.")
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Register the address of our callbacks for the merchant code of a Sonatel account.

    The `webhook_secret` of the account goes with it. Nothing is sent when that address is registered already.
    """
    settings = load_settings()
    providers = load_providers(settings)
    name = _sonatel_account(providers, account)
    setup = AccountSetup(providers.accounts[name], (), settings.public_url)
    address = setup.callback_addresses[0]
    if not setup.account.settings.get("webhook_secret"):
        raise typer.BadParameter(f"{name} has no webhook_secret: choose one, such as `openssl rand -hex 32` makes.")
    code = setup.account.settings["merchant_code"]
    confirm(f"Register {address} with Sonatel for the merchant code {code}?", yes=yes)
    registered = run_async(_register(settings, providers, name, address))
    if as_json:
        print_json({"provider_account": name, "callback_url": address, "registered_now": registered})
    else:
        step(f"{name}: {address} {'is registered now' if registered else 'was registered already'}.")


def _sonatel_account(providers: ProvidersConfig, name: str | None) -> str:
    found = [each for each, account in providers.accounts.items() if account.provider == "sonatel"]
    if name is None and len(found) == 1:
        return found[0]
    if name is None or name not in found:
        raise typer.BadParameter(f"--account must be one of {', '.join(found) or 'no account of Sonatel'}.")
    return name


async def _register(settings: Settings, providers: ProvidersConfig, name: str, address: str) -> bool:
    """False when the address was registered already."""
    async with open_registry(settings, providers) as registry:
        provider = registry.provider(name)
        assert isinstance(provider, Sonatel)
        before = await provider.registered_callback()
        if isinstance(before, ProviderResponse) and before.ok and callback_url(before) == address:
            return False
        result = await provider.register_callback(address)
        if not isinstance(result, ProviderResponse) or not result.ok:
            raise CommandError(f"Sonatel did not register the address: {result.raw}.")
        return True
