"""Links and the cash desk in Chromium: a customer really pays while the cashier's screen is open."""

import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, expect

from guichet.domain.merchants import Merchant
from tests.browser.conftest import SHOTS
from tests.browser.driver import Customer, customer
from tests.console.conftest import ConsoleFixture

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
LONG: Any = "Commande 42 : trois pagnes wax hollandais, deux mètres de bazin riche et la couture"


async def _join(console: ConsoleFixture, cashier: Customer, merchant: Merchant) -> str:
    """Signs a cashier in; the path of the merchant's test pages."""
    await cashier.signed_in(await console.joined(f"{cashier.name}@example.com", merchant, "cashier"))
    return f"/console/{merchant.id}/test"


async def test_two_screens_see_a_customer_pay(console: ConsoleFixture, browser: Browser) -> None:
    """The cashier's telephone has no scripts, the tablet on the counter has."""
    base, merchant = console.service.base_url, await console.merchant()
    async with (
        customer(browser, base, "desk-nojs", scripts=False, signs_in=True) as cashier,
        customer(browser, base, "desk-js", signs_in=True) as tablet,
        customer(browser, base, "desk-customer") as awa,
    ):
        await cashier.open(f"{await _join(console, cashier, merchant)}/cash-desk")
        await cashier.page.get_by_label("Montant (XOF)").fill("abc")
        await cashier.follow(cashier.page.get_by_role("button", name="Encaisser"))
        amount = cashier.page.get_by_label("Montant (XOF)")
        await expect(amount).to_have_attribute("aria-invalid", "true")
        await expect(amount).to_have_value("abc")
        await cashier.shoot("1-fault")
        await amount.fill("2 500")
        await cashier.follow(amount, "Enter")
        await expect(cashier.page.locator("h1")).to_have_text("En attente du client")
        await cashier.shoot("2-waiting")
        await tablet.context.add_cookies(await cashier.context.cookies())  # type: ignore[arg-type]
        await tablet.page.goto(cashier.page.url)
        address = await cashier.page.locator("a[href*='/pay/']").last.get_attribute("href")
        await awa.open(urlsplit(str(address)).path)
        await awa.pay("Bénin", "MTN MoMo", "01 97 00 00 03")

        async def both(state: str) -> None:
            """Nobody touches the screens: they change by themselves."""
            for who in (cashier, tablet):
                await expect(who.page.locator("h1")).to_have_text(state)
                await who.shoot(state)

        await both("Échoué, le client peut réessayer")
        await awa.follow(awa.page.get_by_role("link", name="Réessayer"))
        await awa.page.get_by_label("Votre numéro MTN MoMo").and_(awa.page.locator(":visible")).fill("01 97 00 12 45")
        await awa.follow(awa.page.locator("details.mode[open] button"))
        await both("Le client valide")
        console.service.clock.advance(11)
        await expect(awa.page.locator("h1")).to_have_text("Paiement réussi")
        await both("Payé")
        for who in (cashier, tablet):
            await expect(who.page.get_by_text("MTN MoMo")).to_be_visible()
            await expect(who.page.locator("body.paid")).to_be_visible()
            await expect(who.page).to_have_title(re.compile("^Payé"))
        await cashier.follow(cashier.page.get_by_role("link", name="Nouveau montant"))
        await cashier.page.get_by_text("Aujourd’hui").click()
        await expect(cashier.page.get_by_text("Payé", exact=True)).to_be_visible()
        await cashier.shoot("6-sales")
        for who in (cashier, tablet, awa):
            who.nothing_strange()


async def test_every_page_of_links_is_accessible_and_whole(console: ConsoleFixture, browser: Browser) -> None:
    base = console.service.base_url
    merchant = await console.merchant("Boutique Kora et Fils de Porto-Novo")
    async with customer(browser, base, "links", signs_in=True, judged=True) as awa:
        pages = await _join(console, awa, merchant)
        await awa.seen("list-empty", f"{pages}/links")
        await awa.seen("new", f"{pages}/links/new")
        await awa.page.get_by_label("Montant (XOF)").fill("12,5")
        await awa.page.get_by_label("Libellé").fill(LONG)
        await awa.follow(awa.page.get_by_role("button", name="Créer le lien"))
        await awa.seen("new-faults")
        await awa.page.get_by_label("Montant (XOF)").fill("12 500")
        await awa.follow(awa.page.get_by_role("button", name="Créer le lien"))
        await awa.page.get_by_role("heading", name=LONG).wait_for()
        await awa.seen("link")
        await awa.follow(awa.page.get_by_role("link", name="Affiche à imprimer"))
        await awa.page.get_by_role("button", name="Imprimer").wait_for()
        await awa.seen("poster")
        await _print(awa)
        await awa.page.go_back()
        await awa.page.get_by_text("Fermer ce lien").click()
        await awa.follow(awa.page.get_by_role("button", name="Fermer maintenant"))
        await awa.page.get_by_text("fermé", exact=True).wait_for()
        await awa.seen("closed")
        await awa.seen("list-some", f"{pages}/links")
        await awa.open(f"{pages}/cash-desk")
        await awa.page.get_by_label("Montant (XOF)").fill("500")
        await awa.follow(awa.page.get_by_role("button", name="Encaisser"))
        await awa.page.get_by_role("heading", name="En attente du client").wait_for()
        await awa.seen("sale")
        await awa.seen("desk", f"{pages}/cash-desk")


async def _print(awa: Customer) -> None:
    """The poster on paper of both sizes: one page, with nothing around it."""
    await awa.page.emulate_media(media="print")
    for gone in (".frame", ".dock", ".skip", "[data-print]"):
        await expect(awa.page.locator(gone).first).to_be_hidden()
    await expect(awa.page.get_by_text("aucun argent ne circule").first).to_be_visible()
    margin = {"top": "10mm", "right": "10mm", "bottom": "10mm", "left": "10mm"}
    for size in ("A4", "A5"):
        paper = await awa.page.pdf(
            path=SHOTS / f"{awa.name}-poster-{size}.pdf",
            format=size,
            margin=margin,  # type: ignore[arg-type]
        )
        assert len(re.findall(rb"/Type\s*/Page\b", paper)) == 1, size
    await awa.page.emulate_media(media="null")
