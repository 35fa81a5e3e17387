"""Balance and exports in Chromium: with and without JavaScript, on a telephone and a large screen, light and dark."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from guichet.db.engine import require
from guichet.exports import rows
from guichet.merchants import repository as merchants
from guichet.settings import Settings
from tests.browser.driver import Customer, customer
from tests.console.conftest import ConsoleFixture
from tests.service_fixture import open_service

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def console(sqlite_settings: Settings) -> AsyncIterator[ConsoleFixture]:
    async with open_service(sqlite_settings) as service:
        yield ConsoleFixture(service)


async def _history(console: ConsoleFixture) -> int:
    """A merchant with a page and a half of movements."""
    client = await console.service.merchant("Boutique Kora et Fils de Porto-Novo")
    for number in range(26):
        paid = await client.pay("0000", amount=125_000 + number, external_id=f"commande-du-samedi-{number:04d}")
    await client.pay("0000", amount=45.5, currency="EUR", operator="mtn")
    await console.service.run_worker(20)
    await client.post(f"/payments/{paid['reference']}/refund")
    await console.service.run_worker(20)
    return int(client.id)


async def _join(console: ConsoleFixture, awa: Customer, merchant_id: int, email: str) -> None:
    """A developer needs no second factor, and exports what the test environment holds."""
    merchant = require(await merchants.get(console.service.ctx.db, merchant_id))  # type: ignore[arg-type]
    await awa.signed_in(await console.joined(email, merchant, "developer"))


@pytest.mark.parametrize("scripts", [True, False])
async def test_somebody_reads_the_balance_and_exports_it_on_a_telephone(
    console: ConsoleFixture, browser: Browser, monkeypatch: pytest.MonkeyPatch, *, scripts: bool
) -> None:
    merchant_id = await _history(console)
    async with customer(browser, console.service.base_url, f"balance-{scripts}", scripts=scripts, signs_in=True) as awa:
        await _join(console, awa, merchant_id, f"awa-{scripts}@example.com")
        await awa.open(f"/console/{merchant_id}/test/balance")
        await awa.follow(awa.page.get_by_role("link", name="Plus anciens"))
        await awa.follow(awa.page.get_by_role("link", name="Plus récents"))
        async with awa.page.expect_download() as document:
            await awa.page.get_by_role("button", name="Télécharger en PDF").click()
        assert (await document.value).suggested_filename.startswith("releve-boutique-kora")
        await awa.follow(awa.page.get_by_role("link", name="Exporter en CSV ou Excel"))
        async with awa.page.expect_download() as file:
            await awa.page.get_by_role("button", name="Exporter").click()
        assert (await file.value).suggested_filename.endswith(".csv")
        monkeypatch.setattr(rows, "MOST_DIRECT_ROWS", 5)
        await awa.page.get_by_label("Format").select_option("xlsx")
        await awa.follow(awa.page.get_by_role("button", name="Exporter"))
        await awa.page.get_by_text("En préparation").wait_for()
        await console.service.run_worker()
        if not scripts:
            await awa.page.reload()
        link = awa.page.get_by_role("link", name="Télécharger : Paiements, Excel (XLSX)")
        await link.wait_for()
        async with awa.page.expect_download() as file:
            await link.click()
        assert (await file.value).suggested_filename.endswith(".xlsx")
        awa.nothing_strange()


async def test_every_page_of_the_balance_is_accessible_and_whole(
    console: ConsoleFixture, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a telephone in light with every rule; in dark the colours again, on a large screen the layout."""
    merchant_id = await _history(console)
    base = f"/console/{merchant_id}/test"
    async with customer(browser, console.service.base_url, "balance", signs_in=True, judged=True) as awa:
        await _join(console, awa, merchant_id, "balance@example.com")
        await awa.seen("balance", f"{base}/balance")
        await awa.seen("nothing", f"{base}/balance?from=2001-01-01&to=2001-01-02")
        await awa.seen("fault", f"{base}/balance?from=hier&to=2001-01-02")
        await awa.open(f"{base}/exports")
        async with awa.page.expect_download():
            await awa.page.get_by_role("button", name="Exporter").click()
        monkeypatch.setattr(rows, "MOST_DIRECT_ROWS", 5)
        await awa.follow(awa.page.get_by_role("button", name="Exporter"))
        await awa.page.get_by_text("En préparation").first.wait_for()
        await awa.seen("exports")
        number = (await awa.page.locator(".rows li").count()) or 1
        assert await awa.open(f"{base}/exports/{number}/file") == 409
        await awa.seen("gone")
