"""Old logs go by age and nothing else goes: seen through the API, with the clock turned by months."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import func, insert, select, update

from guichet.bootstrap import database
from guichet.clock import DAY, HOUR, Instant
from guichet.db import tables as t
from guichet.db.engine import Database
from guichet.db.list_rollup import roll_up_list_counts
from guichet.payments import incidents
from guichet.settings import Settings
from guichet.worker import pruning
from tests.fakes.certificates import Authority
from tests.fakes.clock import ManualClock
from tests.fakes.http_server import Peer
from tests.invariants import check_books
from tests.service_fixture import Account, House, open_house

_DAY_SECONDS = 86_400


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.create(tmp_path_factory.mktemp("ca"))


@asynccontextmanager
async def told(house: House, authority: Authority) -> AsyncIterator[Account]:
    """A merchant whose webhooks are acknowledged."""
    async with Peer(tls=authority.server("localhost")) as peer:
        shop = await house.merchant()
        await shop.put("/webhooks/endpoint", {"url": peer.url()})
        yield shop


async def paid(house: House, shop: Account, number: int) -> None:
    for _ in range(number):
        await shop.pay("0000")
    await house.settle()


async def keep_house(house: House) -> None:
    """One turn of housekeeping, and of nothing else."""
    (loop,) = [loop for loop in house.worker.loops if loop.name == "housekeeping"]
    await loop.step()


async def listed(shop: Account) -> tuple[int, int]:
    """Deliveries on the first page, and in all."""
    page = await shop.get("/webhooks/deliveries?per_page=100")
    return len(page.data), page.body["meta"]["total"]


async def rows(house: House, table: Any) -> int:
    return int((await house.ctx.db.scan(select(func.count()).select_from(table)))[0][0])


async def test_deliveries_go_after_their_age_and_the_total_stays_exact(house: House, authority: Authority) -> None:
    async with told(house, authority) as shop, told(house, authority) as other:
        await paid(house, shop, 7)
        await paid(house, other, 2)
        await house.settle(80 * _DAY_SECONDS)
        await paid(house, shop, 3)
        assert (await listed(shop), await listed(other)) == ((10, 10), (2, 2))
        house.clock.advance(10 * _DAY_SECONDS + 3600)
        await keep_house(house)
        # What was deleted is not counted any more, rolled up or not, on every page.
        assert (await listed(shop), await listed(other)) == ((3, 3), (0, 0))
        assert (await shop.get("/webhooks/deliveries?per_page=2&page=2")).body["meta"]["total"] == 3
        while await roll_up_list_counts(house.ctx.db, 1000):
            """Until nothing is left to add up."""
        assert (await listed(shop), await listed(other)) == ((3, 3), (0, 0))
        assert await house.ctx.db.all(select(t.list_counts).where(t.list_counts.c.row_count == 0)) == [], (
            "nor are they remembered"
        )
        assert (await shop.get("/payments?per_page=100")).body["meta"]["total"] == 10
        assert (await rows(house, t.payments), await rows(house, t.postings) > 0) == (12, True)
        await check_books(house.ctx.db)


async def test_what_still_waits_is_kept_whatever_its_age(house: House) -> None:
    shop = await house.merchant()
    await shop.put("/webhooks/endpoint", {"url": "https://localhost:9/hook"})
    await shop.post("/webhooks/test")
    house.clock.advance(400 * _DAY_SECONDS)
    await keep_house(house)
    assert (await shop.get("/webhooks/deliveries")).data[0]["status"] == "pending"
    # Given up today, it is kept from today.
    await shop.put("/webhooks/endpoint", {"url": "https://localhost:9/other"})
    for delay in (0, 10, 60, 300, 1800):
        await house.settle(delay)
    assert (await shop.get("/webhooks/deliveries")).data[0]["status"] == "failed"
    house.clock.advance(89 * _DAY_SECONDS)
    await keep_house(house)
    assert await listed(shop) == (1, 1)
    house.clock.advance(2 * _DAY_SECONDS)
    await keep_house(house)
    assert await listed(shop) == (0, 0)


async def test_cancelled_before_any_attempt(house: House) -> None:
    shop = await house.merchant()
    await shop.put("/webhooks/endpoint", {"url": "https://localhost:9/hook"})
    await shop.post("/webhooks/test")
    await shop.put("/webhooks/endpoint", {"url": None})
    house.clock.advance(91 * _DAY_SECONDS)
    await keep_house(house)
    assert await listed(shop) == (0, 0)


async def test_closed_incidents_and_strays_go_open_incidents_and_audits_stay(house: House) -> None:
    shop, db = await house.merchant(), house.ctx.db
    now = house.clock.now()
    for number in range(3):
        reference = f"00000000-0000-4000-8000-{number:012d}"
        await incidents.report(
            db,
            merchant_id=shop.id,
            env="live",
            kind=incidents.MISMATCH,
            subject_type="payment",
            reference=reference,
            provider_account=None,
            detail="says 1",
            now=now,
        )
    first, second, _ = await incidents.still_open(db)
    await incidents.close(db, first.id, now)
    await incidents.store_unmatched_callback(db, provider_account="op", path="/x", body="{}", reason="unknown", now=now)
    await db.write(insert(t.ledger_audits).values(started_at=now, finished_at=now, postings=0, payments=0, refunds=0))
    house.clock.advance(364 * _DAY_SECONDS)
    await incidents.close(db, second.id, house.clock.now())
    await keep_house(house)
    assert (await rows(house, t.incidents), await rows(house, t.unmatched_callbacks)) == (3, 1)
    house.clock.advance(2 * _DAY_SECONDS)
    await keep_house(house)
    # The second was closed two days ago: it is its closing that ages.
    assert (await rows(house, t.incidents), await rows(house, t.unmatched_callbacks)) == (2, 0)
    house.clock.advance(10 * 365 * _DAY_SECONDS)
    await keep_house(house)
    assert len(await incidents.still_open(db)) == await rows(house, t.incidents) == 1
    assert await rows(house, t.ledger_audits) == 1


async def test_zero_keeps_for_ever_and_each_setting_rules_its_own(settings: Settings, authority: Authority) -> None:
    for_ever = replace(settings, keep_deliveries_days=0, keep_incidents_days=1)
    async with open_house(for_ever) as house, told(house, authority) as shop:
        await paid(house, shop, 2)
        await incidents.store_unmatched_callback(
            house.ctx.db, provider_account="op", path="/x", body="{}", reason="unknown", now=house.clock.now()
        )
        house.clock.advance(36_500 * _DAY_SECONDS)
        await keep_house(house)
        assert (await listed(shop), await rows(house, t.unmatched_callbacks)) == ((2, 2), 0)


async def test_a_backlog_goes_batch_by_batch_and_the_rest_is_left_alone_for_an_hour(house: House) -> None:
    shop = await house.merchant()
    await shop.put("/webhooks/endpoint", {"url": "https://localhost:9/hook"})
    await _fill(house, shop, 2 * pruning.BATCH + 50, house.clock.now() - 100 * DAY)
    for left in (pruning.BATCH + 50, 50, 0):
        await keep_house(house)
        assert await rows(house, t.webhook_deliveries) == left
    await keep_house(house)
    await _fill(house, shop, 1, house.clock.now() - 100 * DAY, first=1000)
    house.clock.advance(3500)
    await keep_house(house)
    assert await rows(house, t.webhook_deliveries) == 1
    house.clock.advance(200)
    await keep_house(house)
    assert await listed(shop) == (0, 0)


async def test_odd_dates_and_waiting_rows_hold_back_nobody(house: House) -> None:
    """The oldest ids are all pending, or dated a century ahead by a clock that was wrong."""
    shop, db = await house.merchant(), house.ctx.db
    old = house.clock.now() - 100 * DAY
    await _fill(house, shop, 30, old)
    await db.write(update(t.webhook_deliveries).values(status="pending", next_attempt_at=old, delivered_at=None))
    await _fill(house, shop, 30, old + 36_500 * DAY, first=100)
    await _fill(house, shop, 40, old, first=200)
    assert (await _round(db, old + 1, 70), await rows(house, t.webhook_deliveries)) == (40, 60)


async def test_several_workers_prune_at_once(settings: Settings) -> None:
    others = [database(settings) for _ in range(0 if settings.embedded else 3)]
    async with open_house(settings, ManualClock()) as house:
        shop = await house.merchant()
        await _fill(house, shop, 300, house.clock.now() - 100 * DAY)
        await _fill(house, shop, 5, house.clock.now(), first=1000)
        for other in others:
            await other.open()
        databases = [house.ctx.db, *others] if others else [house.ctx.db] * 4
        gone = await asyncio.gather(*(_round(db, house.clock.now() - DAY, 20) for db in databases))
        # Each row was deleted, and counted as deleted, once.
        assert (sum(gone), await listed(shop)) == (300, (5, 5))
        for other in others:
            await other.close()


async def _round(db: Database, before: Instant, most: int) -> int:
    """From the oldest delivery until no older one is left; how many went."""
    step = await pruning.prune(db, pruning.DELIVERIES, before, most=most)
    gone = step.pruned
    while step.reached is not None:
        step = await pruning.prune(db, pruning.DELIVERIES, before, step.reached, most)
        gone += step.pruned
    return gone


async def _fill(house: House, shop: Account, number: int, created_at: int, first: int = 0) -> None:
    """Acknowledged deliveries made at an instant, oldest first."""
    async with house.ctx.db.transaction() as tx:
        for each in range(first, first + number):
            reference = f"00000000-0000-4000-8000-{each:012d}"
            await tx.write(
                insert(t.webhook_deliveries).values(
                    merchant_id=shop.id, env="test", reference=reference, event="webhook.test", target="account",
                    url="https://localhost:9/hook", destination="https://localhost:9", body="{}", status="success",
                    attempts=1, response_code=200, created_at=created_at, delivered_at=created_at + HOUR,
                    last_attempt_at=created_at,
                )
            )  # fmt: skip
