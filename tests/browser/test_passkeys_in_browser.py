"""Passkeys with Chromium's virtual authenticator: added, used as a second factor and to sign in, removed; and another
telephone in place of the one before."""

import re
from dataclasses import replace

import pytest
from playwright.async_api import Browser

from guichet.clock import SECOND
from guichet.domain.accounts import STEP_UP_LASTS
from guichet.settings import Settings
from tests.accounts.totp import code_of
from tests.browser.driver import customer
from tests.console.conftest import PASSWORD, ConsoleFixture
from tests.ports import free_port
from tests.service_fixture import open_service

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}
SAYS_REFUSED = """() => {
  const get = navigator.credentials.get.bind(navigator.credentials);
  navigator.credentials.get = asked => get(asked).catch(error => { console.info("refused"); throw error; });
}"""


async def test_a_passkey_signs_in_and_is_a_second_factor(sqlite_settings: Settings, browser: Browser) -> None:
    port = free_port()
    base = f"http://localhost:{port}"  # An address is no host of a passkey.
    async with open_service(replace(sqlite_settings, public_url=base), port=port) as service:
        console = ConsoleFixture(service)
        async with customer(browser, base, "passkey", signs_in=True, changes_browser=True) as awa:
            devices = await awa.context.new_cdp_session(awa.page)
            await devices.send("WebAuthn.enable")
            device = (await devices.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR}))[
                "authenticatorId"
            ]
            await awa.signed_in(await console.joined("awa@example.com", await console.merchant()))

            await awa.open("/console/security")
            await awa.page.get_by_label("Nom de cet appareil").fill("Téléphone d’Awa")
            await awa.follow(awa.page.get_by_role("button", name="Ajouter une clé d’accès"))
            await awa.page.get_by_text("jamais utilisée").wait_for()
            await awa.accessible()
            await awa.fits()
            await awa.shoot("added")
            assert (await console.mails())[0].kind == "factor_changed"

            service.clock.advance(STEP_UP_LASTS / SECOND + 1)
            await awa.open("/console/security")
            await awa.follow(awa.page.get_by_role("link", name="Confirmer mon identité"))
            await awa.follow(awa.page.get_by_role("button", name="Utiliser une clé d’accès"))
            await awa.page.get_by_text("utilisée le").wait_for()

            await awa.sign_out()
            await awa.shoot("sign-in")
            await devices.send("WebAuthn.setUserVerified", {"authenticatorId": device, "isUserVerified": False})
            await awa.page.evaluate(SAYS_REFUSED)
            async with awa.page.expect_console_message(lambda said: said.text == "refused"):
                await awa.page.get_by_role("button", name="Utiliser une clé d’accès").click()
            assert "/console/sign-in" in awa.page.url, "a key without its finger or PIN"
            await devices.send("WebAuthn.setUserVerified", {"authenticatorId": device, "isUserVerified": True})
            await awa.follow(awa.page.get_by_role("button", name="Utiliser une clé d’accès"))
            await awa.page.locator(".top details.drop summary").wait_for()

            await awa.open("/console/security")
            await awa.follow(awa.page.get_by_role("link", name="Changer de téléphone"))
            seed = (await awa.page.locator(".mono-text").inner_text()).replace(" ", "")
            await awa.page.get_by_label("Code", exact=True).fill(code_of(seed, service.clock.now()))
            await awa.follow(awa.page.get_by_role("button", name="Activer"))
            await awa.follow(awa.page.get_by_role("button", name=re.compile("Retirer")))
            await awa.page.get_by_text("Téléphone d’Awa").wait_for(state="detached")
            await awa.sign_out()
            await awa.follow(awa.page.get_by_role("button", name="Utiliser une clé d’accès"))
            await awa.page.get_by_text("n’a pas été acceptée").wait_for()

            service.clock.advance(60)
            await awa.open("/console/sign-in")
            await awa.page.get_by_label("Adresse e-mail").fill("awa@example.com")
            await awa.page.get_by_label("Mot de passe", exact=True).fill(PASSWORD)
            await awa.follow(awa.page.get_by_role("button", name="Se connecter"))
            await awa.page.get_by_label("Code", exact=True).fill(code_of(seed, service.clock.now()))
            await awa.follow(awa.page.get_by_role("button", name="Continuer"))
            await awa.page.locator(".top details.drop summary").wait_for()
