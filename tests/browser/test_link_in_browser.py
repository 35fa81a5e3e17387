"""Paying a link in a real Chromium: on a phone and on a desktop, with JavaScript and without."""

import asyncio
import re

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.driver import customer
from tests.checkout.checkout_fixture import CheckoutFixture
from tests.patience import PATIENCE

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize(("desktop", "scripts"), [(False, True), (True, False)], ids=["phone-js", "desktop-nojs"])
async def test_a_customer_pays_a_link_in_the_browser(
    browser: Browser, checkout: CheckoutFixture, desktop: bool, scripts: bool
) -> None:
    name = f"path-{'desktop' if desktop else 'phone'}-{'js' if scripts else 'nojs'}"
    path = await checkout.link(5000, "Commande 42 : trois pagnes wax", type="limité", max_uses=1)
    async with customer(browser, checkout.url, name, desktop=desktop, scripts=scripts) as awa:
        assert await awa.open(path) == 200
        await awa.shoot("1-link")
        mode = await awa.choose("Bénin", "MTN MoMo")
        await expect(mode.get_by_text("Total à payer")).to_be_visible()
        await awa.shoot("2-operator")
        await mode.get_by_label("Votre numéro MTN MoMo").fill("01 97")
        await awa.follow(mode.get_by_role("button", name="Payer"))
        await expect(awa.page.get_by_text("pas complet")).to_be_visible()
        number = awa.page.locator("details.mode[open]").get_by_label("Votre numéro MTN MoMo")
        await expect(number).to_be_focused()
        await expect(number).to_have_value("01 97")
        await expect(number).to_have_accessible_description(re.compile("pas complet"))
        await awa.shoot("3-fault")
        await number.fill("01 97 00 00 45")
        await awa.follow(awa.page.locator("details.mode[open] button"))
        assert await awa.title() == "Validez le paiement sur votre téléphone"
        await awa.shoot("4-waiting")
        checkout.operator.refuse(checkout.operator.last.payment.reference)
        checkout.pass_time(6)
        # Nobody touches the page: it changes by itself.
        await expect(awa.page.locator("h1")).to_have_text("Le paiement n’a pas abouti")
        await awa.shoot("5-failure")
        await awa.follow(awa.page.get_by_role("link", name="Réessayer"))
        # Where the customer was: the same country and operator, unfolded.
        await awa.page.get_by_label("Votre numéro MTN MoMo").and_(awa.page.locator(":visible")).fill("01 97 00 00 46")
        await awa.follow(awa.page.locator("details.mode[open] button"))
        checkout.operator.approve(checkout.operator.last.payment.reference)
        checkout.pass_time(6)
        await expect(awa.page.locator("h1")).to_have_text("Paiement réussi")
        if scripts:
            await expect(awa.page.locator("h1")).to_be_focused()
            await expect(awa.page.get_by_role("button", name="Imprimer le reçu")).to_be_visible()
        else:
            await expect(awa.page.locator("[data-print]")).to_be_hidden()
        assert checkout.operator.last.payment.reference in await awa.page.locator("main").inner_text()
        await awa.shoot("6-receipt")
        await awa.page.reload()
        assert await awa.title() == "Paiement réussi"
        awa.nothing_strange()
    numbers = [charge.payment.phone_number for charge in checkout.operator.charges.values()]
    assert numbers == ["2290197000045", "2290197000046"]


async def test_a_double_click_charges_once(browser: Browser, checkout: CheckoutFixture) -> None:
    checkout.operator.slowness = 0.5
    async with customer(browser, checkout.url, "double") as awa:
        await awa.open(await checkout.link())
        mode = await awa.choose("Bénin", "MTN MoMo")
        await mode.get_by_label("Votre numéro MTN MoMo").fill("01 97 00 00 45")
        await mode.get_by_role("button").dblclick(no_wait_after=True)
        await expect(awa.page.locator("h1")).to_have_text("Validez le paiement sur votre téléphone")
        awa.nothing_strange()
        # The second click may be answered first, while the provider still takes the first one's charge.
        async with asyncio.timeout(PATIENCE):
            while not checkout.operator.charges:
                await asyncio.sleep(0.05)
        await asyncio.sleep(2 * checkout.operator.slowness)
    assert len(checkout.operator.charges) == 1


async def test_going_back_leads_to_the_payment_that_waits(browser: Browser, checkout: CheckoutFixture) -> None:
    async with customer(browser, checkout.url, "back") as awa:
        await awa.open(await checkout.link())
        await awa.pay("Bénin", "MTN MoMo", "01 97 00 00 45")
        before = await awa.title()
        await awa.page.go_back()
        assert await awa.title() == before
        awa.nothing_strange()
    assert len(checkout.operator.charges) == 1


async def test_a_link_can_be_paid_with_the_keyboard_only(browser: Browser, checkout: CheckoutFixture) -> None:
    async with customer(browser, checkout.url, "keyboard", desktop=True) as awa:
        await awa.open(await checkout.link())
        await _tab_to(awa.page, "Sénégal")
        await awa.page.keyboard.press("Enter")
        await _tab_to(awa.page, "Orange Money")
        await awa.page.keyboard.press("Space")
        await awa.page.keyboard.press("Tab")
        await awa.page.keyboard.type("77 123 45 67")
        await awa.shoot("focus")
        await awa.page.keyboard.press("Tab")
        await awa.page.keyboard.type("654321")
        await awa.page.keyboard.press("Enter")
        await expect(awa.page.locator("h1")).to_have_text("Paiement en cours")
        awa.nothing_strange()
    charge = checkout.operator.last
    assert (charge.payment.operator, charge.payment.phone_number, charge.otp) == ("orange_sn", "221771234567", "654321")


async def test_the_customers_country_is_open_already(browser: Browser, checkout: CheckoutFixture) -> None:
    async with customer(browser, checkout.url, "country", locale="fr-TG") as awa:
        await awa.open(await checkout.link())
        assert await awa.page.locator("details.group[open] > summary b").all_inner_texts() == ["Togo"]


async def test_the_receipt_is_made_for_paper(browser: Browser, checkout: CheckoutFixture) -> None:
    path = await checkout.waiting(await checkout.link())
    checkout.operator.approve(checkout.operator.last.payment.reference)
    checkout.pass_time(6)
    async with customer(browser, checkout.url, "paper", dark=True, changes_browser=True) as awa:
        await awa.page.add_init_script("window.print = () => { document.title = 'printed' }")
        await awa.open(path)
        await awa.page.get_by_role("button", name="Imprimer le reçu").click()
        await expect(awa.page).to_have_title("printed")
        await awa.page.emulate_media(media="print", color_scheme="dark")
        for gone in (".top", ".foot", "[data-print]"):
            await expect(awa.page.locator(gone).first).to_be_hidden()
        await expect(awa.page.get_by_text(checkout.operator.last.payment.reference)).to_be_visible()
        paper = "getComputedStyle(document.body).backgroundColor"
        assert await awa.page.evaluate(paper) == "rgb(255, 255, 255)"
        await awa.shoot("receipt")
        awa.nothing_strange()


async def test_no_site_can_frame_the_page(browser: Browser, checkout: CheckoutFixture) -> None:
    async with customer(browser, checkout.url, "frame", changes_browser=True) as awa:
        path = await checkout.link()
        async with awa.page.expect_console_message(lambda said: "frame-ancestors" in said.text):
            await awa.page.set_content(f'<iframe src="{checkout.url}{path}"></iframe>')
        frame = awa.page.frames[1]
        assert "Boutique Kora" not in await frame.content()


async def _tab_to(page: Page, words: str) -> None:
    for _ in range(40):
        await page.keyboard.press("Tab")
        if words in await page.evaluate("document.activeElement.innerText || ''"):
            return
    raise AssertionError(f"{words} was not reached")
