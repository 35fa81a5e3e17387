"""The console in Chromium: with and without JavaScript, on a telephone and a large screen, in light and dark."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from guichet.settings import Settings
from tests.accounts.totp import code_of
from tests.browser.driver import OF_COLOURS, OF_LAYOUT, Customer, customer
from tests.console.conftest import PASSWORD, ConsoleFixture
from tests.service_fixture import open_service

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
AWA = "awa.kossou-dossou@boutique-kora.example"


@pytest_asyncio.fixture(loop_scope="session")
async def console(sqlite_settings: Settings) -> AsyncIterator[ConsoleFixture]:
    async with open_service(sqlite_settings) as service:
        yield ConsoleFixture(service)


async def _set_up(console: ConsoleFixture, awa: Customer) -> str:
    await awa.page.get_by_role("heading", name="Protéger mon compte").wait_for()
    seed = (await awa.page.locator(".mono-text").inner_text()).replace(" ", "")
    await awa.page.get_by_label("Code", exact=True).fill(code_of(seed, console.service.clock.now()))
    await awa.page.get_by_role("button", name="Activer").click()
    await awa.page.get_by_role("heading", name="Vos codes de secours").wait_for()
    console.service.clock.advance(60)
    return seed


@pytest.mark.parametrize("scripts", [True, False])
async def test_an_owner_joins_invites_and_signs_out_on_a_telephone(
    console: ConsoleFixture, browser: Browser, *, scripts: bool
) -> None:
    service = console.service
    async with customer(browser, service.base_url, f"console-{scripts}", scripts=scripts, signs_in=True) as awa:
        await awa.open(await console.invited(AWA, await console.merchant()))
        await awa.page.get_by_label("Nouveau mot de passe").fill(PASSWORD)
        await awa.page.get_by_role("button", name="Continuer").click()
        seed = await _set_up(console, awa)
        await awa.page.get_by_role("link", name="Je les ai notés").click()
        await awa.page.get_by_role("link", name="Équipe").click()
        await awa.page.get_by_label("Nom", exact=True).fill("Ada Mensah")
        await awa.page.get_by_label("Adresse e-mail").fill("ada@example.com")
        await awa.page.get_by_role("radio", name="Caisse").check()
        await awa.page.get_by_role("button", name="Envoyer l’invitation").click()
        await awa.page.get_by_text("ada@example.com").wait_for()
        await awa.page.get_by_role("button", name="Se déconnecter").click()
        await awa.page.get_by_label("Adresse e-mail").fill(AWA)
        await awa.page.get_by_label("Mot de passe", exact=True).fill(PASSWORD)
        await awa.page.get_by_role("button", name="Se connecter").click()
        await awa.page.get_by_label("Code", exact=True).fill(code_of(seed, service.clock.now()))
        await awa.page.get_by_role("button", name="Continuer").click()
        await awa.page.get_by_role("heading", name="Vue d’ensemble · Boutique Kora").wait_for()
        awa.nothing_strange()


async def test_every_page_is_accessible_and_whole(console: ConsoleFixture, browser: Browser) -> None:
    """On a telephone in light with every rule; in dark the colours again, on a large screen the layout."""
    base = console.service.base_url
    merchant = await console.merchant("Boutique Kora et Fils de Porto-Novo")
    for dark, desktop, rules in ((False, False, ()), (True, False, OF_COLOURS), (False, True, OF_LAYOUT)):
        name = f"console{'-dark' if dark else ''}{'-desktop' if desktop else ''}"
        async with customer(browser, base, name, dark=dark, desktop=desktop, signs_in=True) as awa:
            email = f"{name}@example.com"
            await _seen(awa, "sign-in", "/console/sign-in", *rules)
            await awa.page.get_by_label("Adresse e-mail").fill(email)
            await awa.page.get_by_label("Mot de passe", exact=True).fill("mauvais mot de passe")
            await awa.page.get_by_role("button", name="Se connecter").click()
            await _seen(awa, "sign-in-refused", None, *rules)
            await _seen(awa, "password", "/console/password", *rules)
            await _seen(awa, "link-used", "/console/password/" + "x" * 43, *rules)
            await _seen(awa, "invitation", await console.invited(email, merchant), *rules)
            await awa.page.get_by_label("Nouveau mot de passe").fill(PASSWORD)
            await awa.page.get_by_role("button", name="Continuer").click()
            await _seen(awa, "setup", None, *rules)
            await _set_up(console, awa)
            await _seen(awa, "recovery", None, *rules)
            for page in (
                "",
                "/security",
                f"/{merchant.id}/live/team",
                "/factor",
                "/security/password",
                "/nowhere",
                "/mailbox",
            ):
                await _seen(awa, re.sub(r"\W", "", page) or "home", f"/console{page}", *rules)
            await awa.open(f"/console/{merchant.id}/live/team")
            await awa.page.get_by_role("button", name="Retirer", exact=True).first.click()
            await awa.page.get_by_role("heading", name=re.compile("Retirer |Quitter ")).wait_for()
            await _seen(awa, "team-removal", None, *rules)


async def test_a_password_is_weighed_and_shown(console: ConsoleFixture, browser: Browser) -> None:
    async with customer(browser, console.service.base_url, "console-typed", signs_in=True) as awa:
        await awa.open(await console.invited("typed@example.com", await console.merchant(), "reader"))
        field, meter = awa.page.get_by_label("Nouveau mot de passe"), awa.page.get_by_role("meter")
        for typed, weight in (("aaaaaaaaaaaaaaaaaa", 2), ("trois chats", 11), (PASSWORD, 19)):
            await field.fill(typed)
            assert await meter.evaluate("(element) => element.value") == weight
        await awa.page.get_by_label("Afficher le mot de passe").check()
        assert await field.get_attribute("type") == "text"
        await _seen(awa, "password", None)


async def _seen(awa: Customer, step: str, path: str | None, *rules: str) -> None:
    if path is not None:
        await awa.open(path)
    await awa.fits()
    await awa.accessible(*rules)
    await awa.shoot(step)
