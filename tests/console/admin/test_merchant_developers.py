"""What the staff do about a merchant's API keys, and its test clock in the back office."""

import pytest

from guichet.audit_log.entries import Entry
from guichet.clock import SECOND
from guichet.domain.accounts import STEP_UP_LASTS
from guichet.merchants import api_keys
from tests.console.admin.conftest import Staff, csrf_of


@pytest.mark.both_databases
async def test_the_staff_end_and_revoke_a_key_with_a_reason(staff: Staff) -> None:
    service = staff.console.service
    client, other = await service.merchant("Kora"), await service.merchant("Balafon")
    admin = await staff.browser("admin")
    path = f"/admin/merchants/{client.id}/developers"
    page = await admin.get(path)
    assert page.text.count("sk_live_") == page.text.count("sk_test_")
    assert client.keys["live"] not in page.text
    csrf = {"csrf": await csrf_of(admin)}
    test, live = sorted(await api_keys.list_of(service.ctx.db, client.id), key=lambda key: key.env == "live")
    ended = {**csrf, "act": "expire", "key": str(test.id), "expires": "2099-12-31", "reason": "fin de contrat"}
    revoked = {**csrf, "act": "revoke", "key": str(live.id), "reason": "clé publiée"}
    for wrong in (
        {**revoked, "reason": " "},
        {**ended, "reason": ""},
        {**ended, "expires": ""},
        {**ended, "expires": "2000-01-01"},
        {**revoked, "act": "create"},
    ):
        assert (await admin.post(path, wrong)).status == 422, wrong
    [foreign, *_] = await api_keys.list_of(service.ctx.db, other.id)
    for key in (str(foreign.id), "999999", "", "x", "9" * 30):
        assert (await admin.post(path, {**revoked, "key": key})).status == 404, key
    assert (await client.live.get("/balance")).status == 200
    for form in (ended, revoked):
        for _ in range(2):  # Sent again, as after a lost answer: one act.
            page = await admin.post(path, form)
            assert page.status == 200
    assert ("Révoquée" in page.text, "expire le 1er janvier 2100" in page.text) == (True, True)
    service.clock.advance(2)
    assert (await client.live.get("/balance")).status == 401
    assert (await client.get("/balance")).status == 200

    def told(act: Entry) -> tuple[str, str, str, str, int | None]:
        return act.action, act.actor, act.subject, act.reason, act.merchant_id

    about = [told(act) for act in await staff.acts() if act.action.startswith("key.")]
    assert about == [
        ("key.revoked", "admin@guichet.example", str(live.id), "clé publiée", client.id),
        ("key.expiry_set", "admin@guichet.example", str(test.id), "fin de contrat", client.id),
    ]
    service.clock.advance(STEP_UP_LASTS / SECOND + 1)
    page = await admin.post(path, {**revoked, "key": str(test.id)})
    assert page.path.startswith("/console/factor?next=")
    assert (await client.get("/balance")).status == 200


async def test_who_sees_keys_changes_none_and_an_admin_moves_the_test_clock(sqlite_staff: Staff) -> None:
    client = await sqlite_staff.console.service.merchant("Kora")
    admin, support = await sqlite_staff.browser("admin"), await sqlite_staff.browser("support")
    path = f"/admin/merchants/{client.id}/developers"
    page = await support.get(path)
    assert ("sk_live_" in page.text, "Révoquer" in page.text, "Avancer" in page.text) == (True, False, False)
    for act in ("revoke", "expire", "clock_advance", "clock_reset"):
        form = {"csrf": await csrf_of(support), "act": act, "key": "1", "reason": "r", "number": "1", "unit": "h"}
        assert (await support.post(path, {**form, "seen": "0"})).status == 403
    await admin.get(path)
    form = {**admin.page.form("seen").fields, "act": "clock_advance", "number": "3", "unit": "h"}
    assert (await admin.post(path, {**form, "number": "-1"})).status == 422
    assert "En avance de 0 j 3 h 0 min" in (await admin.post(path, form)).text
    assert (await admin.post(path, form)).status == 409
    assert "l’heure réelle" in (await admin.post(path, {**form, "act": "clock_reset"})).text
    moved = [act.actor for act in await sqlite_staff.acts() if act.action.startswith("test_clock.")]
    assert moved == ["admin@guichet.example"] * 2
