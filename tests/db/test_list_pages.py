"""Totals and far pages from the counts equal what counting and skipping every row would give, on both databases."""

import random
from collections import Counter
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import bindparam, insert, select

from guichet.clock import DAY, HOUR, SECOND, Instant, earlier, later
from guichet.db.engine import Database
from guichet.db.lists.pages import ListScope, PageBounds, key_of, read_page
from guichet.db.lists.rollup import roll_up_list_counts
from guichet.db.lists.time_buckets import LEVELS, cover
from guichet.db.tables import list_count_changes, webhook_deliveries
from guichet.db.tables import payments as payment_table
from guichet.domain.catalogue import Catalogue
from guichet.domain.events import DELIVERY_STATUSES, EVENT_NAMES, Delivery, DeliveryStatus, EventName
from guichet.domain.ids import MerchantId, PaymentId
from guichet.domain.money import Hundredths
from guichet.domain.payments import Payment, PaymentStatus, Settlement, Transition
from guichet.payments import repository as payments
from guichet.payments.lists import PaymentFilter
from tests.db.rows import DELIVERY
from tests.service_fixture import ServiceFixture

_START = Instant(1_760_000_000 * SECOND)
_DELIVERY_COLUMNS = [column.name for column in webhook_deliveries.c if column.name != "id"]
_INSERT_DELIVERY = insert(webhook_deliveries).values({name: bindparam(name) for name in _DELIVERY_COLUMNS})


async def _fill(service: ServiceFixture, merchant_id: int, moments: list[Instant], rng: random.Random) -> list[Payment]:
    db: Database = service.ctx.db
    template = Payment(
        id=PaymentId(0), merchant_id=MerchantId(merchant_id), env="test", reference="", external_id=None,
        status="pending", amount=Hundredths(100),
        fee_amount=Hundredths(0), total_amount=Hundredths(100),
        currency="XOF", description="", operator="mtn", phone_number=None,
        firstname=None, lastname=None, email=None, address=None, country=None, return_url=None, callback_url=None,
        metadata=None, link_id=None, checkout_token=None, created_at=Instant(0), updated_at=Instant(0),
        provider_account="sandbox", provider_reference=None, provider_data=None, redirect_url=None,
        failure_reason=None, next_poll_at=Instant(0), poll_count=0, lease_expires_at=None, account_fingerprint=None,
        payer_number=None,
    )  # fmt: skip
    stored = []
    async with db.transaction() as tx:
        for number, moment in enumerate(sorted(moments)):
            reference = f"00000000-0000-4000-8000-{number:012d}"
            status: PaymentStatus = rng.choice(["pending", "succeeded", "failed"])
            payment = structs.replace(template, reference=reference, created_at=moment)
            created = await payments.insert_new(tx, payment, payment.next_poll_at)
            assert created is not None
            if status != "pending":
                transition = Transition("pending", status, None)
                settlement = Settlement(created, transition, Catalogue(()), moment, "float:sandbox::XOF")
                await payments.finish(tx, [(settlement, transition)])
            stored.append(structs.replace(created, status=status))
    return stored


def _expected(stored: list[Payment], wanted: PaymentFilter) -> list[int]:
    chosen = [each for each in stored if wanted.admits(each)]
    return [each.id for each in sorted(chosen, key=lambda each: (each.created_at, each.id), reverse=True)]


@pytest.mark.parametrize("near", [0, 5, 500])
async def test_pages_equal_counted_and_skipped_ones_before_and_after_rollup(service: ServiceFixture, near: int) -> None:
    """`near` small: pages are located through the levels rather than skipped to."""
    rng = random.Random(20261121)
    merchant = await service.merchant()
    spread = [later(_START, rng.randrange(5 * DAY)) for _ in range(90)]
    spread += [earlier(_START, 100 * DAY), earlier(_START, 40 * DAY + 1)]
    busy = [later(_START, DAY + rng.randrange(HOUR)) for _ in range(60)]
    moments = spread + busy + [later(_START, DAY)] * 5 + [later(_START, 2 * HOUR - 1)]
    stored = await _fill(service, merchant.id, moments, rng)
    edges: list[Instant | None] = [
        None,
        _START,
        later(_START, DAY),
        later(_START, DAY + 1),
        stored[40].created_at,
        later(stored[100].created_at, 1),
        later(_START, 9 * DAY),
        Instant(-(10**16)),
        Instant(10**18),
    ]
    for rolled_up in (0, 60, 10_000):
        await roll_up_list_counts(service.ctx.db, rolled_up) if rolled_up else None
        for _ in range(40):
            wanted = PaymentFilter(
                status=rng.choice([None, "pending", "succeeded", "failed", "refunded"]),
                since=rng.choice(edges),
                until=rng.choice(edges),
            )
            offset = rng.choice([0, 7, 20, 50, 90, 149, 157, 400])
            scope, oldest_first = ListScope(merchant.id, "test", wanted.status), rng.random() < 0.5
            bounds = (wanted.since, wanted.until)
            rows, total = await read_page(
                service.ctx.db,
                payment_table,
                scope,
                PageBounds(10, offset, oldest_first=oldest_first),
                *bounds,
                max_skipped=near,
            )
            expected = _expected(stored, wanted)
            if oldest_first:
                expected.reverse()
            assert (total, [Payment(*row).id for row in rows]) == (len(expected), expected[offset : offset + 10]), (
                wanted,
                offset,
                oldest_first,
            )


def test_a_cover_contains_every_instant_of_its_range_exactly_once() -> None:
    """And few buckets: none but the coarsest level gives more than fit in two of the next."""
    rng = random.Random(7)
    for _ in range(500):
        since = None if rng.random() < 0.2 else later(_START, rng.randrange(-90 * DAY, 90 * DAY))
        width = rng.choice([1, SECOND, HOUR, HOUR + 1, DAY, 90 * DAY])
        before = None if rng.random() < 0.2 else later(since or _START, rng.randrange(-width, width))
        found = cover(since, before)
        moments = [
            later(_START, rng.randrange(-200 * DAY, 200 * DAY)),
            since or Instant(0),
            earlier(before or Instant(1), 1),
            before or Instant(0),
        ]
        for moment in moments:
            cuts = (found.since <= moment < found.start) + (found.end <= moment < found.before)
            held = cuts + sum(run.holds(moment) for run in found.runs)
            inside = (since is None or since <= moment) and (before is None or moment < before)
            assert held == inside, (since, before, moment)
        for run, coarser in zip(found.runs, [level for level in LEVELS[1:] for _ in range(2)], strict=False):
            assert run.last - run.first < 2 * coarser.width // run.level.width


@pytest.mark.parametrize("near", [0, 500])
async def test_far_pages_of_filtered_deliveries(service: ServiceFixture, near: int) -> None:
    """Deliveries of every event and status, spread over days: each filter, in both orders, before and after rollup."""
    rng, merchant, db = random.Random(18), await service.merchant(), service.ctx.db
    statuses: list[DeliveryStatus | None] = [None, *DELIVERY_STATUSES]
    events: list[EventName | None] = [None, *EVENT_NAMES]
    made = []
    for number in range(120):
        status = rng.choice(DELIVERY_STATUSES)
        at = later(_START, rng.randrange(3 * DAY) if number % 3 else DAY)
        made.append(
            {
                **DELIVERY,
                "merchant_id": merchant.id,
                "reference": f"00000000-0000-4000-8000-{number:012d}",
                "event": rng.choice(EVENT_NAMES),
                "status": status,
                "created_at": at,
                "delivered_at": at if status == "success" else None,
                "next_attempt_at": at if status == "pending" else None,
            }
        )
    await db.write_many(_INSERT_DELIVERY, [{**dict.fromkeys(_DELIVERY_COLUMNS), **each} for each in made])
    stored = [Delivery(*row) for row in await db.scan(select(webhook_deliveries))]
    for rolled_up in (0, 100, 10_000):
        await roll_up_list_counts(db, rolled_up) if rolled_up else None
        for _ in range(40):
            only, event = rng.choice(statuses), rng.choice(events)
            offset, oldest_first = rng.choice([0, 3, 20, 45, 110, 200]), rng.random() < 0.5
            chosen = [each for each in stored if only in (None, each.status) and event in (None, each.event)]
            expected = [each.id for each in sorted(chosen, key=key_of, reverse=not oldest_first)]
            rows, total = await read_page(
                db,
                webhook_deliveries,
                ListScope(merchant.id, "test", only, event),
                PageBounds(7, offset, oldest_first=oldest_first),
                max_skipped=near,
            )
            found = [Delivery(*row).id for row in rows]
            assert (total, found) == (len(expected), expected[offset : offset + 7]), (only, event, offset)


async def test_rollup_counts_every_change_and_leaves_none(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    for _ in range(30):
        await merchant.pay("0000")
    assert (await merchant.get("/payments?per_page=1")).body["meta"]["total"] == 30
    await service.run_worker()
    assert await roll_up_list_counts(service.ctx.db, 1000) == 0
    answers: list[Any] = [
        (await merchant.get(f"/payments?status={s}")).body["meta"]["total"] for s in ("pending", "succeeded")
    ]
    assert answers == [0, 30]


async def test_rows_that_are_inserted_together_are_one_change(service: ServiceFixture) -> None:
    """What is not rolled up yet is read with each list."""
    merchant, db = await service.merchant(), service.ctx.db
    rows = [
        {
            **dict.fromkeys(_DELIVERY_COLUMNS),
            **DELIVERY,
            "merchant_id": merchant.id,
            "reference": f"00000000-0000-4000-8000-{number:012d}",
            "created_at": later(_START, number),
        }
        for number in range(100)
    ]
    await db.write_many(_INSERT_DELIVERY, rows)
    kept = select(list_count_changes.c.delta, list_count_changes.c.status)
    assert [tuple(row) for row in await db.scan(kept)] == [(100, "")]
    _, total = await read_page(db, webhook_deliveries, ListScope(merchant.id, "test", "pending"), PageBounds(1))
    assert total == 100


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_sqlite_keeps_one_sum_for_each_hour_and_status(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    moments = [later(_START, number) for number in range(50)]
    stored = await _fill(service, merchant.id, moments, random.Random(5))
    kept = select(list_count_changes.c.status, list_count_changes.c.delta).order_by(list_count_changes.c.status)
    statuses = Counter(payment.status for payment in stored)
    assert [tuple(row) for row in await service.ctx.db.scan(kept)] == [
        ("", 50),
        ("failed", statuses["failed"]),
        ("succeeded", statuses["succeeded"]),
    ]


async def test_merchants_and_environments_are_counted_separately(service: ServiceFixture) -> None:
    one, two = await service.merchant(), await service.merchant()
    await one.pay("0000")
    await service.run_worker()
    assert (await two.get("/payments")).body["meta"]["total"] == 0
    assert (await one.live.get("/payments")).body["meta"]["total"] == 0
    assert (await one.get("/payments")).body["meta"]["total"] == 1
