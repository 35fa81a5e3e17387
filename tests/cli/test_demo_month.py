"""The second demo merchant: its month looks like one, its books are right, and it is made once."""

from collections import Counter
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import func, select

from guichet.accounts import users
from guichet.clock import DAY, HOUR, MINUTE, earlier, later
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.db.lists.pages import PageBounds
from guichet.db.tables import api_keys, payment_links, payments, webhook_deliveries
from guichet.domain.ids import MerchantId
from guichet.domain.payments import PaymentSummary
from guichet.ledger.audit import audit
from guichet.payments.lists import PaymentFilter, page
from guichet_demo.access import DemoAccess
from guichet_demo.merchant import demo_merchant
from guichet_demo.people import demo_people
from guichet_demo.sales import days_of_sales
from tests.fakes.clock import ManualClock
from tests.invariants import check_books
from tests.service_fixture import ServiceFixture

ZONE = ZoneInfo("Africa/Porto-Novo")


async def _statuses(ctx: AppContext, merchant_id: MerchantId) -> dict[str, int]:
    rows = await ctx.db.all(
        select(payments.c.status, func.count()).where(payments.c.merchant_id == merchant_id).group_by(payments.c.status)
    )
    return dict(rows)


@pytest.mark.both_databases
async def test_the_month_has_right_books_and_is_made_once(service: ServiceFixture) -> None:
    ctx: AppContext = service.ctx
    empty = (await demo_merchant(ctx)).merchant_id
    access = DemoAccess()
    links = await demo_people(ctx, access, empty)
    assert len({links.owner, *links.staff}) == 3
    owner = require(await users.by_email(ctx.db, "proprietaire@demo.example.com"))
    places = await users.merchants_of(ctx.db, owner.id)
    assert [(role, merchant.name) for role, merchant in places] == [
        ("owner", "Boutique Démo"),
        ("owner", "Marché Démo"),
    ]
    shop = places[1][1].id
    made = await _statuses(ctx, shop)
    assert await _statuses(ctx, empty) == {}
    assert made["pending"] == 3
    assert 300 < made["succeeded"] < 700
    assert made["failed"] > 20
    assert made["refunded"] >= 2
    for status, count in made.items():
        wanted = PaymentFilter(status=status)  # type: ignore[arg-type]
        assert (await page(ctx.db, shop, "test", PaymentSummary, wanted, PageBounds(1)))[1] == count
    sent = Counter(row[0] for row in await ctx.db.all(select(webhook_deliveries.c.status)))
    assert sent == {
        "success": sum(made.values()) - 3 + 2 * made["refunded"] - sent["failed"],
        "failed": sent["failed"],
    }
    assert 1 <= sent["failed"] <= 4
    [(completed, reserved)] = await ctx.db.all(select(payment_links.c.completed_uses, payment_links.c.reserved_uses))
    assert completed == reserved > 10
    await check_books(ctx.db)
    await service.run_worker()
    await check_books(ctx.db)
    assert (await audit(ctx.db, ctx.clock, lambda _: None)).fault is None
    # A start on the next day, and one after a start that was interrupted: the last thing that is made was missing.
    service.clock.advance(DAY // 1_000_000)
    assert (await demo_people(ctx, access, empty)).owner != links.owner
    assert await _statuses(ctx, shop) == made
    async with ctx.db.transaction() as tx:
        await tx.write(api_keys.delete().where(api_keys.c.expires_at.is_not(None)).returning(api_keys.c.id))
    await demo_people(ctx, access, empty)
    again = await _statuses(ctx, shop)
    assert sum(made.values()) <= sum(again.values()) < sum(made.values()) * 1.2
    await check_books(ctx.db)
    assert len(await users.merchants_of(ctx.db, owner.id)) == 2


def test_the_sales_are_the_same_for_the_same_day_and_never_in_the_future() -> None:
    start = ManualClock().now()
    for hours in range(0, 24 * 7, 17):
        now = later(start, hours * HOUR)
        days = list(days_of_sales(now, ZONE))
        assert days == list(days_of_sales(now, ZONE))
        sales = [sale for each in days for sale in each]
        assert len(days) == 31
        assert all(earlier(now, 32 * DAY) < sale.at < now for sale in sales)
        assert all(sale.settled_at < earlier(now, MINUTE) for sale in sales if sale.settled_at is not None)
        assert sum(sale.settled_at is None for sale in sales) == 3
        assert len({sale.external_id for sale in sales}) == len(sales)
        assert 400 < len(sales) < 650
