"""A live environment with two scripted providers: `mtn` goes to the first and fails over to the second."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from guichet.db.engine import require
from guichet.domain.money import Currency
from guichet.domain.payments import Payment
from guichet.domain.posting_rules import ACTIVE, WalletStatus
from guichet.ledger import wallets
from guichet.payments import repository as payments
from guichet.settings import Settings
from tests.fakes.scripted_provider import ScriptedProvider
from tests.invariants import check_books
from tests.service_fixture import MerchantClient, ServiceFixture, open_service


@dataclass
class LivePayments:
    service: ServiceFixture
    merchant: MerchantClient
    first: ScriptedProvider
    second: ScriptedProvider

    @property
    def ctx(self) -> Any:
        return self.service.ctx

    async def balance(self, currency: str = "XOF") -> Any:
        return (await self.merchant.get(f"/balance?currency={currency}")).data["balance"]

    async def state(self, reference: str) -> str:
        """The stored status; no provider is polled."""
        listed = (await self.merchant.get("/payments?per_page=100")).data
        return next(str(each["status"]) for each in listed if each["reference"] == reference)

    async def set_wallet(self, status: WalletStatus = ACTIVE, currency: Currency = "XOF") -> None:
        async with self.ctx.db.transaction() as tx:
            await wallets.set_wallet_status(tx, self.merchant.id, "live", currency, status, self.ctx.clock.now())

    async def queued_events(self) -> list[str]:
        """Events in the order in which they were queued."""
        listed = (await self.merchant.get("/webhooks/deliveries?per_page=100")).data
        return [each["event"] for each in reversed(listed)]


async def stored(live: LivePayments, payment: Any) -> Payment:
    """The row of a payment that was answered as `payment`."""
    return require(await payments.by_reference(live.ctx.db, live.merchant.id, "live", payment["reference"]))


async def live_payments(settings: Settings, first: ScriptedProvider | None = None) -> AsyncIterator[LivePayments]:
    first, second = first or ScriptedProvider(), ScriptedProvider()
    connections = {"first": first, "second": second}
    routes = {"mtn": ["first", "second"], "moov": ["second"]}
    async with open_service(settings, accounts=connections, routes=routes) as service:
        merchant = (await service.merchant()).live
        # No server listens there: only the queued deliveries matter here.
        for env in ("live", "test"):
            await replace(merchant, env=env).put("/webhooks/endpoint", {"url": "https://localhost:9/hook"})
        yield LivePayments(service, merchant, first, second)
        await check_books(service.ctx.db, events_queued=True)


@pytest.fixture
async def live(settings: Settings) -> AsyncIterator[LivePayments]:
    """The books are checked when the test has ended."""
    async for each in live_payments(settings):
        yield each


@pytest.fixture
async def sqlite_live(sqlite_settings: Settings) -> AsyncIterator[LivePayments]:
    async for each in live_payments(sqlite_settings):
        yield each
