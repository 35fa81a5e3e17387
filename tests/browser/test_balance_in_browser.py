"""Balance and exports in Chromium: on a telephone and a large screen, light and dark."""

import pytest
from playwright.async_api import Browser

from guichet.domain.ids import MerchantId
from guichet.exports import rows
from tests.browser.driver import customer
from tests.console.conftest import ConsoleFixture

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def _history(console: ConsoleFixture) -> MerchantId:
    """A merchant with a page and a half of movements."""
    client = await console.service.merchant("Boutique Kora et Fils de Porto-Novo")
    for number in range(26):
        paid = await client.pay("0000", amount=125_000 + number, external_id=f"commande-du-samedi-{number:04d}")
    await client.pay("0000", amount=45.5, currency="EUR", operator="mtn")
    await console.service.run_worker(20)
    await client.post(f"/payments/{paid['reference']}/refund")
    await console.service.run_worker(20)
    return client.id


async def test_the_balance_is_read_and_exported_on_accessible_and_whole_pages(
    console: ConsoleFixture, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a telephone in light with every rule; in dark the colours again, on a large screen the layout."""
    merchant_id = await _history(console)
    base = f"/console/{merchant_id}/test"
    async with customer(browser, console.service.base_url, "balance", signs_in=True, judged=True) as awa:
        # A developer needs no second factor, and exports what the test environment holds.
        merchant = await console.merchant_of(merchant_id)
        await awa.signed_in(await console.joined("awa@example.com", merchant, "developer"))
        await awa.seen("nothing", f"{base}/balance?from=2001-01-01&to=2001-01-02")
        await awa.seen("balance", f"{base}/balance")
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
        await awa.seen("exports")
        number = await awa.page.locator(".rows li").count()
        assert await awa.open(f"{base}/exports/{number}/file") == 409
        await awa.seen("gone")
        await awa.open(f"{base}/exports")
        await console.service.run_worker()
        link = awa.page.get_by_role("link", name="Télécharger : Paiements, Excel (XLSX)")
        await link.wait_for()  # Nobody touches the page: it changes by itself.
        async with awa.page.expect_download() as file:
            await link.click()
        assert (await file.value).suggested_filename.endswith(".xlsx")
        awa.nothing_strange()
        await awa.seen("fault", f"{base}/balance?from=hier&to=2001-01-02")  # Of which the browser itself complains.
