"""The back office about merchants and people, in Chromium: with and without JavaScript, on small and large screens."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, FilePayload

from guichet.settings import Settings
from tests.browser.driver import Customer, customer
from tests.console.conftest import ConsoleFixture
from tests.service_fixture import open_service

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
LONG = "Boutique Kora et Fils de Porto-Novo, Cotonou et Abomey-Calavi"
PDF = b"%PDF-1.7 " + b"x" * 70_000


@pytest_asyncio.fixture(loop_scope="session")
async def console(sqlite_settings: Settings) -> AsyncIterator[ConsoleFixture]:
    async with open_service(sqlite_settings) as service:
        yield ConsoleFixture(service)


def _file(mark: str) -> FilePayload:
    return {"name": "registre du commerce.pdf", "mimeType": "application/pdf", "buffer": PDF + mark.encode()}


async def _join(console: ConsoleFixture, admin: Customer, email: str) -> None:
    await admin.signed_in(await console.joined(email, None, "admin"))


@pytest.mark.parametrize("scripts", [True, False])
async def test_an_admin_opens_a_merchants_file_on_a_telephone(
    console: ConsoleFixture, browser: Browser, *, scripts: bool
) -> None:
    await console.service.merchant("Balafon", status="pending")
    base = console.service.base_url
    async with customer(browser, base, f"admin-{scripts}", scripts=scripts, signs_in=True) as admin:
        await _join(console, admin, f"admin-{scripts}@guichet.example")
        await admin.open("/admin")
        page = admin.page
        await admin.follow(page.get_by_role("link", name="Balafon"))
        await page.get_by_label("État").select_option("active")
        await page.get_by_label("Motif").fill("Dossier complet")
        await admin.follow(page.get_by_role("button", name="Changer l’état"))
        await page.get_by_role("status").get_by_text("C’est enregistré.").wait_for()
        await admin.follow(page.get_by_role("link", name="Documents"))
        await page.get_by_label("Fichier").set_input_files(_file("x"))
        await admin.follow(page.get_by_role("button", name="Envoyer le document"))
        async with page.expect_download() as download:
            await page.get_by_role("link", name="registre du commerce.pdf", exact=True).click()
        assert (await download.value).suggested_filename == "registre du commerce.pdf"
        await admin.follow(page.get_by_role("link", name="Supprimer registre"))
        await page.get_by_label("Motif").fill("Erreur")
        await admin.follow(page.get_by_role("button", name="Supprimer le document"))
        await page.get_by_text("Aucun document.").wait_for()
        admin.nothing_strange()


async def test_every_page_is_accessible_and_whole(console: ConsoleFixture, browser: Browser) -> None:
    base = console.service.base_url
    merchant = await console.merchant(LONG)
    await console.joined("awa.kossou-dossou@boutique-kora.example", merchant)
    async with customer(browser, base, "admin", signs_in=True, judged=True) as admin:
        await _join(console, admin, "admin@guichet.example")
        file = f"/admin/merchants/{merchant.id}"
        await admin.open(f"{file}/documents")
        await admin.page.get_by_label("Fichier").set_input_files(_file("y"))
        await admin.follow(admin.page.get_by_role("button", name="Envoyer le document"))
        removal = await admin.page.get_by_role("link", name="Supprimer registre").first.get_attribute("href")
        await admin.open(f"{file}/notes")
        await admin.page.get_by_label("Note", exact=True).fill("Rappeler vendredi.\nLe registre manque.")
        await admin.follow(admin.page.get_by_role("button", name="Ajouter la note"))
        every = (
            "/admin", "/admin/merchants", file, f"{file}/modes", f"{file}/documents", "/admin/staff/2",
            "/admin/audit-log", f"{file}/notes", "/admin/merchants/new",
            removal or "", "/admin/users", "/admin/users/1", "/admin/staff",
            f"{file}/developers", f"{file}/anonymise",
        )  # fmt: skip
        for path in every:
            await admin.open(path)
            await admin.seen(re.sub(r"\W+", "-", path))
        await admin.open("/admin/audit-log")
        await admin.follow(admin.page.get_by_role("button", name="Vérifier"))
        await admin.seen("verified")
        await admin.open("/admin/merchants/new")
        await admin.page.get_by_label("Nom").fill("Neuf")
        await admin.follow(admin.page.get_by_role("button", name="Créer le marchand"))
        await admin.seen("created")
        # Nobody else can approve a colleague: the request, and the form by which whoever is mailed objects.
        await admin.open("/admin/staff")
        await admin.page.get_by_label("Nom", exact=True).fill("Aminata Kossou-Dossou")
        await admin.page.get_by_label("Adresse e-mail").fill("aminata.kossou-dossou@boutique-kora.example")
        await admin.page.locator("input[name=role][value=admin]").check()
        await admin.follow(admin.page.get_by_role("button", name="Envoyer l’invitation"))
        await admin.seen("colleague asked for")
        await admin.open(await console.last_link())
        await admin.seen("objection")
        await admin.follow(admin.page.get_by_role("button", name="Je m’y oppose"))
        await admin.seen("objected")
