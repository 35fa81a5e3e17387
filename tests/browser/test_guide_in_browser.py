"""The merchant's guides in Chromium: searched and copied from."""

import pytest
from playwright.async_api import Browser, expect

from tests.browser import axe
from tests.browser.driver import customer
from tests.checkout.checkout_fixture import CheckoutFixture

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize("path", ["/docs/guide", "/docs/webhooks"])
async def test_a_guide_is_searched_and_copied_from(checkout: CheckoutFixture, browser: Browser, path: str) -> None:
    async with customer(browser, checkout.url, path.rpartition("/")[2], changes_browser=True) as reader:
        page = reader.page
        await reader.open(path)
        await reader.fits()
        await reader.accessible()
        await page.emulate_media(color_scheme="dark")
        await reader.accessible(*axe.OF_COLOURS)
        chapters = page.locator("main > h2:visible")
        count = await chapters.count()
        await page.set_viewport_size({"width": 1280, "height": 800})
        field = page.locator(".side").get_by_role("searchbox", name="Chercher")
        await field.fill("débiter DEUX" if path.endswith("guide") else "unicite CONTRAINTE")
        await expect(page.locator(".side").get_by_role("status")).to_contain_text("chapitre")
        assert 0 < await chapters.count() < count
        assert await page.locator(".side nav ul a:visible").count() == await chapters.count()
        await field.fill("")
        await expect(chapters).to_have_count(count)
        await reader.context.grant_permissions(["clipboard-read", "clipboard-write"])
        block = page.locator("main pre").first
        await page.evaluate("window.setTimeout = () => {}")  # Which would take "Copié" away again.
        await page.get_by_role("button", name="Copier").first.click()
        await expect(page.get_by_role("button", name="Copié")).to_be_visible()
        assert await page.evaluate("navigator.clipboard.readText()") == await block.text_content()
