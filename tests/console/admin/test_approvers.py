"""Who approves money: nobody makes themselves a second account, nobody is removed in silence, nobody is locked out."""

import asyncio
import re

import pytest

from guichet.accounts import approvals, people, users
from guichet.accounts.access_acts import staff_subject
from guichet.accounts.errors import LastOwner
from guichet.clock import DAY, earlier
from guichet.db.engine import Reader, require
from guichet.domain.accounts import User
from guichet.domain.approvals import ActRequest
from guichet.domain.audit_log import Actor
from guichet.domain.roles import StaffRole
from guichet.mail.messages import text_of
from guichet.mail.outbox import Mail, Outbox
from tests.console.admin.operations import Operations, act
from tests.console.conftest import ConsoleBrowser
from tests.console.pages import Page
from tests.payments.test_manual_settlement import stuck

ADA, BIO, EVE = "ada@example.com", "bio@example.com", "eve@example.com"
SETTLE = {"act": "settle", "outcome": "succeeded", "reason": "relevé du 3 mai"}
HOURS = 3600


async def admin(operations: Operations, email: str, role: StaffRole = "admin", days: int = 8) -> ConsoleBrowser:
    """Somebody who has had a role for so many days."""
    browser = await operations.staff(email, role)
    await operations.in_staff_since(email, earlier(operations.live.ctx.clock.now(), days * DAY))
    return browser


async def user(operations: Operations, email: str) -> User:
    return require(await users.by_email(operations.live.ctx.db, email))


async def role_of(operations: Operations, email: str) -> str | None:
    found = await users.by_email(operations.live.ctx.db, email)
    return None if found is None else found.staff_role


async def invite_colleague(browser: ConsoleBrowser, email: str, role: str = "admin") -> Page:
    await browser.get("/admin/staff")
    return await browser.submit("email", email=email, name="Eve", role=role)


async def change(operations: Operations, browser: ConsoleBrowser, email: str, **fields: str) -> Page:
    return await act(browser, f"/admin/staff/{(await user(operations, email)).id}", **fields)


async def mailed(operations: Operations, kind: str) -> list[str]:
    return sorted(mail.recipient for mail in await operations.console.mails() if mail.kind == kind)


async def last_mail(operations: Operations, kind: str, to: str) -> Mail:
    return next(each for each in await operations.console.mails() if (each.kind, each.recipient) == (kind, to))


async def objection(operations: Operations, to: str) -> str:
    """The path of the form in this person's mail."""
    mail = await last_mail(operations, "approval_objectable", to)
    text = text_of(mail.kind, require(mail.message)).body
    return require(re.search(r"https?://[^/]+(/console/objection/\S+)", text))[1]


async def housekeeping(operations: Operations) -> None:
    [loop] = [loop for loop in operations.live.service.worker.loops if loop.name == "housekeeping"]
    await loop.step()


async def wait(operations: Operations, hours: float) -> None:
    operations.live.service.clock.advance(hours * HOURS)
    await housekeeping(operations)


async def test_an_admin_who_removed_the_other_is_mailed_about_and_objected_to(operations: Operations) -> None:
    ada = await admin(operations, ADA)
    bio = await admin(operations, BIO)
    await change(operations, ada, BIO, act="disable", confirm="yes")
    assert (await user(operations, BIO)).status == "disabled", "stopping waits for nobody"
    assert (await bio.get("/admin")).path.startswith("/console/sign-in")
    assert await mailed(operations, "approver_removed") == [ADA, BIO], "also the person, and whoever did it"

    page = await invite_colleague(ada, EVE)
    assert (page.status, page.path) == (200, "/admin/approvals/1")
    assert "Personne d’autre ne peut l’approuver" in page.text
    assert EVE in page.text
    assert EVE in (await ada.get("/admin/approvals")).text
    assert 'value="approve"' not in page.text
    assert await role_of(operations, EVE) is None
    assert EVE not in {mail.recipient for mail in await operations.console.mails()}
    assert await mailed(operations, "approval_objectable") == [ADA, BIO]

    stranger = operations.console.browser()
    page = await stranger.get(await objection(operations, BIO))
    assert (page.status, ADA in page.text, EVE in page.text, "Je m’y oppose" in page.text) == (200, True, True, True)
    assert "I object" in (await stranger.get(f"{page.path}?lang=en")).text
    page = await stranger.submit("reason", reason="Je suis écarté")
    assert "Your objection is recorded" in page.text
    assert await operations.status() == "refused"
    assert (await stranger.get(await objection(operations, ADA))).status == 410, "decided"
    await wait(operations, 73)
    assert await role_of(operations, EVE) is None
    ((_, actor, _, facts),) = await operations.acts("approval.objected")
    assert (actor, facts["act"]) == (BIO, "staff.add")
    assert (await last_mail(operations, "approval_refused", ADA)).kind == "approval_refused"


@pytest.mark.both_databases
async def test_a_role_that_is_taken_away_at_the_moment_is_not_given_back_by_inviting_again(
    operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx, ada, bio = operations.live.ctx, await admin(operations, ADA), await admin(operations, BIO)
    await invite_colleague(ada, EVE)
    await act(bio, "/admin/approvals/1", act="approve", reason="oui")
    assert await role_of(operations, EVE) == "admin"
    await ada.get("/admin/staff")
    read = users.by_email

    async def read_just_before(db: Reader, email: str) -> User | None:
        found = await read(db, email)
        if email == EVE:
            monkeypatch.undo()
            async with ctx.db.transaction() as tx:
                locked, bios = await people.lock(tx, require(found).id), Actor(BIO, "console")
                await people.set_staff_role(tx, Outbox(ctx.vault), locked, "support", bios, ctx.clock.now())
        return found

    monkeypatch.setattr(users, "by_email", read_just_before)
    page = await ada.submit("email", email=EVE, name="Eve", role="admin")
    assert page.path.startswith("/admin/approvals/")
    assert await role_of(operations, EVE) == "support"


@pytest.mark.both_databases
async def test_one_objection_is_enough_however_many_accounts_somebody_asks_for(operations: Operations) -> None:
    ada = await admin(operations, ADA)
    await admin(operations, BIO)
    await change(operations, ada, BIO, act="disable", confirm="yes")
    for number in range(3):
        await invite_colleague(ada, f"eve{number}@example.com")
    stranger = operations.console.browser()
    await stranger.get(await objection(operations, BIO))
    assert "recorded" in (await stranger.submit("reason", reason="non")).text or "enregistrée" in stranger.page.text
    assert [await operations.status(number) for number in (1, 2, 3)] == ["refused"] * 3
    assert len(await operations.acts("approval.objected")) == 3
    await wait(operations, 73)
    assert [await role_of(operations, f"eve{number}@example.com") for number in range(3)] == [None] * 3


async def test_who_nobody_can_approve_begins_after_72_hours_without_an_objection(operations: Operations) -> None:
    await admin(operations, "first@example.com", "support")
    ada = await admin(operations, ADA)
    await invite_colleague(ada, EVE, "finance")
    await wait(operations, 71.9)
    assert await role_of(operations, EVE) is None
    await wait(operations, 0.2)
    assert (await role_of(operations, EVE), await operations.status()) == ("finance", "approved")
    assert (await last_mail(operations, "invitation", EVE)).kind == "invitation"
    assert await mailed(operations, "staff_changed") == [ADA] * len(await mailed(operations, "staff_changed"))
    ((_, actor, _, facts),) = [each for each in await operations.acts("user.invited") if each[1] == ADA]
    assert (actor, facts["approved_by"]) == (ADA, "unopposed")
    await wait(operations, 100)
    assert len(await operations.acts("approval.approved")) == 1, "once"


async def test_what_an_admin_asked_for_who_was_removed_meanwhile_is_not_done(sqlite_operations: Operations) -> None:
    operations = sqlite_operations
    await admin(operations, BIO)
    ada = await admin(operations, ADA)
    await change(operations, ada, BIO, act="disable", confirm="yes")
    await invite_colleague(ada, EVE)
    ctx = operations.live.ctx
    async with ctx.db.transaction() as tx:  # `guichet user` acts at once.
        shell, outbox = Actor("root", "root"), Outbox(ctx.vault)
        await people.enable(tx, outbox, await users.lock(tx, (await user(operations, BIO)).id), shell, ctx.clock.now())
        await people.disable(tx, outbox, await users.lock(tx, (await user(operations, ADA)).id), shell, ctx.clock.now())
    await wait(operations, 73)
    assert (await role_of(operations, EVE), await operations.status()) == (None, "expired")


async def test_a_new_approver_needs_one_who_has_had_the_right_for_a_week(sqlite_operations: Operations) -> None:
    """In the first week of an installation a day is enough."""
    operations = sqlite_operations
    await operations.staff("first@example.com", "support")
    operations.live.service.clock.advance(8 * 24 * HOURS)
    ada, young, old = await admin(operations, ADA), await admin(operations, BIO, days=6), None
    await invite_colleague(ada, EVE)
    assert "Personne d’autre ne peut l’approuver" in ada.page.text
    page = await act(young, "/admin/approvals/1", act="approve", reason="oui")
    assert (page.status, "moins de 7 jours" in page.text) == (409, True)
    await act(young, "/admin/approvals/1", act="refuse", reason="je ne la connais pas")
    assert await operations.status() == "refused", "whoever may approve refuses, however new"

    old = await admin(operations, "old@example.com", "finance")
    page = await invite_colleague(ada, EVE)
    assert "Personne d’autre" not in page.text
    assert await mailed(operations, "approval_requested") == ["old@example.com"]
    await act(old, "/admin/approvals/2", act="approve", reason="je la connais")
    assert (await role_of(operations, EVE), await operations.status(2)) == ("admin", "approved")
    assert (await last_mail(operations, "invitation", EVE)).kind == "invitation"


async def test_in_the_first_week_a_day_is_enough(sqlite_operations: Operations) -> None:
    operations = sqlite_operations
    ada, bio = await admin(operations, ADA, days=1), await admin(operations, BIO, days=1)
    await invite_colleague(ada, EVE)
    await act(bio, "/admin/approvals/1", act="approve", reason="oui")
    assert await role_of(operations, EVE) == "admin"


async def test_roles_and_accounts_that_approve_come_back_by_two(operations: Operations) -> None:
    ada, bio = await admin(operations, ADA), await admin(operations, BIO)
    await admin(operations, EVE, "support")
    page = await change(operations, ada, EVE, act="role", role="finance")
    assert (page.path, await role_of(operations, EVE)) == ("/admin/approvals/1", "support")
    await act(bio, page.path, act="approve", reason="oui")
    assert await role_of(operations, EVE) == "finance"
    page = await change(operations, ada, EVE, act="role", role="admin")
    assert (page.path, await role_of(operations, EVE)) == ("/admin/approvals/2", "finance"), "it gives rights"
    again = await change(operations, ada, EVE, act="role", role="admin")
    assert (again.status, "attend déjà" in again.text) == (409, True)
    await act(bio, "/admin/approvals/2", act="refuse", reason="non")

    await change(operations, ada, EVE, act="disable", confirm="yes")
    page = await change(operations, ada, EVE, act="enable")
    assert page.path.startswith("/admin/approvals/")
    assert (await user(operations, EVE)).status == "disabled"
    assert "Finances" in page.text
    await act(bio, page.path, act="approve", reason="oui")
    assert (await user(operations, EVE)).status == "active"
    await change(operations, ada, EVE, act="role", role="auditor")
    assert await role_of(operations, EVE) == "auditor", "what takes rights away is done at once"
    assert EVE in await mailed(operations, "approver_removed")


async def test_nobody_approves_a_role_of_their_own(sqlite_operations: Operations) -> None:
    operations = sqlite_operations
    ada, eve = await admin(operations, ADA), await admin(operations, EVE, "finance")
    bio = await admin(operations, BIO)
    page = await change(operations, ada, EVE, act="role", role="admin")
    assert await mailed(operations, "approval_requested") == [BIO]
    assert (await act(eve, page.path, act="approve", reason="oui")).status == 409
    await act(bio, page.path, act="approve", reason="oui")
    assert await role_of(operations, EVE) == "admin"


async def test_who_was_removed_eight_days_ago_is_still_asked(sqlite_operations: Operations) -> None:
    """Waiting for a week must not be a way to be alone; whoever left long ago is not asked."""
    operations = sqlite_operations
    ctx = operations.live.ctx
    await admin(operations, BIO)
    await admin(operations, "gone@example.com")
    ada, eve = await admin(operations, ADA), await admin(operations, EVE, "support")
    await change(operations, ada, "gone@example.com", act="remove", confirm="yes")
    operations.live.service.clock.advance(23 * 24 * HOURS)
    async with ctx.db.transaction() as tx:
        locked = await users.lock(tx, (await user(operations, BIO)).id)
        await people.disable(tx, Outbox(ctx.vault), locked, Actor(ADA, "console"), ctx.clock.now())
    assert await mailed(operations, "approver_removed") == [ADA, ADA, BIO, BIO, "gone@example.com"]
    operations.live.service.clock.advance(8 * 24 * HOURS)
    assert (await eve.get("/admin")).path.startswith("/console/sign-in")
    wanted = ActRequest("staff.add", staff_subject(await user(operations, EVE)), {"role": "finance"}, "")
    await approvals.ask(ctx, wanted, await user(operations, ADA), "console")
    assert await mailed(operations, "approval_objectable") == [ADA, BIO]


async def test_money_that_somebody_asks_for_who_removed_an_approver_waits_for_a_week(operations: Operations) -> None:
    payment = await stuck(operations.live)
    ada, bio = await admin(operations, ADA), await admin(operations, BIO)
    await admin(operations, EVE)
    await change(operations, ada, EVE, act="role", role="finance")
    await act(ada, f"/admin/incidents/{payment.reference}", **SETTLE)
    page = await act(bio, "/admin/approvals/1", act="approve", reason="oui")
    assert (page.status, "il y a moins de sept jours" in page.text) == (409, True)
    assert await operations.live.state(payment.reference) == "pending"
    operations.live.service.clock.advance(7 * 24 * HOURS)
    zoe, old = await admin(operations, "zoe@example.com"), await admin(operations, "old@example.com")
    await act(zoe, f"/admin/incidents/{payment.reference}", **SETTLE)
    await act(old, "/admin/approvals/2", act="approve", reason="oui")
    assert await operations.live.state(payment.reference) == "succeeded"


async def test_the_link_of_another_request_or_person_opens_nothing(sqlite_operations: Operations) -> None:
    operations = sqlite_operations
    ada = await admin(operations, ADA)
    await invite_colleague(ada, EVE)
    path = await objection(operations, ADA)
    stranger = operations.console.browser()
    base, secret = path.rsplit("/", 1)
    request, person, signature = secret.split("-", 2)
    forged = (f"2-{person}-{signature}", f"{request}-9-{signature}", f"{request}-{person}-{'A' * 43}", "9" * 5000, "é")
    for each in forged:
        assert (await stranger.get(f"{base}/{each}")).status in (404, 410)
        assert (await stranger.post(f"{base}/{each}", {"reason": "x"})).status in (404, 410)
    assert await operations.status() == "pending"


@pytest.mark.both_databases
async def test_admins_who_disable_each_other_in_a_circle_leave_one(operations: Operations) -> None:
    """Three, over several rounds: each would count the others."""
    ctx, outbox = operations.live.ctx, Outbox(operations.live.ctx.vault)
    emails = [ADA, BIO, EVE]
    for email in emails:
        await admin(operations, email)
    ids = [(await user(operations, email)).id for email in emails]

    async def remove(number: int) -> None:
        try:
            async with ctx.db.transaction() as tx:
                target = await people.lock(tx, ids[number])
                actor = Actor(emails[number - 1], "console")
                await people.set_staff_role(tx, outbox, target, None, actor, ctx.clock.now())
        except LastOwner:
            return

    for _ in range(8):
        await asyncio.gather(*(remove(number) for number in range(3)))
        staff = await users.staff_in(ctx.db)
        assert [each.staff_role for each in staff] == ["admin"]
        for each in ids:
            await users.set_staff_role(ctx.db, each, "admin", ctx.clock.now())
