"""The cash desk on a telephone, in Chromium: it fits, rings, says that the connection is lost, and prints."""

import re
from typing import Any

import pytest
from playwright.async_api import Browser, Route, expect

from tests.browser.conftest import SHOTS
from tests.browser.driver import Customer, customer
from tests.browser.test_links_in_browser import _join
from tests.console.conftest import ConsoleFixture
from tests.console.links_payer import hosted_path, pay
from tests.console.pages import Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
#: What rings, so that the test hears it.
_LISTEN = """() => {
  window.heard = [];
  navigator.vibrate = pattern => heard.push(["vibrate", pattern.length]);
  window.AudioContext = class {
    currentTime = 0; destination = {};
    createOscillator() { return { frequency: {}, connect() {}, stop() {}, start() { heard.push(["tone"]); } }; }
  };
}"""


async def _fits_without_scrolling(cashier: Customer) -> None:
    await cashier.fits()
    assert await cashier.page.evaluate("document.documentElement.scrollHeight <= innerHeight"), cashier.page.url


async def _hosted(cashier: Customer) -> str:
    return hosted_path(Page(200, "", await cashier.page.content(), {}))


async def _sell(cashier: Customer, *keys: str) -> None:
    for key in keys:
        await cashier.page.get_by_role("button", name=key, exact=True).click()
    await cashier.follow(cashier.page.get_by_role("button", name="Encaisser"))
    await cashier.page.get_by_text("Le client paie").wait_for()


async def test_it_fits_a_telephone_and_rings(console: ConsoleFixture, browser: Browser) -> None:
    base, merchant = console.service.base_url, await console.merchant()
    async with customer(browser, base, "till", signs_in=True) as cashier:
        await cashier.open(f"{await _join(console, cashier, merchant)}/cash-desk")
        await cashier.page.evaluate(_LISTEN)
        await _fits_without_scrolling(cashier)
        await cashier.shoot("1-empty")
        await _sell(cashier, "5", "000")
        await expect(cashier.page).to_have_url(re.compile(r"/cash-desk/\d+$"))
        await _fits_without_scrolling(cashier)
        await cashier.shoot("2-waiting")
        await pay(console.browser(), await _hosted(cashier), "0197000000")
        await expect(cashier.page.locator("h1")).to_have_text("Payé")
        await expect(cashier.page).to_have_title(re.compile("^Payé · 5.000"))
        await expect(cashier.page.locator("#said")).to_have_text("Payé")
        assert await cashier.page.evaluate("heard") == [["vibrate", 3], ["tone"], ["tone"]]
        await _fits_without_scrolling(cashier)
        background = await cashier.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == "rgb(14, 90, 67)", "green, whatever the mode"
        await cashier.shoot("3-paid")
        await cashier.accessible()
        await cashier.page.go_back()
        await expect(cashier.page.get_by_role("button", name="Encaisser")).to_be_visible()
        cashier.nothing_strange()


async def test_a_lost_connection_is_said_and_made_up_for(console: ConsoleFixture, browser: Browser) -> None:
    base, merchant = console.service.base_url, await console.merchant()
    async with customer(browser, base, "till-lost", signs_in=True, changes_browser=True) as cashier:
        await cashier.open(f"{await _join(console, cashier, merchant)}/cash-desk")
        await _sell(cashier, "7", "0", "0")
        await cashier.context.set_offline(True)
        lost = cashier.page.locator("#lost")
        await expect(lost).to_have_text(re.compile(r"Connexion perdue depuis \d+ s\."))
        await expect(cashier.page.locator(".qr")).to_be_visible()
        await cashier.shoot("waiting")
        await _fits_without_scrolling(cashier)
        await pay(console.browser(), await _hosted(cashier), "0197000000")
        await cashier.context.set_offline(False)
        await expect(cashier.page.locator("h1")).to_have_text("Payé")
        await expect(lost).to_be_hidden()


async def test_an_amount_that_could_not_be_sent_makes_one_sale(console: ConsoleFixture, browser: Browser) -> None:
    base, merchant = console.service.base_url, await console.merchant()
    async with customer(browser, base, "till-again", signs_in=True, changes_browser=True) as cashier:
        await cashier.open(f"{await _join(console, cashier, merchant)}/cash-desk")
        lost = True

        async def lose_answers(route: Route) -> None:
            """The service gets the form, its answer does not come back."""
            if route.request.method == "POST" and lost:
                await route.fetch(max_redirects=0)
                await route.abort()
            else:
                await route.continue_()

        await cashier.page.route("**/cash-desk", lose_answers)
        await cashier.page.get_by_label("Montant (XOF)").fill("1500")
        await cashier.page.get_by_role("button", name="Encaisser").click()
        await expect(cashier.page.locator("#lost")).to_contain_text("touchez de nouveau")
        await expect(cashier.page.get_by_label("Montant (XOF)")).to_have_value("1500")
        lost = False
        await cashier.follow(cashier.page.get_by_role("button", name="Encaisser"))
        await cashier.page.get_by_text("Le client paie").wait_for()
        await cashier.open(f"/console/{merchant.id}/test/cash-desk")
        await expect(cashier.page.locator(".rows li")).to_have_count(1)


async def test_a_receipt_prints_whole_on_one_page(console: ConsoleFixture, browser: Browser) -> None:
    base = console.service.base_url
    merchant = await console.merchant("Établissements Kora et Fils de Porto-Novo")
    async with customer(browser, base, "receipt", signs_in=True) as cashier:
        await cashier.open(f"{await _join(console, cashier, merchant)}/cash-desk")
        await _sell(cashier, "9", "5", "0", "000")
        hosted = await _hosted(cashier)
        paid = await pay(console.browser(), hosted, "0197000000")
        await cashier.follow(cashier.page.get_by_role("link", name="Reçu"))
        await cashier.page.locator(".slip").wait_for()
        await cashier.accessible()
        async with customer(browser, base, "hosted") as awa:
            await awa.open(paid.path)
            for millimetres in (58, 80):
                await _prints(cashier, millimetres, "receipt")
                await _prints(awa, millimetres, "hosted")


async def _prints(who: Customer, millimetres: int, name: str) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    page: Any = who.page
    paper = await page.pdf(
        path=SHOTS / f"{name}-{millimetres}.pdf", width=f"{millimetres}mm", height="297mm", prefer_css_page_size=False
    )
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) == 1
    await page.emulate_media(media="print")
    before = page.viewport_size
    await page.set_viewport_size({"width": round(millimetres * 96 / 25.4), "height": 1100})
    cut = await page.evaluate(
        """() => [...document.querySelectorAll(".slip *")].filter(each => each.checkVisibility()
          && (each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0
              || each.getBoundingClientRect().right > innerWidth)).map(each => each.outerHTML.slice(0, 80))"""
    )
    assert cut == []
    await who.shoot(f"print-{name}")
    await page.set_viewport_size(before)
    await page.emulate_media(media="null")
