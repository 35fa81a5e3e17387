"""The accounts with providers that the settings name: read, checked, and refused where the profile does not allow
them."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from typing import Final
from urllib.parse import urlsplit

from guichet import __version__
from guichet.clock import SystemClock
from guichet.http_client import HttpClient
from guichet.merchants.catalogue_file import load_catalogue
from guichet.providers.providers_file import NO_PROVIDERS, ProvidersConfig, first_real_account, read_providers_file
from guichet.providers.registry import Registry
from guichet.settings import Settings, SettingsError

USER_AGENT: Final = f"Guichet/{__version__}"


def live_providers(settings: Settings) -> ProvidersConfig:
    """What the providers' file says. Without a file: the simulator in development, no provider in production."""
    codes = {mode.operator for mode in load_catalogue(settings.catalogue_file).modes}
    if settings.providers_file is not None:
        providers = read_providers_file(settings.providers_file, os.environ, codes)
    elif settings.development:
        with resources.as_file(resources.files("guichet.data") / "simulated_providers.toml") as path:
            providers = read_providers_file(path, os.environ, codes, {"simulator": settings.public_url + "/simulator"})
    else:
        providers = NO_PROVIDERS
    if providers.simulated and not (settings.development or settings.allow_simulator):
        raise SettingsError(
            f"GUICHET_PROVIDERS_FILE leads to the simulator ({providers.simulated[0]}): "
            "the production profile refuses it unless GUICHET_ALLOW_SIMULATOR is yes."
        )
    if not settings.development:
        providers.refuse_sandboxes()
    return providers


async def usable_providers(settings: Settings) -> ProvidersConfig:
    """What `live_providers` returns, once every account could be built, as a server does; none is called."""
    providers = live_providers(settings)
    async with provider_registry(settings, providers):
        return providers


@asynccontextmanager
async def provider_registry(settings: Settings, providers: ProvidersConfig) -> AsyncIterator[Registry]:
    """The accounts, ready to be called, without a database. Raises ProvidersFileError when the settings of one cannot
    work."""
    http_client = HttpClient(ca_file=settings.egress_ca_file, loopback=settings.development, user_agent=USER_AGENT)
    try:
        yield providers.registry(SystemClock(), http_client)
    finally:
        await http_client.aclose()


def refuse_real_providers(settings: Settings) -> None:
    """Raises SettingsError in development when the providers' file has an account with a real provider.

    Somebody forgot GUICHET_PROFILE then: the simulator, the demo merchant and loopback webhooks would be open beside
    real money.
    """
    if not settings.development or settings.providers_file is None:
        return
    real = first_real_account(settings.providers_file, os.environ)
    if real is not None:
        raise SettingsError(
            f"GUICHET_PROFILE is development, but [accounts.{real.name}] of GUICHET_PROVIDERS_FILE leads to a real "
            f"provider ({urlsplit(real.base_url).hostname}): set GUICHET_PROFILE=production, or use its sandbox or the "
            "simulator."
        )
