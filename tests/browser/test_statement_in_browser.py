"""A provider's statement in Chromium: sent with a fault, corrected, compared, and its differences read."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, FilePayload, expect

from guichet.settings import Settings
from tests.browser.driver import customer
from tests.console.admin.test_statement_comparison import PATH, SETUP
from tests.console.conftest import ConsoleFixture
from tests.providers.simulated_providers import SimulatedProviders, open_simulated_providers

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def simulated(sqlite_settings: Settings) -> AsyncIterator[SimulatedProviders]:
    async with open_simulated_providers(sqlite_settings, SETUP) as opened:
        yield opened


def _file(lines: str) -> FilePayload:
    return {"name": "relevé.csv", "mimeType": "text/csv", "buffer": lines.encode()}


async def test_a_statement_is_corrected_and_compared(simulated: SimulatedProviders, browser: Browser) -> None:
    service = simulated.service
    paid = await simulated.merchant.live.pay("9001", phone_number="2290161009001")
    for _ in range(3):
        await simulated.turn(10)
    async with customer(browser, service.base_url, "statement", signs_in=True, judged=True) as awa:
        await awa.signed_in(await ConsoleFixture(service).joined("awa@example.com", None, "finance"))
        await awa.open(PATH)
        await awa.seen("form")
        page = awa.page
        lines = f"Ref;Montant;Jour\n{paid['reference']};12;2026-01-03\n=inconnu;500,50;03/01/2026\n"
        await page.get_by_label("Fichier CSV").set_input_files(_file(lines))
        await awa.follow(page.get_by_role("button", name="Comparer"))
        await page.get_by_role("alert").get_by_text("aucune colonne").wait_for()
        await page.get_by_label("Colonne\u00a0: référence").fill("Ref")
        await page.get_by_label("Colonne\u00a0: montant").fill("Montant")
        await page.get_by_label("Colonne\u00a0: date").fill("Jour")
        await page.get_by_label("Fichier CSV").set_input_files(_file(lines))
        await awa.follow(page.get_by_role("button", name="Comparer"))
        await page.get_by_text("en cours").first.wait_for()
        await simulated.nudged(service.worker.run_until_idle())
        # Nobody touches the page: it changes by itself.
        await page.get_by_role("heading", name="Écarts").wait_for()
        await expect(page.get_by_text("=inconnu")).to_have_count(1)
        await expect(page.get_by_text(paid["reference"])).to_have_count(2)  # Ours and the provider's.
        await awa.seen("result")
        async with page.expect_download() as downloading:
            await page.get_by_role("link", name="Télécharger les écarts").click()
        assert (await downloading.value).suggested_filename == "differences-1.csv"
        awa.nothing_strange()
