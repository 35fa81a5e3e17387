"""The back office's pages about merchants: who opens which, what they show, and what changing something does."""

import asyncio
import re

import pytest

from guichet.audit_log.entries import verify
from guichet.clock import SECOND
from guichet.db.engine import require
from guichet.domain.accounts import STEP_UP_LASTS
from guichet.domain.merchants import MerchantLimits
from guichet.domain.money import Hundredths
from guichet.domain.roles import STAFF_ROLES, StaffRole, may_as_staff
from guichet.merchants import api_keys
from guichet.merchants import repository as merchants
from tests.console.admin.conftest import Staff, csrf_of
from tests.console.conftest import ConsoleBrowser

#: Pages of this part of the back office, with the right that opens them; {} is a merchant's id.
PAGES = {
    "/admin": "doctor.view",
    "/admin/merchants": "merchants.view",
    "/admin/merchants/new": "merchants.change",
    "/admin/merchants/{}": "merchants.view",
    "/admin/merchants/{}/modes": "merchants.view",
    "/admin/merchants/{}/notes": "merchants.view",
    "/admin/merchants/{}/documents": "documents.view",
    "/admin/merchants/{}/developers": "merchants.view",
    "/admin/merchants/{}/anonymise": "merchants.change",
    "/admin/users": "merchants.view",
    "/admin/staff": "staff.view",
    "/admin/audit-log": "audit_log.view",
}
#: What changes something, with the right that it needs.
ACTS = {
    "/admin/merchants/new": "merchants.change",
    "/admin/merchants/{}": "merchants.change",
    "/admin/merchants/{}/modes": "merchants.change",
    "/admin/merchants/{}/notes": "notes.add",
    "/admin/merchants/{}/documents": "documents.change",
    "/admin/merchants/{}/developers": "merchants.change",
    "/admin/merchants/{}/anonymise": "merchants.change",
    "/admin/staff": "staff.change",
}


@pytest.mark.parametrize("role", STAFF_ROLES)
async def test_each_staff_role_opens_and_changes_what_its_rights_say(sqlite_staff: Staff, role: StaffRole) -> None:
    merchant = await sqlite_staff.console.merchant("Boutique Kora")
    browser = await sqlite_staff.browser(role)
    for path, right in PAGES.items():
        page = await browser.get(path.format(merchant.id))
        assert page.status == (200 if may_as_staff(role, right) else 403), path  # type: ignore[arg-type]
    csrf = await csrf_of(browser)
    before = len(await sqlite_staff.acts())
    for path, right in ACTS.items():
        page = await browser.post(path.format(merchant.id), {"csrf": csrf, "act": "none"})
        assert page.status == (422 if may_as_staff(role, right) else 403), path  # type: ignore[arg-type]
    forms = await browser.get(f"/admin/merchants/{merchant.id}")
    assert ("Changer l’état" in forms.text) is may_as_staff(role, "merchants.change")
    notes = await browser.get(f"/admin/merchants/{merchant.id}/notes")
    assert ('name="text"' in notes.text) is may_as_staff(role, "notes.add")
    assert ("Portefeuilles" in forms.text.partition("<main")[2]) is may_as_staff(role, "wallets.view")
    reads = [each.action for each in (await sqlite_staff.acts())[: len(await sqlite_staff.acts()) - before]]
    assert set(reads) <= {"merchant.read", "staff.listed", "merchant.notes_read"}, "nothing but reads is in the log"
    assert "merchant.read" in reads


async def test_nobody_else_sees_the_back_office(sqlite_staff: Staff) -> None:
    console = sqlite_staff.console
    merchant = await console.merchant()
    owner = await console.joined("awa@example.com", merchant)
    csrf = await csrf_of(owner)
    stranger = console.browser()
    for path in PAGES:
        address = path.format(merchant.id)
        assert (await owner.get(address)).status == 403
        assert (await owner.post(address, {"csrf": csrf})).status in (403, 405)
        assert (await stranger.get(address)).path == f"/console/sign-in?next={address.replace('/', '%2F')}"
        assert (await stranger.post(address, {})).path in ("/console/sign-in", address)
    assert require(await merchants.get(console.service.ctx.db, merchant.id)).status == "active"


async def test_the_staff_land_in_the_back_office_and_see_what_waits(sqlite_staff: Staff) -> None:
    console = sqlite_staff.console
    client = await console.service.merchant("Balafon", status="pending")
    await client.live.report_mismatch("0d4f4a52-6f7e-4a5b-9f6d-2f1f0f1a8f10")
    await console.service.make_checks()
    support = await sqlite_staff.browser("support")
    page = await support.get("/console")
    assert page.path == "/admin"
    assert "Balafon" in page.text
    assert '<a class="go" href="/admin/incidents">Incidents</a>' in page.text
    assert "1 × " in page.text
    assert "/admin/approvals" not in page.text, "support approves nothing"
    assert "Dernier audit du grand livre" not in page.text, "support has no right ledger.audit"
    assert "Dernier audit du grand livre" in (await (await sqlite_staff.browser("auditor")).get("/admin")).text


@pytest.mark.both_databases
async def test_merchants_are_found_by_number_name_and_address(staff: Staff) -> None:
    console = staff.console
    names = ["Boutique Kora", "Chez 100% Awa_B", *(f"Étal {number}" for number in range(26))]
    made = [await console.merchant(name) for name in names]
    await console.joined("awa@example.com", made[0], "reader")
    support = await staff.browser("support")

    csrf = await csrf_of(support)

    async def found(**typed: str) -> list[str]:
        page = await support.post("/admin/merchants", {"csrf": csrf, **typed})
        assert page.status == 200
        assert all(value not in page.path for value in typed.values()), "nothing that was typed is in the address"
        return re.findall(r'<td data-label="Nom"><a class="go" href="/admin/merchants/\d+">([^<]+)<', page.text)

    assert await found() == [f"Étal {number}" for number in range(25, 0, -1)]
    older = re.search(r'href="/admin/merchants\?before=(\d+)" rel="next"', support.page.text)
    assert older is not None
    page = await support.get(f"/admin/merchants?before={older[1]}")
    assert re.findall(r'href="/admin/merchants/\d+">([^<]+)<', page.text)[-3:] == [
        "Étal 0",
        "Chez 100% Awa_B",
        "Boutique Kora",
    ]
    assert await found(q="tal ") == [f"Étal {number}" for number in range(25, 0, -1)]
    [below] = re.findall(r'name="before" value="(\d+)"', support.page.text)
    assert await found(q="tal", before=below) == ["Étal 0"]
    assert await found(q=str(made[1].id)) == ["Chez 100% Awa_B"]
    assert await found(q="kORa") == ["Boutique Kora"]
    assert await found(q="100% A") == ["Chez 100% Awa_B"]
    assert await found(q="a_b") == ["Chez 100% Awa_B"]
    assert await found(q="_____") == []
    assert await found(q="AWA@example.com") == ["Boutique Kora"]
    assert await found(q="nobody@example.com") == []
    assert await found(q=str(2**63)) == []
    assert (await staff.last_act("user.searched")).actor == "support@guichet.example"
    assert (await support.get(f"/admin/merchants/{2**63}")).status == 404
    assert (await support.get("/admin/merchants/99999")).status == 404


@pytest.mark.both_databases
async def test_an_admin_creates_and_changes_a_merchant(staff: Staff) -> None:
    service = staff.console.service
    admin = await staff.browser("admin")
    await admin.get("/admin/merchants/new")
    refused = await admin.submit("name", name="a\x07b", status="active", currency="XOF")
    assert refused.status == 422
    form = {**admin.page.form("name").fields, "name": "Chez <b>Awa</b>", "status": "pending", "currency": "EUR"}
    made = await admin.post("/admin/merchants/new", form)
    assert "Chez &lt;b&gt;Awa" in made.text
    [merchant] = await merchants.waiting(service.ctx.db)
    assert made.path == f"/admin/merchants/{merchant.id}"
    assert "Le marchand est créé, sans clé d’API" in made.text
    assert ("sk_" in made.text, await api_keys.list_of(service.ctx.db, merchant.id)) == (False, []), "the owner's"
    for after in (form["after"], "", "x"):
        again = await admin.post("/admin/merchants/new", {**form, "after": after})
        assert (again.status, "déjà été envoyé" in again.text, "Chez &lt;b&gt;" in again.text) == (409, True, True)
    assert [each.id for each in await merchants.all_merchants(service.ctx.db)] == [merchant.id]
    assert len([each for each in await staff.acts() if each.action == "merchant.created"]) == 1

    path = f"/admin/merchants/{merchant.id}"
    csrf = {"csrf": await csrf_of(admin)}

    async def change(**fields: str) -> int:
        page = await admin.post(path, {**csrf, **fields})
        return page.status if "C’est enregistré" not in page.text else 303

    assert await change(act="status", status="suspended", reason="Dossier incomplet") == 422, "not confirmed"
    assert await change(act="status", status="suspended", confirm="yes") == 422, "no reason"
    assert await change(act="status", status="closed", reason="x", confirm="yes") == 422
    assert await change(act="status", status="suspended", reason="Dossier incomplet", confirm="yes") == 303
    assert await change(act="name", name=" ") == 422
    assert await change(act="name", name="Chez Awa") == 303
    assert await change(act="time_zone", time_zone="Mars/Olympus") == 422
    assert await change(act="time_zone", time_zone="Africa/Dakar") == 303
    changed = require(await merchants.get(service.ctx.db, merchant.id))
    assert (changed.status, changed.name, changed.time_zone) == ("suspended", "Chez Awa", "Africa/Dakar")
    assert await change(act="time_zone", time_zone="") == 303
    own = {"act": "limits", "rate_limit": "600", "payment_limit": "150,5", "daily_limit": "", "reason": "Contrat"}
    for wrong in (
        {"rate_limit": "0"},
        {"payment_limit": "0"},
        {"payment_limit": "200,000"},
        {"daily_limit": "beaucoup"},
        {"reason": " "},
    ):
        assert await change(**own | wrong) == 422, wrong
    assert 'value="600"' in admin.page.text, "what was typed is kept"
    assert await change(**own) == 303
    assert "600, toutes clés ensemble" in admin.page.text
    limited = require(await merchants.get(service.ctx.db, merchant.id))
    assert limited.limits == MerchantLimits(600, Hundredths(150_50), None)
    noted = await staff.last_act("merchant.limits_changed")
    assert (noted.reason, noted.after) == ("Contrat", '{"payment_limit":15050,"rate_limit":600}')
    assert await change(act="name", name=" ") == 422
    kept = admin.page.form("daily_limit").fields
    assert (kept["rate_limit"], kept["payment_limit"]) == ("600", "150.5"), "a fault of another form empties no field"
    assert await change(act="limits", reason="Fin") == 303
    assert require(await merchants.get(service.ctx.db, merchant.id)).limits == MerchantLimits()
    assert await change(act="status", status="active", reason="Complet") == 303, "opening needs no tick"

    act = next(entry for entry in await staff.acts() if "suspended" in entry.after)
    assert (act.actor, act.reason, act.merchant_id) == ("admin@guichet.example", "Dossier incomplet", merchant.id)
    assert (act.before, act.after) == ('{"status":"pending"}', '{"status":"suspended"}')
    assert (await verify(service.ctx.db)).fault is None
    service.clock.advance(STEP_UP_LASTS / SECOND + 1)
    page = await admin.post(path, {**csrf, "act": "status", "status": "pending", "reason": "r", "confirm": "yes"})
    assert page.path.startswith("/console/factor?next=")
    assert require(await merchants.get(service.ctx.db, merchant.id)).status == "active"


async def test_open_invitations_to_a_team_are_listed_and_taken_back(sqlite_staff: Staff) -> None:
    console = sqlite_staff.console
    merchant = await console.merchant()
    link = await console.invited("koffi@example.com", merchant, "cashier")
    support, admin = await sqlite_staff.browser("support"), await sqlite_staff.browser("admin")
    page = await support.get(f"/admin/merchants/{merchant.id}")
    assert ("koffi@example.com" in page.text, 'value="withdraw"' in page.text) == (True, False)
    await admin.get(page.path)
    page = await admin.submit("invitation", act="withdraw")
    assert "koffi@example.com" not in page.text
    act = await sqlite_staff.last_act("user.invitation_withdrawn")
    assert (act.actor, act.merchant_id) == ("admin@guichet.example", merchant.id)
    assert 'name="password"' not in (await console.browser().get(link)).text, "its link works no more"


async def test_staff_invite_the_first_owner_who_invites_the_others(sqlite_staff: Staff) -> None:
    console = sqlite_staff.console
    merchant = await console.merchant("Boutique Neuve")
    admin, support = await sqlite_staff.browser("admin"), await sqlite_staff.browser("support")
    path = f"/admin/merchants/{merchant.id}"
    assert 'value="invite"' not in (await support.get(path)).text
    await admin.get(path)
    refused = await admin.submit("person", act="invite", person="Awa", email="awa")
    assert (refused.status, "adresse e-mail correcte" in refused.text, 'value="Awa"' in refused.text) == (
        422,
        True,
        True,
    )
    refused = await admin.submit("person", act="invite", person="Sika", email="support@guichet.example")
    assert (refused.status, "appartient au personnel" in refused.text) == (422, True)
    page = await admin.submit("person", act="invite", person="Awa", email="Awa@Example.com")
    assert (page.status, "awa@example.com" in page.text, "Titulaire" in page.text) == (200, True, True)
    act = await sqlite_staff.last_act("user.invited")
    assert (act.actor, act.merchant_id, act.after) == ("admin@guichet.example", merchant.id, '{"role":"owner"}')
    await console.joined("awa@example.com", merchant)
    assert 'value="invite"' not in (await admin.get(path)).text
    form = {"csrf": await csrf_of(admin), "act": "invite", "person": "Koffi", "email": "koffi@example.com"}
    refused = await admin.post(path, form)
    assert (refused.status, "c’est lui qui invite" in refused.text) == (422, True)


async def test_one_form_sent_twice_at_once_creates_one_merchant(staff: Staff) -> None:
    admin = await staff.browser("admin")
    page = await admin.get("/admin/merchants/new")
    form = {**page.form("name").fields, "name": "Kora", "status": "pending", "currency": "XOF"}
    both = [ConsoleBrowser(admin.service, dict(admin.cookies)) for _ in range(2)]
    answers = await asyncio.gather(*(each.post("/admin/merchants/new", form) for each in both))
    assert sorted(each.status for each in answers) == [200, 409]
    assert len(await merchants.all_merchants(admin.service.ctx.db)) == 1


async def test_fees_and_modes_of_one_merchant(staff: Staff) -> None:
    service = staff.console.service
    client = await service.merchant("Kora")
    other = await service.merchant("Balafon")
    admin = await staff.browser("admin")
    path = f"/admin/merchants/{client.id}/modes"
    page = await admin.get(path)
    assert "propre au marchand" not in page.text
    wanted = {"operator": "mtn", "percent": "2,5", "fixed": "100,5", "state": "", "reason": "contrat du 3 mai"}
    page = await admin.submit("percent", **{**wanted, "reason": " "})
    assert (page.status, "Dites pourquoi" in page.text, 'value="100,5"' in page.text) == (422, True, True)
    page = await admin.submit("percent", **wanted)
    assert (page.status, "2,5\u00a0% + 100,5" in page.text, "contrat du 3 mai" in page.text) == (200, True, True)
    page = await admin.submit("before", confirm="")
    assert (page.status, "cochez la confirmation" in page.text) == (422, True)
    page = await admin.submit("before", before="True/1/0")
    assert (page.status, "cochez la confirmation" in page.text) == (422, True), "the mode changed since it was shown"
    assert not [each for each in await staff.acts() if each.action == "mode.changed"]
    page = await admin.submit("before")
    assert "2,5\u00a0% + 100,5" in page.text
    assert "propre au marchand" in page.text
    service.clock.advance(2)
    for whose, rate in ((client, 2.5), (other, None)):
        [mode] = [mode for mode in (await whose.get("/payment-modes")).data if mode["operator"] == "mtn"]
        assert (mode["fee_percent"] == 2.5) is (rate == 2.5)
    empty = {"operator": "mtn", "percent": "", "fixed": "", "state": "", "reason": "r"}
    for wrong in (
        {"percent": "1,23456"},
        {"percent": "101"},
        {"percent": "-1"},
        {"percent": "abc"},
        {"fixed": "1,005"},
        {"fixed": "1.000"},
        {},
        {"operator": "nobody", "state": "open"},
    ):
        page = await admin.submit("percent", **{**empty, **wrong})
        assert page.status == 422, wrong
        await admin.get(path)
    closing = {"operator": "moov", "percent": "", "fixed": "", "state": "closed", "reason": "à sa demande"}
    await admin.submit("percent", **closing)
    page = await admin.submit("before")
    assert "fermé" in page.text
    act = await staff.last_act("mode.changed")
    assert (act.actor, act.merchant_id, act.after) == ("admin@guichet.example", client.id, '{"active":false}')
    assert (act.before, act.reason) == ('{"active":true}', "à sa demande")


async def test_notes_are_kept_in_order_and_the_log_does_not_repeat_them(staff: Staff) -> None:
    merchant = await staff.console.merchant()
    support = await staff.browser("support")
    path = f"/admin/merchants/{merchant.id}/notes"
    csrf = await csrf_of(support)
    for wrong in ("", " \n ", "x" * 4001, "a\x00b"):
        page = await support.post(path, {"csrf": csrf, "text": wrong})
        assert page.status == 422, wrong[:5]
    for number in range(26):
        page = await support.post(path, {"csrf": csrf, "text": f"Ligne {number}\r\n<b>deux</b>"})
    assert page.text.index("Ligne 25") < page.text.index("Ligne 1<")
    assert "Ligne 0<" not in page.text
    assert "&lt;b&gt;deux" in page.text
    older = re.search(r'href="([^"]+)" rel="next"', page.text)
    assert older is not None
    assert "Ligne 0<" in (await support.get(older[1])).text
    added = await staff.last_act("merchant.note_added")
    assert "Ligne" not in "".join(map(str, added))


@pytest.mark.both_databases
async def test_a_note_that_is_sent_twice_is_one_note_and_an_earlier_one_may_be_repeated(staff: Staff) -> None:
    merchant = await staff.console.merchant()
    support, finance = await staff.browser("support"), await staff.browser("finance")
    path = f"/admin/merchants/{merchant.id}/notes"
    forms = [(await each.get(path)).form("after") for each in (support, finance)]
    for browser, form in ((support, forms[0]), (finance, forms[1]), (support, forms[0])):
        page = await browser.post(path, {**form.fields, "text": "A appelé."})
        assert page.status == 200
    assert page.text.count("A appelé.") == 2, "one of each person"
    page = await support.submit("after", text="A appelé.")
    assert page.text.count("A appelé.") == 3, "once more, by a page that shows the first"
    assert [each.action for each in await staff.acts()].count("merchant.note_added") == 3
