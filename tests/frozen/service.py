"""A whole service for the frozen files and the call traces: the real application, the simulator of the providers' APIs
and a merchant's webhook receiver, each on a real port, under a clock that stands still until it is turned.

Everything that these tests need of the project's code is imported here and nowhere else beside it: where something is
renamed, one line of this file follows. What they observe goes through HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import aiohttp
import asyncpg
from yarl import URL

import guichet
from guichet.api.endpoint_table import ENDPOINTS
from guichet.api.openapi import curl
from guichet.api.recorded_examples import FILE as EXAMPLES_FILE
from guichet.application import application
from guichet.back_office.merchants import create_merchant
from guichet.bootstrap import service
from guichet.clock import Instant, later
from guichet.db import migrate
from guichet.domain.ids import MerchantId
from guichet.domain.key_access import KEY_SCOPES, KeyAccess, KeyScope, scope_bits
from guichet.domain.merchants import MerchantStatus
from guichet.logs import configure_logs
from guichet.merchants import api_keys
from guichet.merchants.api_keys import new_key
from guichet.provider_accounts import live_providers
from guichet.schemas.object_fields import (
    DELIVERY_ID,
    LINK_URL,
    PAYMENT_REFERENCE,
    REFUND_REFERENCE,
    SESSION_ID,
    WEBHOOK_URL,
)
from guichet.settings import Settings, load
from guichet.simulated_providers import simulator
from guichet.webhooks.sender import sign, verify
from guichet.worker.worker import Worker
from tests.cli.shell import printed_by_each
from tests.fakes.clock import TurningClock
from tests.fakes.http_server import ScriptedServer
from tests.ports import free_port
from tests.service_fixture import serving
from tests.sqlite_file import open_sqlite

__all__ = [
    "COMMAND",
    "DELIVERING",
    "DELIVERY_ID",
    "ENDPOINTS",
    "EXAMPLES_FILE",
    "FOLLOWING_UP",
    "LINK_URL",
    "MTN_CALLBACK",
    "PACKAGE",
    "PAYMENT_REFERENCE",
    "POLLING",
    "REFUNDING",
    "REFUND_REFERENCE",
    "SESSION_ID",
    "SIMULATOR",
    "WEBHOOK_URL",
    "MerchantKeys",
    "RunningService",
    "Settings",
    "curl",
    "printed_by_each",
    "quiet",
    "running_service",
    "sign",
    "sqlite_settings",
    "verify",
]  # fmt: skip

#: Where the project's code lies, and its name for the command line.
PACKAGE: Final = Path(guichet.__file__).parent
SIMULATOR: Final = PACKAGE.parent / "guichet_simulator"
COMMAND: Final = "guichet"
#: 2026-11-20T10:15:30.123456Z, in microseconds.
START: Final = Instant(1_795_169_730_123_456)
SECOND: Final = 1_000_000
PAYMENTS_TABLE: Final = "payments"
#: The loops of the worker that poll providers, follow up callbacks, pay refunds out and send webhooks.
POLLING: Final = "polling"
FOLLOWING_UP: Final = "callbacks"
REFUNDING: Final = "refunds"
DELIVERING: Final = "deliveries"
#: Where the built-in simulator's MTN for Bénin sends its callbacks, with our reference.
MTN_CALLBACK: Final = "/providers/mtn_benin/callback/"


@dataclass(frozen=True)
class Exchanged:
    """One HTTP answer of the service."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class MerchantKeys:
    """A merchant: its id and its secret keys, by environment."""

    id: int
    keys: dict[str, str]


@dataclass
class RunningService:
    url: str
    simulator_url: str
    receiver: ScriptedServer
    clock: TurningClock
    _client: aiohttp.ClientSession
    _core: Any
    _worker: Worker
    _settings: Settings
    _names: list[str] = field(default_factory=list)

    async def merchant(self, status: MerchantStatus = "active") -> MerchantKeys:
        self._names.append(f"Boutique {len(self._names) + 1}")
        merchant, keys = await create_merchant(self._core, self._names[-1], status)
        return MerchantKeys(merchant.id, {str(env): key for env, key in keys.items()})

    async def key_that_ends(self, merchant_client: MerchantKeys, seconds: int) -> str:
        """A new test key of this merchant that expires in so many seconds."""
        key, now = new_key("test"), self.clock.now()
        async with self._core.db.transaction() as tx:
            await api_keys.add(tx, MerchantId(merchant_client.id), "test", key, later(now, seconds * SECOND), now)
        return key

    async def restricted_key(
        self, merchant_client: MerchantKeys, scopes: Sequence[KeyScope] = KEY_SCOPES, networks: str | None = None
    ) -> str:
        """A new live key of this merchant that may only do so much, from these networks only."""
        key, now, access = new_key("live"), self.clock.now(), KeyAccess(scope_bits(scopes), networks)
        async with self._core.db.transaction() as tx:
            await api_keys.add(tx, MerchantId(merchant_client.id), "live", key, None, now, access)
        return key

    async def call(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Exchanged:
        """`path` goes out as it is written."""
        url = URL(self.url + path, encoded=True)
        async with self._client.request(method, url, data=body, headers=headers, allow_redirects=False) as answer:
            return Exchanged(answer.status, answer.headers, await answer.read())

    async def provider_will(self, scenario: str, call: str, provider: str) -> None:
        """Scripts the simulator: how the provider meets the next call, "debit" or "credit"."""
        wanted = {"family": provider, "scenario": scenario, "call": call}
        async with self._client.post(f"{self.simulator_url}/simulator/control/next", json=wanted) as answer:
            assert answer.status == 201, await answer.text()

    async def bank_says(self, status: str) -> None:
        """The bank contests the latest card payment, or decides: in the provider's words."""
        control = f"{self.simulator_url}/simulator/control/transactions"
        async with self._client.get(control, params={"family": "stripe", "kind": "debit"}) as answer:
            latest = (await answer.json())["transactions"][0]["id"]
        async with self._client.post(f"{control}/{latest}/dispute", json={"status": status}) as answer:
            assert answer.status == 200, await answer.text()

    async def work(self) -> None:
        """The worker does everything that is due."""
        await self._worker.run_until_idle()

    async def turn(self, name: str) -> None:
        """One loop of the worker looks once, and finishes what it found."""
        (loop,) = [loop for loop in self._worker.loops if loop.name == name]
        await loop.step()
        await loop.idle()

    async def damage(self) -> None:
        """Takes the table of payments away behind the service's back."""
        statement = f"ALTER TABLE {PAYMENTS_TABLE} RENAME TO mislaid"
        if self._settings.embedded:
            with closing(open_sqlite(self._settings.sqlite_path)) as file:
                file.execute(statement)
            return
        connection = await asyncpg.connect(self._settings.database_url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


@asynccontextmanager
async def running_service(settings: Settings, rate_limit: int = 0) -> AsyncIterator[RunningService]:
    """On a database that has its schema already; the contract's other limits are in force."""
    port, simulator_port = free_port(), free_port()
    simulator_url = f"http://127.0.0.1:{simulator_port}"
    settings = replace(settings, public_url=f"http://127.0.0.1:{port}", rate_limit=rate_limit)
    clock = TurningClock(START)
    operators = live_providers(replace(settings, public_url=simulator_url))
    simulated = simulator(settings, clock, operators, f"{simulator_url}/simulator")
    assert simulated is not None
    async with (
        service(settings, clock, providers=operators) as opened,
        simulated.router.lifespan_context(simulated),
        serving(simulated, simulator_port),
        serving(application(opened, None), port) as url,
        ScriptedServer(host="127.0.0.1") as receiver,
        aiohttp.ClientSession() as client,
    ):
        yield RunningService(url, simulator_url, receiver, clock, client, opened.ctx, opened.worker(), settings)


def quiet() -> None:
    """Nothing is logged by this process but what is worse than an error."""
    configure_logs("critical", machine_readable=True)


async def sqlite_settings(folder: Path) -> Settings:
    """Settings of a new SQLite database in `folder`, with its schema."""
    from cryptography.fernet import Fernet

    environ = {
        "GUICHET_HOME": str(folder),
        "GUICHET_SECRET_KEYS": Fernet.generate_key().decode(),
        "GUICHET_DATABASE_URL": f"sqlite:///{folder / 'guichet.db'}",
        "GUICHET_RATE_LIMIT": "0",
        "GUICHET_PAGE_RATE_LIMIT": "0",
    }
    settings = load(environ)
    await migrate.upgrade(settings)
    return settings
