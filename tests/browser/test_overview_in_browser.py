"""The overview in Chromium: on a telephone and a large screen, in light and dark."""

import random

import pytest
from playwright.async_api import Browser
from sqlalchemy import insert, update

from guichet.clock import DAY, HOUR, SECOND, later
from guichet.db.tables import api_keys, merchants, payments
from guichet.domain.merchants import Merchant
from guichet.history.figures import DAYS
from tests.browser.driver import customer
from tests.console.conftest import ConsoleFixture
from tests.db.rows import PAYMENT

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def _a_month(console: ConsoleFixture) -> Merchant:
    """A merchant with some payments a day, one that waits, and a key that expires."""
    merchant = await console.merchant("Boutique Kora et Fils de Porto-Novo")
    chance, now = random.Random(5), console.service.clock.now()
    async with console.service.ctx.db.transaction() as tx:
        for number in range(300):
            at = now - chance.randrange(DAYS * DAY)
            row = {
                **PAYMENT,
                "merchant_id": merchant.id,
                "env": "live",
                "reference": f"00000000-0000-4000-8000-{number:012d}",
                "status": chance.choice(["succeeded"] * 8 + ["failed", "refunded"]),
                "amount": (amount := chance.randrange(100_00, 90_000_00, 100)),
                "total_amount": amount + 5,
                "operator": chance.choice(["mtn", "mtn", "moov", "celtiis_bj", "wave_ci", "orange_ml", "card"]),
                "created_at": at,
                "updated_at": at + chance.randrange(90 * SECOND),
                "next_poll_at": None,
            }
            await tx.write(insert(payments).values(row))
        waits = {"status": "pending", "next_poll_at": 1, "created_at": now - 2 * HOUR, "updated_at": now}
        new = {"reference": "00000000-0000-4000-8000-000000000999", "total_amount": 505, "amount": 500}
        await tx.write(insert(payments).values({**row, **waits, **new}))
        key = {"merchant_id": merchant.id, "env": "live", "hash": "h", "preview": "sk_live_Ab3x…", "created_at": 1}
        await tx.write(insert(api_keys).values(**key, expires_at=later(now, 3 * DAY)))
        await tx.write(update(merchants).values(time_zone="Africa/Porto-Novo"))
    return merchant


async def test_the_overview_of_a_month_is_accessible_and_whole(console: ConsoleFixture, browser: Browser) -> None:
    """Who works for one merchant arrives there. A developer sees keys, a reader money."""
    merchant = await _a_month(console)
    async with customer(browser, console.service.base_url, "overview", signs_in=True, judged=True) as awa:
        await awa.signed_in(await console.joined("dev@example.com", merchant, "developer"))
        await awa.open("/console")
        await awa.page.get_by_text("points à vérifier").click()
        await awa.page.get_by_text("La clé sk_live_Ab3x… expire").wait_for()
        await awa.follow(awa.page.get_by_role("link", name="Aujourd’hui", exact=True))
        await awa.page.get_by_role("heading", name="Par opérateur · Aujourd’hui").wait_for()
        await awa.follow(awa.page.get_by_role("link", name="30 jours", exact=True), "Enter")
        await awa.page.get_by_role("heading", name="Par opérateur · 30 jours").wait_for()
        await awa.page.get_by_text("Les mêmes chiffres en tableau").first.press("Enter")
        assert await awa.page.locator("details tbody tr").count() > 20
        await awa.seen("open")
        awa.nothing_strange()
        await awa.context.clear_cookies()
        await awa.signed_in(await console.joined("overview@example.com", merchant, "reader"))
        for step, path in (("live", "/live"), ("month", "/live?days=30"), ("test", "/test")):
            await awa.open(f"/console/{merchant.id}{path}")
            assert await awa.page.evaluate("scrollY") == 0, "a page opens at its top"
            await awa.seen(step)
