"""The ways between pages: the menu, the switch between live and test, the switch of the language."""

import re

from tests.console.conftest import ConsoleFixture
from tests.console.pages import Page


def _here(page: Page) -> str:
    """The menu's entry that the page is marked to belong to."""
    [text] = set(re.findall(r'<a href="[^"]+" aria-current="page"><svg[^>]*><path[^>]*></svg>([^<]+)</a>', page.text))
    return str(text)


def _link(page: Page, text: str) -> str:
    [href] = set(re.findall(rf'<a href="([^"]+)"[^>]*>(?:<svg[^>]*><path[^>]*></svg>)?{text}</a>', page.text))
    return str(href).replace("&amp;", "&")


async def test_the_menu_and_the_switch_of_the_environment_stay_in_the_section(sqlite_console: ConsoleFixture) -> None:
    merchant = await sqlite_console.merchant()
    owner = await sqlite_console.joined("awa@example.com", merchant)
    here = f"/console/{merchant.id}"
    assert _here(await owner.get(f"{here}/live")) == "Vue d’ensemble"
    assert _here(await owner.get(f"{here}/live/exports")) == "Exports"
    assert _link(owner.page, "Test") == f"{here}/test/exports"
    assert _here(await owner.get(f"{here}/live/links/new")) == "Liens"
    assert _link(owner.page, "Test") == f"{here}/test/links"
    developer = await sqlite_console.joined("ada@example.com", merchant, "developer")
    assert _here(await developer.get(f"{here}/test/balance")) == "Solde"
    assert _link(developer.page, "Réel") == f"{here}/live", "this role may not see the live balance"
    staff = await sqlite_console.joined("equipe@example.com", None, "admin")
    assert _here(await staff.get("/admin/ledger")) == "Rapprochement"
    assert _here(await staff.get("/admin/merchants/new")) == "Marchands"


async def test_a_page_that_says_no_keeps_the_menu_of_who_asks(sqlite_console: ConsoleFixture) -> None:
    merchant = await sqlite_console.merchant()
    reader = await sqlite_console.joined("awa@example.com", merchant, "reader")
    here = f"/console/{merchant.id}/live"
    unknown, refused = await reader.get(f"{here}/payments/x"), await reader.get(f"{here}/team")
    assert (unknown.status, _here(unknown)) == (404, "Paiements")
    assert (refused.status, _link(refused, "Paiements"), "/team" in refused.text) == (403, f"{here}/payments", False)
    foreign = await reader.get("/console/987654/live")
    assert (foreign.status, "987654" in foreign.text, "awa@example.com" in foreign.text) == (403, False, True)
    nowhere = await reader.get("/console/nowhere")
    assert (nowhere.status, _link(nowhere, "Sécurité")) == (404, "/console/security")
    stranger = await sqlite_console.browser().get("/console/nowhere")
    assert (stranger.status, "/console/security" in stranger.text) == (404, False)
    support = await sqlite_console.joined("equipe@example.com", None, "support")
    closed = await support.get("/admin/audit-log")
    assert (closed.status, _link(closed, "Incidents"), "/admin/audit-log" in closed.text) == (
        403,
        "/admin/incidents",
        False,
    )


async def test_another_language_keeps_what_was_searched_and_stays_chosen(sqlite_console: ConsoleFixture) -> None:
    merchant = await sqlite_console.merchant()
    owner = await sqlite_console.joined("awa@example.com", merchant)
    here = f"/console/{merchant.id}/test"
    await owner.get(f"{here}/payments?q=Koffi")
    assert _link(owner.page, "English") == "?q=Koffi&lang=en"
    for page in ("payments", "balance", "links", "activity", "webhooks/deliveries", "developers/requests"):
        shown = await owner.get(f"{here}/{page}?lang=en")
        by_get = [form for form in shown.forms() if "csrf" not in form.fields]
        assert by_get, page
        assert all(form.fields["lang"] == "en" for form in by_get), page


async def test_each_page_has_one_search_for_payments(sqlite_console: ConsoleFixture) -> None:
    merchant = await sqlite_console.merchant()
    owner = await sqlite_console.joined("awa@example.com", merchant)
    staff = await sqlite_console.joined("equipe@example.com", None, "admin")
    here = f"/console/{merchant.id}/live"
    for browser, path in ((owner, here), (owner, f"{here}/payments"), (staff, "/admin"), (staff, "/admin/payments")):
        assert (await browser.get(path)).text.count('role="search"') == 1, path
