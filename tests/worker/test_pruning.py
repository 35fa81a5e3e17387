"""Old logs are deleted by age and nothing else is: seen through the API, with the clock advanced by months."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import func, insert, select, update

from guichet.bootstrap import database
from guichet.clock import DAY, HOUR, Instant, earlier, later, to_datetime
from guichet.db import tables as t
from guichet.db.engine import Database
from guichet.db.lists.rollup import roll_up_list_counts
from guichet.incidents import repository as incidents
from guichet.provider_callbacks import unmatched as unmatched_callbacks
from guichet.settings import Settings
from guichet.worker import pruning
from guichet.worker.pruning import KEPT_DAYS
from tests.db.rows import CALLBACK
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.clock import ManualClock
from tests.fakes.http_server import ScriptedServer
from tests.invariants import check_books
from tests.service_fixture import MerchantClient, ServiceFixture, open_service

_DAY_SECONDS = 86_400


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority.create(tmp_path_factory.mktemp("ca"))


@asynccontextmanager
async def merchant_with_webhooks(
    service: ServiceFixture, authority: CertificateAuthority
) -> AsyncIterator[MerchantClient]:
    """A merchant whose webhooks are acknowledged."""
    async with ScriptedServer(tls=authority.server("localhost")) as server:
        merchant = await service.merchant()
        await merchant.put("/webhooks/endpoint", {"url": server.url()})
        yield merchant


async def paid(service: ServiceFixture, merchant: MerchantClient, number: int) -> None:
    for _ in range(number):
        await merchant.pay("0000")
    await service.run_worker()


async def run_housekeeping(service: ServiceFixture) -> None:
    """Runs one step of the housekeeping loop."""
    (loop,) = [loop for loop in service.worker.loops if loop.name == "housekeeping"]
    await loop.step()


async def listed(merchant: MerchantClient) -> tuple[int, int]:
    """Deliveries on the first page, and in all."""
    page = await merchant.get("/webhooks/deliveries?per_page=100")
    return len(page.data), page.body["meta"]["total"]


async def rows(service: ServiceFixture, table: Any) -> int:
    return int((await service.ctx.db.scan(select(func.count()).select_from(table)))[0][0])


@pytest.mark.both_databases
async def test_old_deliveries_are_deleted_and_the_total_stays_exact(
    service: ServiceFixture, authority: CertificateAuthority
) -> None:
    async with (
        merchant_with_webhooks(service, authority) as merchant,
        merchant_with_webhooks(service, authority) as other,
    ):
        await paid(service, merchant, 7)
        await paid(service, other, 2)
        await service.run_worker(80 * _DAY_SECONDS)
        await paid(service, merchant, 3)
        assert (await listed(merchant), await listed(other)) == ((10, 10), (2, 2))
        service.clock.advance(10 * _DAY_SECONDS + 3600)
        await run_housekeeping(service)
        # What was deleted is not counted any more, rolled up or not, on every page.
        assert (await listed(merchant), await listed(other)) == ((3, 3), (0, 0))
        assert (await merchant.get("/webhooks/deliveries?per_page=2&page=2")).body["meta"]["total"] == 3
        while await roll_up_list_counts(service.ctx.db, 1000):
            """Until nothing is left to add up."""
        assert (await listed(merchant), await listed(other)) == ((3, 3), (0, 0))
        assert await service.ctx.db.all(select(t.list_counts).where(t.list_counts.c.row_count == 0)) == [], (
            "nor are they remembered"
        )
        assert (await merchant.get("/payments?per_page=100")).body["meta"]["total"] == 10
        assert (await rows(service, t.payments), await rows(service, t.postings) > 0) == (12, True)
        await check_books(service.ctx.db)


async def test_waiting_deliveries_are_kept_at_any_age(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await merchant.put("/webhooks/endpoint", {"url": "https://localhost:9/hook"})
    await merchant.post("/webhooks/test")
    service.clock.advance(400 * _DAY_SECONDS)
    await run_housekeeping(service)
    assert (await merchant.get("/webhooks/deliveries")).data[0]["status"] == "pending"
    # Given up today, it is kept from today.
    await merchant.put("/webhooks/endpoint", {"url": "https://localhost:9/other"})
    for delay in (0, 10, 60, 300, 1800):
        await service.run_worker(delay)
    assert (await merchant.get("/webhooks/deliveries")).data[0]["status"] == "failed"
    service.clock.advance(89 * _DAY_SECONDS)
    await run_housekeeping(service)
    assert await listed(merchant) == (1, 1)
    service.clock.advance(2 * _DAY_SECONDS)
    await run_housekeeping(service)
    assert await listed(merchant) == (0, 0)


async def test_deliveries_cancelled_before_any_attempt_are_deleted_by_age(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await merchant.put("/webhooks/endpoint", {"url": "https://localhost:9/hook"})
    await merchant.post("/webhooks/test")
    await merchant.put("/webhooks/endpoint", {"url": None})
    service.clock.advance(91 * _DAY_SECONDS)
    await run_housekeeping(service)
    assert await listed(merchant) == (0, 0)


async def test_incidents_of_the_test_environment_are_deleted_by_age_alone(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await merchant.pay(external_id="a", test_scenario="amount_mismatch")
    await merchant.get("/payments/a")
    service.clock.advance(364 * _DAY_SECONDS)
    await run_housekeeping(service)
    assert await rows(service, t.incidents) == 1
    service.clock.advance(2 * _DAY_SECONDS)
    await run_housekeeping(service)
    assert await rows(service, t.incidents) == 0


@pytest.mark.both_databases
async def test_old_closed_incidents_and_unmatched_callbacks_are_deleted_and_open_incidents_kept(
    service: ServiceFixture,
) -> None:
    merchant, db = await service.merchant(), service.ctx.db
    now = service.clock.now()
    for number in range(3):
        await merchant.report_mismatch(f"00000000-0000-4000-8000-{number:012d}", None)
    first, second, _ = await incidents.still_open(db)
    await incidents.close(db, first.id, now)
    await unmatched_callbacks.keep_sample(db, provider_account="op", path="/x", body=b"{}", reason="no_match", now=now)
    await db.write(insert(t.ledger_audits).values(started_at=now, finished_at=now, postings=0, payments=0, refunds=0))
    service.clock.advance(364 * _DAY_SECONDS)
    await incidents.close(db, second.id, service.clock.now())
    await run_housekeeping(service)
    assert (await rows(service, t.incidents), await rows(service, t.unmatched_callbacks)) == (3, 1)
    service.clock.advance(2 * _DAY_SECONDS)
    await run_housekeeping(service)
    # The second was closed two days ago: it is its closing that ages.
    assert (await rows(service, t.incidents), await rows(service, t.unmatched_callbacks)) == (2, 0)
    service.clock.advance(10 * 365 * _DAY_SECONDS)
    await run_housekeeping(service)
    assert len(await incidents.still_open(db)) == await rows(service, t.incidents) == 1
    assert await rows(service, t.ledger_audits) == 1


@pytest.mark.both_databases
async def test_old_callbacks_are_deleted_unless_they_must_still_be_asked_about(service: ServiceFixture) -> None:
    merchant, now = await service.merchant(), service.clock.now()
    known = {**CALLBACK, "merchant_id": merchant.id, "received_at": now}
    ends: tuple[dict[str, Any], ...] = ({"status": "asked", "due_at": None}, {"due_at": now + 10_000 * DAY})
    for number, changes in enumerate(ends):
        await service.ctx.db.write(insert(t.provider_callbacks).values({**known, "subject_id": number, **changes}))
    service.clock.advance(364 * _DAY_SECONDS)
    await run_housekeeping(service)
    assert await rows(service, t.provider_callbacks) == 2
    service.clock.advance(2 * _DAY_SECONDS)
    await run_housekeeping(service)
    assert tuple(await service.ctx.db.one(select(t.provider_callbacks.c.status))) == ("pending",)
    assert await rows(service, t.provider_callbacks) == 1


@pytest.mark.both_databases
async def test_sums_of_days_long_past_are_deleted(service: ServiceFixture) -> None:
    merchants = sorted([(await service.merchant()).id, (await service.merchant()).id])
    today = to_datetime(service.clock.now()).date().toordinal()
    ages = (0, KEPT_DAYS, KEPT_DAYS + 1, 400)
    made = [{"merchant_id": each, "day": today - age, "amount": 1} for each in merchants for age in ages]
    await service.ctx.db.write_many(insert(t.daily_totals), made)
    await run_housekeeping(service)
    left = await service.ctx.db.scan(select(t.daily_totals.c.merchant_id, t.daily_totals.c.day))
    assert sorted(tuple(row) for row in left) == [
        (each, today - age) for each in merchants for age in sorted(ages[:2], reverse=True)
    ]


async def test_a_retention_of_zero_keeps_its_kind_of_row_for_ever(
    settings: Settings, authority: CertificateAuthority
) -> None:
    for_ever = replace(settings, keep_deliveries_days=0, keep_incidents_days=1)
    async with open_service(for_ever) as service, merchant_with_webhooks(service, authority) as merchant:
        await paid(service, merchant, 2)
        await unmatched_callbacks.keep_sample(
            service.ctx.db, provider_account="op", path="/x", body=b"{}", reason="no_match", now=service.clock.now()
        )
        service.clock.advance(36_500 * _DAY_SECONDS)
        await run_housekeeping(service)
        assert (await listed(merchant), await rows(service, t.unmatched_callbacks)) == ((2, 2), 0)


@pytest.mark.both_databases
async def test_a_backlog_is_deleted_in_batches_then_pruning_rests_for_an_hour(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await merchant.put("/webhooks/endpoint", {"url": "https://localhost:9/hook"})
    await _fill(service, merchant, 2 * pruning.BATCH + 50, earlier(service.clock.now(), 100 * DAY))
    for left in (pruning.BATCH + 50, 50, 0):
        await run_housekeeping(service)
        assert await rows(service, t.webhook_deliveries) == left
    await run_housekeeping(service)
    await _fill(service, merchant, 1, earlier(service.clock.now(), 100 * DAY), first=1000)
    service.clock.advance(3500)
    await run_housekeeping(service)
    assert await rows(service, t.webhook_deliveries) == 1
    service.clock.advance(200)
    await run_housekeeping(service)
    assert await listed(merchant) == (0, 0)


@pytest.mark.both_databases
async def test_future_dates_and_waiting_rows_do_not_stop_pruning(service: ServiceFixture) -> None:
    """The oldest ids are all pending, or dated a century ahead by a clock that was wrong."""
    merchant, db = await service.merchant(), service.ctx.db
    old = earlier(service.clock.now(), 100 * DAY)
    await _fill(service, merchant, 30, old)
    await db.write(update(t.webhook_deliveries).values(status="pending", next_attempt_at=old, delivered_at=None))
    await _fill(service, merchant, 30, later(old, 36_500 * DAY), first=100)
    await _fill(service, merchant, 40, old, first=200)
    assert (await _round(db, later(old, 1), 70), await rows(service, t.webhook_deliveries)) == (40, 60)


@pytest.mark.both_databases
async def test_several_workers_prune_at_once_without_conflict(settings: Settings) -> None:
    others = [database(settings) for _ in range(0 if settings.embedded else 3)]
    async with open_service(settings, ManualClock()) as service:
        merchant = await service.merchant()
        await _fill(service, merchant, 300, earlier(service.clock.now(), 100 * DAY))
        await _fill(service, merchant, 5, service.clock.now(), first=1000)
        for other in others:
            await other.open()
        databases = [service.ctx.db, *others] if others else [service.ctx.db] * 4
        gone = await asyncio.gather(*(_round(db, earlier(service.clock.now(), DAY), 20) for db in databases))
        # Each row was deleted, and counted as deleted, once.
        assert (sum(gone), await listed(merchant)) == (300, (5, 5))
        for other in others:
            await other.close()


async def _round(db: Database, before: Instant, most: int) -> int:
    """Prunes until nothing old is left; returns how many deliveries were deleted."""
    step = await pruning.prune(db, pruning.DELIVERIES, before, most=most)
    gone = step.pruned
    while step.reached is not None:
        step = await pruning.prune(db, pruning.DELIVERIES, before, step.reached, most)
        gone += step.pruned
    return gone


async def _fill(
    service: ServiceFixture, merchant: MerchantClient, number: int, created_at: Instant, first: int = 0
) -> None:
    """Acknowledged deliveries made at an instant, oldest first."""
    async with service.ctx.db.transaction() as tx:
        for each in range(first, first + number):
            reference = f"00000000-0000-4000-8000-{each:012d}"
            await tx.write(
                insert(t.webhook_deliveries).values(
                    merchant_id=merchant.id, env="test", reference=reference, event="webhook.test", target="account",
                    url="https://localhost:9/hook", destination="https://localhost:9", status="success",
                    attempts=1, response_code=200, created_at=created_at, delivered_at=later(created_at, HOUR),
                    last_attempt_at=created_at,
                )
            )  # fmt: skip
