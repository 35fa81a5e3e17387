"""What the commands about providers share: the providers' file, the accounts it is about, and a registry."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import typer

from guichet.bootstrap import USER_AGENT, live_providers
from guichet.cli.console import fail
from guichet.clock import SystemClock
from guichet.http_client import HttpClient
from guichet.providers.providers_file import ProvidersConfig
from guichet.providers.registry import Registry
from guichet.settings import Settings, SettingsError


def load_providers(settings: Settings) -> ProvidersConfig:
    """The providers' file, or what stands in for it; a wrong one ends the command with one sentence."""
    try:
        return live_providers(settings)
    except SettingsError as error:
        fail(str(error))


def chosen_accounts(providers: ProvidersConfig, names: Sequence[str] | None) -> list[str]:
    """The accounts of these names, or all. A name that is none is a misuse of the command."""
    for name in names or ():
        if name not in providers.accounts:
            known = ", ".join(providers.accounts) or "none"
            raise typer.BadParameter(f"there is no account {name}: {known} exist.")
    return list(names or providers.accounts)


def _registry(providers: ProvidersConfig, http_client: HttpClient) -> Registry:
    """An account whose settings cannot work ends the command with one sentence."""
    try:
        return providers.registry(SystemClock(), http_client)
    except SettingsError as error:
        fail(str(error))


@asynccontextmanager
async def open_registry(settings: Settings, providers: ProvidersConfig) -> AsyncIterator[Registry]:
    """The accounts, ready to be called, without a database."""
    http_client = HttpClient(ca_file=settings.egress_ca_file, loopback=settings.development, user_agent=USER_AGENT)
    try:
        yield _registry(providers, http_client)
    finally:
        await http_client.aclose()
