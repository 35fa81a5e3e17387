"""The back office about merchants and people, in Chromium: an administrator at work, on small and large screens."""

import re

import pytest
from playwright.async_api import Browser, FilePayload

from tests.browser.driver import Customer, customer
from tests.console.conftest import ConsoleFixture

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
LONG = "Boutique Kora et Fils de Porto-Novo, Cotonou et Abomey-Calavi"
FILE: FilePayload = {
    "name": "registre du commerce.pdf",
    "mimeType": "application/pdf",
    "buffer": b"%PDF-1.7 " + b"x" * 70_000,
}


async def _join(console: ConsoleFixture, admin: Customer, email: str) -> None:
    await admin.signed_in(await console.joined(email, None, "admin"))


async def test_an_admin_works_on_accessible_and_whole_pages(console: ConsoleFixture, browser: Browser) -> None:
    base = console.service.base_url
    await console.service.merchant("Balafon", status="pending")
    merchant = await console.merchant(LONG)
    await console.joined("awa.kossou-dossou@boutique-kora.example", merchant)
    async with customer(browser, base, "admin", signs_in=True, judged=True) as admin:
        await _join(console, admin, "admin@guichet.example")
        page, file = admin.page, f"/admin/merchants/{merchant.id}"
        await admin.seen("home", "/admin")
        await admin.follow(page.get_by_role("link", name="Balafon"))
        await page.get_by_label("État").select_option("active")
        await page.get_by_label("Motif").fill("Dossier complet")
        await admin.follow(page.get_by_role("button", name="Changer l’état"))
        await page.get_by_role("status").get_by_text("C’est enregistré.").wait_for()
        await admin.open(file)
        await admin.follow(page.get_by_role("link", name="Documents"))
        await page.get_by_label("Fichier").set_input_files(FILE)
        await admin.follow(page.get_by_role("button", name="Envoyer le document"))
        await admin.seen("documents")
        async with page.expect_download() as download:
            await page.get_by_role("link", name=FILE["name"], exact=True).click()
        assert (await download.value).suggested_filename == FILE["name"]
        await admin.follow(page.get_by_role("link", name="Supprimer registre"))
        await admin.seen("document-removal")
        await page.get_by_label("Motif").fill("Erreur")
        await admin.follow(page.get_by_role("button", name="Supprimer le document"))
        await page.get_by_text("Aucun document.").wait_for()
        await admin.open(f"{file}/notes")
        await page.get_by_label("Note", exact=True).fill("Rappeler vendredi.\nLe registre manque.")
        await admin.follow(page.get_by_role("button", name="Ajouter la note"))
        await admin.seen("notes")
        admin.nothing_strange()
        every = (
            "/admin/merchants", file, f"{file}/modes", "/admin/staff/2", "/admin/users", "/admin/users/1",
            "/admin/staff", f"{file}/developers", f"{file}/anonymise", "/admin/audit-log",
        )  # fmt: skip
        for path in every:
            await admin.seen(re.sub(r"\W+", "-", path), path)
        await admin.follow(admin.page.get_by_role("button", name="Vérifier"))
        await admin.seen("verified")
        await admin.seen("new", "/admin/merchants/new")
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
