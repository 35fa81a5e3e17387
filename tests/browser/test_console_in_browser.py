"""The console in Chromium: with and without JavaScript, on a telephone and a large screen, in light and dark."""

import re

import pytest
from playwright.async_api import Browser, expect

from tests.accounts.totp import code_of
from tests.browser.driver import Customer, customer
from tests.console.conftest import PASSWORD, ConsoleFixture

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
AWA = "awa.kossou-dossou@boutique-kora.example"


async def _set_up(console: ConsoleFixture, awa: Customer) -> str:
    await awa.page.get_by_role("heading", name="Protéger mon compte").wait_for()
    seed = (await awa.page.locator(".mono-text").inner_text()).replace(" ", "")
    await awa.page.get_by_label("Code", exact=True).fill(code_of(seed, console.service.clock.now()))
    await awa.follow(awa.page.get_by_role("button", name="Activer"))
    await awa.page.get_by_role("heading", name="Vos codes de secours").wait_for()
    console.service.clock.advance(60)
    return seed


async def test_an_owner_joins_invites_and_signs_out_without_scripts(console: ConsoleFixture, browser: Browser) -> None:
    service = console.service
    async with customer(browser, service.base_url, "console-nojs", scripts=False, signs_in=True) as awa:
        await awa.open(await console.invited(AWA, await console.merchant()))
        await awa.page.get_by_label("Nouveau mot de passe").fill(PASSWORD)
        await awa.follow(awa.page.get_by_role("button", name="Continuer"))
        seed = await _set_up(console, awa)
        await awa.follow(awa.page.get_by_role("link", name="Je les ai notés"))
        await awa.go_to("Équipe")
        await awa.page.get_by_label("Nom", exact=True).fill("Ada Mensah")
        await awa.page.get_by_label("Adresse e-mail").fill("ada@example.com")
        await awa.page.get_by_role("radio", name="Caisse").check()
        await awa.follow(awa.page.get_by_role("button", name="Envoyer l’invitation"))
        await awa.page.get_by_text("ada@example.com").wait_for()
        await awa.sign_out()
        await awa.page.get_by_label("Adresse e-mail").fill(AWA)
        await awa.page.get_by_label("Mot de passe", exact=True).fill(PASSWORD)
        await awa.follow(awa.page.get_by_role("button", name="Se connecter"))
        await awa.page.get_by_label("Code", exact=True).fill(code_of(seed, service.clock.now()))
        await awa.follow(awa.page.get_by_role("button", name="Continuer"))
        await awa.page.get_by_role("heading", name="Vue d’ensemble").wait_for()
        awa.nothing_strange()


async def test_every_page_is_accessible_and_whole(console: ConsoleFixture, browser: Browser) -> None:
    """On a telephone in light with every rule; in dark the colours again, on a large screen the layout."""
    base = console.service.base_url
    merchant = await console.merchant("Boutique Kora et Fils de Porto-Novo")
    async with customer(browser, base, "console", signs_in=True, judged=True) as awa:
        email = "console@example.com"
        await awa.seen("sign-in", "/console/sign-in")
        await awa.page.get_by_label("Adresse e-mail").fill(email)
        await awa.page.get_by_label("Mot de passe", exact=True).fill("mauvais mot de passe")
        await awa.follow(awa.page.get_by_role("button", name="Se connecter"))
        await awa.seen("sign-in-refused")
        await awa.seen("password", "/console/password")
        await awa.seen("link-used", "/console/password/" + "x" * 43)
        await awa.seen("invitation", await console.invited(email, merchant))
        field, meter = awa.page.get_by_label("Nouveau mot de passe"), awa.page.get_by_role("meter")
        for typed, weight in (("aaaaaaaaaaaaaaaaaa", 2), ("trois chats", 11), (PASSWORD, 19)):
            await field.fill(typed)
            await expect(meter).to_have_js_property("value", weight)
        await awa.page.get_by_label("Afficher le mot de passe").check()
        await expect(field).to_have_attribute("type", "text")
        await awa.seen("password-shown")
        await awa.follow(awa.page.get_by_role("button", name="Continuer"))
        await awa.seen("setup")
        await _set_up(console, awa)
        await awa.seen("recovery")
        for page in (
            "",
            "/security",
            "/factor",
            "/security/password",
            "/nowhere",
            "/mailbox",
        ):
            await awa.seen(re.sub(r"\W", "", page) or "home", f"/console{page}")
        await awa.open(f"/console/{merchant.id}/live")
        await awa.go_to("Équipe")
        await awa.seen("team")
        await awa.follow(awa.page.get_by_role("button", name="Retirer", exact=True).first)
        await awa.page.get_by_role("heading", name=re.compile("Retirer |Quitter ")).wait_for()
        await awa.seen("team-removal")
