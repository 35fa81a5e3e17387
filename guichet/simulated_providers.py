"""The simulated provider APIs, where the settings allow them: beside a server, and alone."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from guichet.clock import Clock
from guichet.providers.providers_file import ProvidersConfig
from guichet.server.lazy import LazyApplication
from guichet.settings import Settings

if TYPE_CHECKING:
    from starlette.applications import Starlette

#: In the data folder: what the simulated providers know.
SIMULATOR_STATE: Final = "simulator.db"


def simulator(
    settings: Settings,
    clock: Clock,
    providers: ProvidersConfig,
    address: str | None = None,
    at_root: str | None = None,
) -> Starlette | None:
    """The simulated provider APIs; None where this profile must not serve them. Callbacks go to `public_url`.

    `address`: the simulator's own URL when it is served alone. `at_root`: the provider whose paths also stand at the
    root of the host; raises ValueError when there is no such provider.
    """
    return _create_simulator(settings, clock, providers, address, at_root) if _serves_simulator(settings) else None


def _serves_simulator(settings: Settings) -> bool:
    return settings.development or settings.allow_simulator


def _create_simulator(
    settings: Settings,
    clock: Clock,
    providers: ProvidersConfig,
    address: str | None = None,
    at_root: str | None = None,
) -> Starlette:
    from guichet_simulator.app import SECRETS, Dashboard, create_simulator  # noqa: PLC0415 - at its first request

    dashboards = {
        name: Dashboard(callback_url=settings.callback_url(name), secret=SECRETS.get(name))
        for name in {account.provider for account in providers.accounts.values()}
    }
    state = settings.home / SIMULATOR_STATE
    public_url = address or f"{settings.public_url}/simulator"
    return create_simulator(state, public_url=public_url, clock=clock, callbacks=dashboards, at_root=at_root)


def mounted_simulator(settings: Settings, clock: Clock, providers: ProvidersConfig) -> LazyApplication | None:
    """The same, built at its first request and run until it is closed; `start` does so earlier."""
    if not _serves_simulator(settings):
        return None
    return LazyApplication(partial(_create_simulator, settings, clock, providers))
