"""What a developer does right after `make run`: the real command, a link, a simulated phone that decides."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from playwright.async_api import Browser, BrowserContext, expect

from tests.browser.driver import Customer, customer
from tests.cli.conftest import Cli, clean_environ

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@dataclass
class Server:
    url: str
    key: str

    async def api(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {self.key}"}
        async with (
            aiohttp.ClientSession() as http,
            http.request(method, f"{self.url}/v1{path}", json=body, headers=headers) as answer,
        ):
            answered = await answer.json()
        assert answered["success"], answered
        return answered["data"]

    async def link(self) -> str:
        created = await self.api("POST", "/payment-links", {"amount": 5000, "description": "Trois pagnes wax"})
        return str(created["url"]).removeprefix(self.url)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("phone")
    cli = Cli({**clean_environ(folder), "GUICHET_LOG_LEVEL": "error"}, folder)
    merchant = cli("merchant", "create", "Boutique Kora", "--json").json
    with cli.running("serve") as serving:
        yield Server(serving.address, merchant["keys"]["live"])
        serving.stop()


async def test_the_simulated_phone_decides_the_payment(browser: Browser, server: Server) -> None:
    async with customer(browser, server.url, "simulated") as awa:
        await awa.open(await server.link())
        phone = await awa.context.new_page()
        for button, title in (("Refuser", "Le paiement n’a pas abouti"), ("Approuver", "Paiement réussi")):
            await awa.pay("Bénin", "MTN MoMo", "01 97 00 00 45")
            await awa.shoot("waiting")
            href = await awa.page.get_by_role("link", name="simulateur de téléphone").get_attribute("href")
            await phone.goto(server.url + str(href))
            await phone.locator("a.card").first.click()
            await phone.get_by_role("button", name=button).click()
            await expect(awa.page.locator("h1")).to_have_text(title)
            await awa.shoot("end")
            if button == "Refuser":
                await awa.follow(awa.page.get_by_role("link", name="Réessayer"))
        awa.nothing_strange()
    paid, refused = await server.api("GET", "/payments")
    assert (refused["status"], paid["status"]) == ("failed", "succeeded")
    assert paid["customer"]["phone_number"] == refused["customer"]["phone_number"] == "2290197000045"


async def test_an_operators_own_page_leads_back_to_the_receipt(browser: Browser, server: Server) -> None:
    async with customer(browser, server.url, "simulated-wave") as awa:
        await awa.open(await server.link())
        await awa.pay("Sénégal", "Wave", "77 123 45 67")
        await awa.follow(awa.page.get_by_role("link", name="Continuer avec Wave"))
        await awa.shoot("operator")
        await awa.follow(awa.page.get_by_role("button", name="Approuver"))
        await expect(awa.page.locator("h1")).to_have_text("Paiement réussi")
    assert (await server.api("GET", "/payments"))[0]["status"] == "succeeded"
    assert (await server.api("GET", "/payment-links"))[0]["uses_count"] == 1


async def test_a_code_comes_by_sms(browser: Browser, server: Server) -> None:
    before = await server.api("GET", "/payments")
    async with customer(browser, server.url, "simulated-code") as awa:
        await awa.open(await server.link())
        mode = await awa.choose("Bénin", "Coris Money")
        await awa.shoot("1-form")
        await awa.follow(mode.get_by_role("button", name="Recevoir le code par SMS"))
        number = awa.page.get_by_label("Votre numéro Coris Money")
        await expect(number).to_be_focused()
        await expect(number).to_have_accessible_description(re.compile("Écrivez le numéro"))
        await awa.shoot("2-fault")
        await number.fill("01 97 00 00 45")
        await awa.follow(awa.page.get_by_role("button", name="Recevoir le code par SMS"))
        code = awa.page.locator("details.mode[open]").get_by_label("Code de paiement")
        await expect(code).to_be_focused()
        await expect(code).to_have_accessible_description(re.compile("Un code a été envoyé"))
        await expect(number).to_have_value("01 97 00 00 45")
        await awa.fits()
        await awa.shoot("3-sent")
        assert await server.api("GET", "/payments") == before
        await code.fill(await _read_code(awa.context, server))
        # Enter pays: it does not request another code.
        await awa.follow(code, "Enter")
        await expect(awa.page.locator("h1")).to_have_text("Paiement réussi")
        await awa.shoot("4-receipt")
        awa.nothing_strange()
    payment = (await server.api("GET", "/payments"))[0]
    assert (payment["status"], payment["customer"]["phone_number"]) == ("succeeded", "2290197000045")


async def _read_code(context: BrowserContext, server: Server) -> str:
    phone = await context.new_page()
    await phone.goto(f"{server.url}/simulator/phone")
    found = re.search(r"Votre code est (\d+)", await phone.locator("main").inner_text())
    assert found is not None
    await phone.close()
    return found[1]


async def test_a_card_is_typed_on_the_banks_page(browser: Browser, server: Server) -> None:
    async with customer(browser, server.url, "simulated-card") as awa:
        await awa.open(await server.link())
        mode = await awa.choose("Carte bancaire", "Visa")
        await _fill_card(awa, mode)
        await awa.follow(awa.page.get_by_role("link", name="Continuer avec Visa"))
        await awa.follow(awa.page.get_by_role("button", name="Approuver"))
        await expect(awa.page.locator("h1")).to_have_text("Paiement réussi")
    assert (await server.api("GET", "/payments"))[0]["payment_mode"]["operator"] == "VISA"


async def _fill_card(awa: Customer, mode: Any) -> None:
    await mode.get_by_label("Prénom").fill("Awa")
    await mode.get_by_label("Nom", exact=True).fill("Diop")
    await mode.get_by_label("Adresse e-mail").fill("awa@example.com")
    await awa.follow(mode.get_by_role("button"))
