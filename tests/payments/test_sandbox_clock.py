"""The test clock: what follows it, and what does not (docs/admin-guide.md, "The test clock")."""

from typing import Any

import pytest
from sqlalchemy import and_, not_, select

from guichet.clock import DAY, SECOND
from guichet.db import tables as t
from guichet.domain.audit_log import Actor, ActRefused
from guichet.providers.base import Accepted
from guichet.sandbox import clock as sandbox_clock
from guichet.settings import Settings
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.scripted_provider import ScriptedProvider
from tests.service_fixture import MerchantClient, ServiceFixture, open_service
from tests.webhooks.receivers import delivery_log, merchant_with_endpoint, receiver, status

AWA = Actor("Awa", "awa")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority.create(tmp_path_factory.mktemp("ca"))


async def _advance(merchant: MerchantClient, seconds: int) -> sandbox_clock.Moved:
    return await sandbox_clock.advance(merchant.service.ctx, merchant.id, seconds, AWA)


async def _statuses(merchant: MerchantClient) -> list[str]:
    """As they are stored, oldest first."""
    return [each["status"] for each in reversed((await merchant.get("/payments?per_page=100")).data)]


async def test_a_pending_payment_gets_its_result(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    payment = await merchant.pay()
    assert await _advance(merchant, 9) == sandbox_clock.Moved(payments=1, refunds=0, deliveries=0)
    await service.run_worker()
    assert await _statuses(merchant) == ["pending"]
    await _advance(merchant, 1)
    await service.run_worker()
    assert await _statuses(merchant) == ["succeeded"]
    read = (await merchant.get(f"/payments/{payment['reference']}")).data
    assert read["created_at"] == payment["created_at"] == read["updated_at"], "dates keep the real time"


async def test_who_reads_it_sees_the_result_without_a_worker(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await merchant.pay(external_id="a")
    await _advance(merchant, 3600)
    assert (await merchant.get("/payments/a")).data["status"] == "succeeded"
    await merchant.pay(external_id="b")
    assert (await merchant.get("/payments/b")).data["status"] == "pending", "what is new is not older"


@pytest.mark.both_databases
async def test_expiries_and_refunds_follow(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await merchant.pay("0000", external_id="a", test_scenario="refund_failed")
    await merchant.get("/payments/a")
    await merchant.post("/payments/a/refund")
    await merchant.pay(test_scenario="expired")
    assert await _advance(merchant, 15 * 60) == sandbox_clock.Moved(payments=1, refunds=1, deliveries=0)
    await service.run_worker()
    assert await _statuses(merchant) == ["succeeded", "failed"]
    assert [each["status"] for each in (await merchant.get("/refunds")).data] == ["failed"]


async def test_what_is_never_due_stays_so(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await merchant.pay("0002")
    await merchant.pay(test_scenario="redirect")
    assert await _advance(merchant, 366 * 86_400) == sandbox_clock.Moved(payments=0, refunds=0, deliveries=0)
    await service.run_worker()
    assert await _statuses(merchant) == ["pending", "pending"]


async def test_retries_of_webhooks_follow(service: ServiceFixture, authority: CertificateAuthority) -> None:
    async with receiver(authority, status(500)) as server:
        merchant, _ = await merchant_with_endpoint(service, server)
        await merchant.pay("0000")
        await service.run_worker()
        for attempts, delay in enumerate((10, 60, 300, 1800), 2):
            assert (await _advance(merchant, delay - 1)).deliveries == 1
            await service.run_worker()
            assert len(server.received) == attempts - 1
            await _advance(merchant, 1)
            await service.run_worker()
            assert len(server.received) == attempts
    assert [each["status"] for each in await delivery_log(merchant)] == ["failed"]


@pytest.mark.both_databases
async def test_live_and_other_merchants_are_not_touched(settings: Settings, authority: CertificateAuthority) -> None:
    silent = ScriptedProvider()
    silent.script("status", Accepted())
    async with (
        receiver(authority, status(500)) as server,
        open_service(settings, accounts={"op": silent}, routes={"mtn": ["op"]}) as service,
    ):
        merchant, other = [(await merchant_with_endpoint(service, server))[0] for _ in range(2)]
        await merchant.live.put("/webhooks/endpoint", {"url": server.url()})
        for each in (merchant, other, merchant.live):
            await each.pay()
            await each.post("/webhooks/test")
            await each.pay(
                "0000", external_id="a", **({} if each.env == "live" else {"test_scenario": "refund_failed"})
            )
            await each.get("/payments/a")
        await other.post("/payments/a/refund")
        await service.run_worker()
        before = await _rows_of_others(service, merchant)
        assert len(before[0]) == 4
        assert len(before[2]) >= 3
        moved = await _advance(merchant, 3600)
        assert (moved.payments, moved.deliveries) == (1, 2)
        assert await _rows_of_others(service, merchant) == before


async def _rows_of_others(service: ServiceFixture, merchant: MerchantClient) -> list[list[Any]]:
    found = []
    for table in (t.payments, t.refunds, t.webhook_deliveries):
        moved = and_(table.c.merchant_id == merchant.id, table.c.env == "test")
        rows = await service.ctx.db.all(select(table).where(not_(moved)).order_by(table.c.id))
        found.append([tuple(row) for row in rows])
    return found


async def test_an_advance_is_recorded_and_added_up(service: ServiceFixture) -> None:
    merchant, other = await service.merchant(), await service.merchant()
    await merchant.pay()
    await _advance(merchant, 5)
    await _advance(merchant, 3600)
    await _advance(other, 7)
    db = service.ctx.db
    assert await sandbox_clock.advanced_by(db, merchant.id) == 3605
    await sandbox_clock.reset(service.ctx.db, service.ctx.clock, merchant.id, AWA)
    assert (await sandbox_clock.advanced_by(db, merchant.id), await sandbox_clock.advanced_by(db, other.id)) == (0, 7)
    await _advance(merchant, 1)
    assert await sandbox_clock.advanced_by(db, merchant.id) == 1


@pytest.mark.parametrize("seconds", [0, -1, 366 * DAY // SECOND + 1])
async def test_an_advance_is_bounded(sqlite_service: ServiceFixture, seconds: int) -> None:
    merchant = await sqlite_service.merchant()
    with pytest.raises(ActRefused, match="366 days"):
        await _advance(merchant, seconds)


async def test_too_many_rows_are_refused_as_a_whole(service: ServiceFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    merchant = await service.merchant()
    for _ in range(3):
        await merchant.pay()
    monkeypatch.setattr(sandbox_clock, "BATCH", 2)
    monkeypatch.setattr(sandbox_clock, "MOST_ROWS", 2)
    with pytest.raises(ActRefused, match="let the worker finish"):
        await _advance(merchant, 3600)
    await service.run_worker()
    assert await _statuses(merchant) == ["pending"] * 3
    monkeypatch.setattr(sandbox_clock, "MOST_ROWS", 3)
    assert (await _advance(merchant, 3600)).payments == 3
    await service.run_worker()
    assert await _statuses(merchant) == ["succeeded"] * 3
