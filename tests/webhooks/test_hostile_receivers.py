"""Merchants' servers that hang, in any number, and what that does to the webhooks of the others."""

import asyncio
from collections.abc import Callable

import pytest
from sqlalchemy import insert

from guichet.db import tables as t
from guichet.domain.ids import MerchantId
from guichet.settings import Settings
from guichet.webhooks import outbox
from guichet.webhooks.dispatcher import SLOTS
from tests.fakes.http_server import OK, ReceivedRequest, ScriptedServer
from tests.patience import PATIENCE
from tests.service_fixture import ServiceFixture, open_service

#: Well over the slots: each has a backlog, and each server hangs.
MERCHANTS = 150
BACKLOG = 8


class Receiver:
    """Answers `/good` at once. `/slow…` is not answered until `release` is set."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.waiting = 0
        self.good = 0

    async def script(self, writer: asyncio.StreamWriter, request: ReceivedRequest) -> None:
        if "/good" in request.line:
            self.good += 1
        else:
            self.waiting += 1
            await self.release.wait()
            self.waiting -= 1
        writer.write(OK)
        await writer.drain()


async def add_merchants(service: ServiceFixture, count: int) -> list[MerchantId]:
    """Merchants without keys, faster than one by one."""
    first = (await service.merchant()).id
    now = service.clock.now()
    async with service.ctx.db.transaction() as tx:
        for _ in range(count - 1):
            row = {"name": "N", "status": "active", "currency": "XOF", "created_at": now}
            await tx.write(insert(t.merchants).values(row))
        secret = service.ctx.vault.encrypt("whsec_" + "x" * 40)
        for number in range(1, count):
            endpoint = {"merchant_id": first + number, "env": "test", "secret": secret, "updated_at": now}
            await tx.write(insert(t.webhook_endpoints).values(endpoint))
    return [MerchantId(first + number) for number in range(count)]


async def queue(service: ServiceFixture, merchant: MerchantId, url: str, count: int) -> None:
    new = [
        outbox.new_event(merchant, "test", "webhook.test", {"message": "m"}, service.clock.now()) for _ in range(count)
    ]
    async with service.ctx.db.transaction() as tx:
        await outbox.queue_events(tx, new, url)
    service.ctx.wakeups.deliveries.set()


async def until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not met():
            await asyncio.sleep(0.005)


@pytest.mark.both_databases
async def test_hanging_receivers_well_over_the_slots_delay_no_other_merchant(
    settings: Settings,
) -> None:
    """150 merchants with eight webhooks each, all of whose servers hang; then one merchant whose server answers."""
    receiver = Receiver()
    async with (
        open_service(settings) as service,
        ScriptedServer(receiver.script) as server,
    ):
        *hanging, good = await add_merchants(service, MERCHANTS + 1)
        for number, merchant in enumerate(hanging):
            await queue(service, merchant, server.url(f"shop{number}.localhost", "/slow"), BACKLOG)
        service.worker.start()
        await until(lambda: receiver.waiting >= MERCHANTS)
        for number in range(1, 6):
            await queue(service, good, server.url(path="/good"), 1)
            await until(lambda number=number: receiver.good == number)  # type: ignore[misc]
        assert len(service.worker.deliveries.running) < SLOTS
        await service.worker.stop(grace=0)
        receiver.release.set()
