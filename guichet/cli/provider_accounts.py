"""What the commands about providers share: the providers' file, the accounts it is about, and a registry."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import typer

from guichet.cli.errors import fail
from guichet.provider_accounts import live_providers, provider_registry
from guichet.providers.providers_file import ProvidersConfig
from guichet.providers.registry import Registry
from guichet.settings import Settings, SettingsError


def load_providers(settings: Settings, code: int = 1) -> ProvidersConfig:
    """The providers' file, or what stands in for it; a wrong one ends the command with one sentence."""
    try:
        return live_providers(settings)
    except SettingsError as error:
        fail(error, code)


def chosen_accounts(providers: ProvidersConfig, names: Sequence[str] | None) -> list[str]:
    """The accounts of these names, or all. An unknown name is a misuse of the command."""
    for name in names or ():
        if name not in providers.accounts:
            known = ", ".join(providers.accounts) or "none"
            raise typer.BadParameter(f"there is no account {name}: {known} exist.")
    return list(names or providers.accounts)


@asynccontextmanager
async def open_registry(settings: Settings, providers: ProvidersConfig) -> AsyncIterator[Registry]:
    """The accounts, ready to be called, without a database; one whose settings cannot work ends the command with one
    sentence."""
    try:
        async with provider_registry(settings, providers) as registry:
            yield registry
    except SettingsError as error:
        fail(str(error))
