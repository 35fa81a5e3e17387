"""The primary stops or changes while a payment or a refund is being written: the request is answered all the same, and
what it asked for happens once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from guichet.bootstrap import database
from guichet.settings import Settings
from tests.contract.shapes import order
from tests.fakes.lossy_database import LossyDatabase
from tests.fakes.manual_provider import ManualProvider
from tests.invariants import check_books
from tests.service_fixture import Answer, MerchantClient, ServiceFixture, open_service

pytestmark = pytest.mark.both_databases

REFUSED = "22997120001"
#: What is asked for, in which environment, and the answer's status.
REQUESTS = {
    "payment": ("live", 201),
    "payment without external_id": ("live", 201),
    "payment that is refused": ("live", 402),
    "payment with a page": ("live", 201),
    "test payment": ("test", 201),
    "refund": ("live", 201),
}


class Lossy:
    """A merchant of a service whose database loses answers. `writes`: how many the last request made."""

    writes: int

    def __init__(self, service: ServiceFixture, db: LossyDatabase, provider: ManualProvider, merchant: MerchantClient):
        self.service, self.db, self.provider, self.merchant = service, db, provider, merchant

    async def prepared(self, what: str) -> tuple[str, dict[str, Any]]:
        """The path and the body of a request that is about to be sent."""
        match what:
            case "payment" | "test payment":
                return "/payments", order(external_id="a")
            case "payment without external_id":
                return "/payments", order()
            case "payment that is refused":
                return "/payments", order(external_id="a", phone_number=REFUSED)
            case "payment with a page":
                return "/payments", order("wave_sn", external_id="a", return_url="https://shop.example/back")
        payment = (await self.merchant.live.post("/payments", order(external_id="a"))).data
        self.provider.approve(payment["reference"])
        await self.service.run_worker(30)
        return f"/payments/{payment['reference']}/refund", {}

    async def send(self, what: str, lost: int | None, *, happened: bool) -> Answer:
        client = self.merchant.live if REQUESTS[what][0] == "live" else self.merchant
        path, body = await self.prepared(what)
        self.db.lose_at(lost, happened=happened)
        answer = await client.post(path, body)
        self.writes = self.db.writes
        self.db.lose_at(None)
        return answer


@asynccontextmanager
async def lossy(settings: Settings) -> AsyncIterator[Lossy]:
    db, provider = LossyDatabase(database(settings)), ManualProvider()
    routes = {"mtn": ["manual"], "wave_sn": ["manual"]}
    async with open_service(settings, accounts={"manual": provider}, routes=routes, db=db) as service:
        yield Lossy(service, db, provider, await service.merchant())
        await service.run_worker(60)
        await check_books(service.ctx.db)


@pytest.mark.parametrize("happened", [False, True])
async def test_a_request_outlives_its_connection(settings: Settings, *, happened: bool) -> None:
    """Each request, at each of its writes in turn, each time with a merchant of its own."""
    async with lossy(settings) as run:
        for what in REQUESTS:
            run.merchant = await run.service.merchant()
            await run.send(what, None, happened=False)
            assert run.writes
            for lost in range(run.writes):
                await _lose_one(run, what, lost, happened=happened)


async def _lose_one(run: Lossy, what: str, lost: int, *, happened: bool) -> None:
    env, status = REQUESTS[what]
    run.merchant = await run.service.merchant()
    client = run.merchant.live if env == "live" else run.merchant
    before = len(run.provider.charges)
    answer = await run.send(what, lost, happened=happened)
    assert answer.status == status, (what, lost, answer.raw)
    [payment] = (await client.get("/payments")).data
    assert len(run.provider.charges) - before == (1 if env == "live" else 0), (what, lost)
    if what == "refund":
        [refund] = (await client.get("/refunds")).data
        assert refund["reference"] == answer.data["reference"]
    elif status == 201:
        assert answer.data["reference"] == payment["reference"]
    else:
        assert payment["status"] == "failed"
