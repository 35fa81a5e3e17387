"""The staff's own accounts, and the users of merchants, as the back office changes them."""

import asyncio

import pytest

from guichet.accounts import people, users
from guichet.accounts.errors import LastOwner
from guichet.clock import SECOND
from guichet.db.engine import require
from guichet.domain.accounts import STEP_UP_LASTS, User
from guichet.domain.audit_log import Actor
from guichet.mail.outbox import Outbox
from tests.console.admin.conftest import Staff, csrf_of
from tests.console.conftest import PASSWORD


async def _user(staff: Staff, email: str) -> User:
    return require(await users.by_email(staff.console.service.ctx.db, email))


async def _staff_ids(staff: Staff) -> str:
    found = await users.staff_in(staff.console.service.ctx.db)
    return str([each.id for each in found]).replace(" ", "")


@pytest.mark.both_databases
async def test_an_admin_invites_changes_and_removes_colleagues(staff: Staff) -> None:
    merchant = await staff.console.merchant()
    await staff.console.joined("awa@example.com", merchant, "reader")
    admin, support = await staff.browser("admin"), await staff.browser("support")
    await admin.get("/admin/staff")
    page = await admin.submit("email", email="Ada@guichet.example", name="Ada", role="auditor")
    assert "ada@guichet.example" in page.text
    for email, role, status in (
        ("awa@example.com", "admin", 409),
        ("support@guichet.example", "admin", 409),
        ("no address", "admin", 422),
        ("x@guichet.example", "owner", 422),
    ):
        await admin.get("/admin/staff")
        page = await admin.submit("email", email=email, name="N", role=role)
        assert (page.status, f'value="{email}"' in page.text) == (status, True)
    assert (await _user(staff, "support@guichet.example")).staff_role == "support"
    listed = await staff.last_act("staff.listed")
    assert (listed.actor, listed.after) == ("admin@guichet.example", f'{{"users":{await _staff_ids(staff)}}}')

    number = (await _user(staff, "support@guichet.example")).id
    path, csrf = f"/admin/staff/{number}", {"csrf": await csrf_of(admin)}
    await admin.get(path)
    read = await staff.last_act("user.read")
    assert (read.actor, read.subject) == ("admin@guichet.example", str(number))
    assert (await admin.post(path, {**csrf, "act": "role", "role": "auditor"})).status == 200
    assert (await support.get("/admin")).path.startswith("/console/sign-in"), "a session of the role before"
    for act in ("disable", "reset_factor", "remove"):
        assert (await admin.post(path, {**csrf, "act": act})).status == 422, "not confirmed"
    await admin.post(path, {**csrf, "act": "reset_factor", "confirm": "yes"})
    assert not (await _user(staff, "support@guichet.example")).totp_confirmed
    await admin.post(path, {**csrf, "act": "disable", "confirm": "yes"})
    assert (await staff.console.browser().sign_in("support@guichet.example")).status == 422
    page = await admin.post(path, {**csrf, "act": "enable"})
    assert (await staff.console.browser().sign_in("support@guichet.example", PASSWORD)).status == 200
    page = await admin.post(path, {**csrf, "act": "remove", "confirm": "yes"})
    assert (page.path, "support@guichet.example" in page.text) == ("/admin/staff", False)
    done = {entry.action for entry in await staff.acts() if entry.actor == "admin@guichet.example"}
    assert {"user.invited", "user.role_changed", "user.disabled", "user.enabled", "user.factor_reset"} <= done


async def test_nobody_changes_their_own_account_or_the_last_admin(sqlite_staff: Staff) -> None:
    staff = sqlite_staff
    admin = await staff.browser("admin")
    own = (await _user(staff, "admin@guichet.example")).id
    csrf = {"csrf": await csrf_of(admin)}
    assert "C’est votre compte" in (await admin.get(f"/admin/staff/{own}")).text
    for act in ({"act": "role", "role": "auditor"}, {"act": "disable", "confirm": "yes"}, {"act": "remove"}):
        assert (await admin.post(f"/admin/staff/{own}", {**csrf, **act})).status == 403
    other = await staff.console.joined("other@guichet.example", None, "admin")
    number = (await _user(staff, "other@guichet.example")).id
    await admin.post(f"/admin/staff/{number}", {**csrf, "act": "disable", "confirm": "yes"})
    assert (await other.get("/admin")).path.startswith("/console/sign-in")
    assert (await admin.get("/admin/staff/999")).status == 404
    assert (await admin.get(f"/admin/users/{own}")).status == 404, "a colleague is no merchant's user"


@pytest.mark.both_databases
async def test_two_admins_cannot_disable_each_other_at_the_same_time(staff: Staff) -> None:
    await staff.browser("admin")
    await staff.console.joined("other@guichet.example", None, "admin")
    ctx = staff.console.service.ctx
    both = [(await _user(staff, email)).id for email in ("admin@guichet.example", "other@guichet.example")]

    async def disable(number: int) -> bool:
        try:
            async with ctx.db.transaction() as tx:
                user = await users.lock(tx, both[number])
                await people.disable(tx, Outbox(ctx.vault), user, Actor("a", "b"), ctx.clock.now())
        except LastOwner:
            return False
        return True

    assert sorted(await asyncio.gather(disable(0), disable(1))) == [False, True]


async def test_a_merchants_user_is_found_helped_and_locked_out(staff: Staff) -> None:
    merchant = await staff.console.merchant()
    owner = await staff.console.joined("awa@example.com", merchant)
    support, admin = await staff.browser("support"), await staff.browser("admin")
    await support.get("/admin/users")
    for nobody in ("nobody@example.com", "admin@guichet.example", "no address"):
        page = await support.submit("q", q=nobody)
        assert (page.status, page.path, nobody in page.text) == (404, "/admin/users", True)
    assert (await support.post("/admin/users", {"q": "awa@example.com"})).status == 403, "without the form's token"
    assert (await support.get("/admin/users?q=awa@example.com")).path == "/admin/users?q=awa@example.com", "not by GET"
    page = await support.submit("q", q="AWA@example.com")
    user = await _user(staff, "awa@example.com")
    assert page.path == f"/admin/users/{user.id}"
    assert "Boutique Kora" in page.text
    assert "Désactiver" not in page.text
    read = await staff.last_act("user.read")
    assert (read.actor, read.subject) == ("support@guichet.example", str(user.id))
    csrf = await csrf_of(support)
    assert (await support.post(page.path, {"csrf": csrf, "act": "disable", "confirm": "yes"})).status == 403
    assert (await owner.get("/console")).status == 200
    csrf = await csrf_of(admin)
    await admin.post(page.path, {"csrf": csrf, "act": "reset_factor", "confirm": "yes"})
    assert not (await _user(staff, "awa@example.com")).totp_confirmed
    await admin.post(page.path, {"csrf": csrf, "act": "disable", "confirm": "yes"})
    assert (await _user(staff, "awa@example.com")).status == "disabled"
    assert (await owner.get("/console")).path.startswith("/console/sign-in")
    await admin.post(page.path, {"csrf": csrf, "act": "role", "role": "admin"})
    assert (await _user(staff, "awa@example.com")).staff_role is None


async def test_the_role_of_a_merchants_user_is_changed_but_never_that_of_the_last_owner(staff: Staff) -> None:
    merchant, foreign = await staff.console.merchant(), await staff.console.merchant("Balafon")
    await staff.console.joined("awa@example.com", merchant)
    reader = await staff.console.joined("zoe@example.com", merchant, "reader")
    admin = await staff.browser("admin")
    owner, member = (await _user(staff, "awa@example.com")).id, (await _user(staff, "zoe@example.com")).id
    for act in ({"act": "team_role", "role": "reader"}, {"act": "team_remove", "confirm": "yes"}):
        await admin.get(f"/admin/users/{owner}")
        page = await admin.submit("merchant", **act)
        assert (page.status, "garde au moins un titulaire" in page.text) == (409, True)
    await admin.get(f"/admin/users/{member}")
    for elsewhere, status in ((str(foreign.id), 200), ("x", 404)):
        page = await admin.submit("merchant", act="team_role", role="owner", merchant=elsewhere)
        assert page.status == status
    db = staff.console.service.ctx.db
    assert [each.name for _, each in await users.merchants_of(db, member)] == ["Boutique Kora"]
    await admin.get(f"/admin/users/{member}")
    page = await admin.submit("merchant", act="team_role", role="developer")
    assert (page.status, 'value="developer" selected' in page.text) == (200, True)
    entry = await staff.last_act("user.role_changed")
    assert (entry.actor, entry.subject, entry.merchant_id) == ("admin@guichet.example", str(member), merchant.id)
    assert (entry.before, entry.after) == ('{"role":"reader"}', '{"role":"developer"}')
    page = await admin.submit("merchant", act="team_remove", confirm="")
    assert (page.status, len(await users.team(db, merchant.id))) == (422, 2)
    assert (await reader.get(f"/console/{merchant.id}/live")).status == 200
    await admin.submit("merchant", act="team_remove", confirm="yes")
    assert (await reader.get(f"/console/{merchant.id}/live")).status == 403
    staff.console.service.clock.advance(STEP_UP_LASTS / SECOND + 1)
    page = await admin.post(f"/admin/users/{owner}", {"csrf": await csrf_of(admin), "act": "team_role"})
    assert page.path.startswith("/console/factor"), "a fresh factor"
