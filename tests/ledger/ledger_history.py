"""A history of payments and refunds with every final state, and raw SQL on the tables."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import Any

import asyncpg

from guichet.clock import DAY, SystemClock, earlier, whole_second
from guichet.domain.catalogue import quote
from guichet.domain.money import Hundredths, round_to_currency
from guichet.domain.posting_rules import WalletStatus
from guichet.ledger import wallets
from guichet.merchants.catalogue_file import load_catalogue
from guichet.providers.base import Accepted, Charge, RefundRequest, Refused, StatusResult
from guichet.settings import Settings
from tests.fakes.clock import ManualClock
from tests.fakes.scripted_provider import ScriptedProvider, done
from tests.service_fixture import MerchantClient, ServiceFixture, open_service
from tests.sqlite_file import open_sqlite


def _settled(charge: Charge) -> StatusResult:
    """The last digit of the customer's number decides, as in the sandbox."""
    match (charge.payment.phone_number or "")[-1]:
        case "2":
            return Accepted()
        case "3":
            return Refused("insufficient_funds")
        case _:
            return done(charge)


def _returned(request: RefundRequest) -> StatusResult:
    """The amount refunded decides: one franc more or less than a round one."""
    match request.amount // 100 % 10:
        case 2:
            return Accepted()
        case 3:
            return Refused("payer_not_found")
        case _:
            return done(request)


def operator() -> ScriptedProvider:
    made = ScriptedProvider()
    made.script("status", _settled)
    made.script("refund", _returned)
    made.script("refund_status", _returned)
    return made


@asynccontextmanager
async def yesterday(settings: Settings, **connections: Any) -> AsyncIterator[ServiceFixture]:
    """A service whose clock is a day behind, so that a command of today finds everything old enough."""
    clock = ManualClock(whole_second(earlier(SystemClock().now(), DAY)))
    wired = connections or {"accounts": {"op": operator()}, "routes": {"mtn": ["op"], "moov": ["op"]}}
    async with open_service(settings, clock, **wired) as service:
        yield service


@dataclass
class LedgerHistory:
    """`paid` is live and succeeded; `refunded`, `returning` and `given_back` are live payments with a refund that
    succeeded, is pending, was refused; `waiting` is in suspense."""

    merchant: MerchantClient
    other: MerchantClient
    paid: Any
    refunded: Any
    returning: Any
    given_back: Any
    waiting: Any


async def live(service: ServiceFixture) -> LedgerHistory:
    """Both environments, two merchants, two currencies, a freeze that ended and one that has not."""
    merchant, other = await service.merchant("Shop"), await service.merchant("Other")
    await merchant.pay("0003")
    tried = await merchant.pay("0000", amount=700)
    await service.run_worker()
    await merchant.post(f"/payments/{tried['reference']}/refund")
    paid = await merchant.live.pay("0000", external_id="=order 1", amount=5001)
    refunded = await merchant.live.pay("0000", external_id="order-2", amount=5000)
    returning = await merchant.live.pay("0000", amount=_total(2))
    given_back = await merchant.live.pay("0000", amount=_total(3))
    await merchant.live.pay("0002")
    await merchant.live.pay("0003")
    await merchant.live.pay("0000", currency="EUR", amount=12.34, operator="moov")
    await service.run_worker(20)
    for each in (refunded, returning, given_back):
        answer = await merchant.live.post(f"/payments/{each['reference']}/refund")
        assert answer.status == 201, answer.raw
    await service.run_worker(20)
    await _freeze_and_thaw(service, merchant)
    waiting = await other.live.pay("0000", amount=9000)
    await other.live.pay("0000", amount=9100)
    await _status(service, other, "Gelé")
    await service.run_worker(20)
    return LedgerHistory(merchant, other, paid, refunded, returning, given_back, waiting)


def _total(digit: int) -> int:
    """An amount whose debited total, rounded, ends in this digit."""
    mode = next(mode for mode in load_catalogue(None).modes if mode.operator == "mtn")
    return next(
        amount
        for amount in range(6000, 6100)
        if round_to_currency(quote(mode, Hundredths(amount * 100)).total_amount, "XOF") // 100 % 10 == digit
    )


async def _freeze_and_thaw(service: ServiceFixture, merchant: MerchantClient) -> None:
    await merchant.live.pay("0000", external_id="frozen", amount=8000)
    await _status(service, merchant, "Gelé")
    await service.run_worker(20)
    await _status(service, merchant, "Actif")
    await service.run_worker(20)


async def _status(service: ServiceFixture, account: MerchantClient, status: WalletStatus) -> None:
    async with service.ctx.db.transaction() as tx:
        await wallets.set_wallet_status(tx, account.id, "live", "XOF", status, service.clock.now())


class RawSql:
    """Raw SQL on a database of either kind."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def run(self, statement: str) -> list[tuple[Any, ...]]:
        if self._settings.embedded:
            with closing(open_sqlite(self._settings.sqlite_path)) as connection:
                return connection.execute(statement).fetchall()
        server = await asyncpg.connect(self._settings.database_url)
        try:
            # Foreign keys look away, as they do for whoever owns the database.
            await server.execute("SET session_replication_role = replica")
            return [tuple(row) for row in await server.fetch(statement)]
        finally:
            await server.close()

    async def keep(self, table: str) -> None:
        await self.run(f"CREATE TABLE kept_{table} AS SELECT * FROM {table}")

    async def restore(self, table: str) -> None:
        await self.run(f"DELETE FROM {table}")
        await self.run(f"INSERT INTO {table} SELECT * FROM kept_{table}")
