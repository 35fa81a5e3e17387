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


def serves_simulator(settings: Settings) -> bool:
    """Whether this profile may serve them."""
    return settings.development or settings.allow_simulator


def simulator(
    settings: Settings,
    clock: Clock,
    providers: ProvidersConfig,
    address: str | None = None,
    at_root: str | None = None,
) -> Starlette:
    """The simulated provider APIs. Callbacks go to `public_url`.

    `address`: the simulator's own URL when it is served alone. `at_root`: the provider whose paths also stand at the
    root of the host; raises ValueError when there is no such provider.
    """
    from guichet_simulator.app import SECRETS, Dashboard, create_simulator  # noqa: PLC0415 - at its first request

    dashboards = {
        name: Dashboard(callback_url=settings.callback_url(name), secret=SECRETS.get(name))
        for name in {account.provider for account in providers.accounts.values()}
    }
    state = settings.home / SIMULATOR_STATE
    public_url = address or f"{settings.public_url}/simulator"
    return create_simulator(state, public_url=public_url, clock=clock, callbacks=dashboards, at_root=at_root)


def mounted_simulator(settings: Settings, clock: Clock, providers: ProvidersConfig) -> LazyApplication | None:
    """Built at its first request and run until it is closed; `start` does so earlier. None where this profile must not
    serve it."""
    return LazyApplication(partial(simulator, settings, clock, providers)) if serves_simulator(settings) else None
