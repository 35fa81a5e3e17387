"""Nobody of the staff makes themselves an owner of a merchant alone, and a team keeps an owner who can act."""

import asyncio

import pytest

from guichet.accounts import people, users
from guichet.accounts.errors import LastOwner
from guichet.db.engine import require
from guichet.domain.accounts import UserId
from guichet.domain.audit_log import Actor
from tests.console.admin.conftest import Staff
from tests.console.admin.operations import Operations, act
from tests.mail.said import said_to

OWN = "eve@example.com"
OWNER = "owner@example.com"


async def _id(operations: Operations, email: str) -> UserId:
    return require(await users.by_email(operations.live.ctx.db, email)).id


async def test_an_owner_in_place_of_a_disabled_one_is_made_by_two(operations: Operations) -> None:
    console = operations.console
    merchant = await console.merchant("Balafon")
    await console.joined(OWNER, merchant)
    second = await console.joined("reader@example.com", merchant, "finance")
    ada, bio = await operations.staff("ada@example.com", "admin"), await operations.staff("bio@example.com", "admin")
    file = f"/admin/merchants/{merchant.id}"
    invitation = {"act": "invite", "person": "Eve", "email": OWN}
    page = await act(ada, file, **invitation)
    assert (page.status, "C’est" in page.text or "c’est lui" in page.text) == (422, True), "the owner invites"

    await act(ada, f"/admin/users/{await _id(operations, OWNER)}", act="disable", confirm="yes")
    assert "une autre personne du personnel doit approuver" in (await ada.get(file)).text
    page = await act(ada, file, **invitation)
    assert page.path == "/admin/approvals/1"
    assert (OWN in page.text, "Titulaire" in page.text, 'value="approve"' in page.text) == (True, True, False)
    assert await said_to(console, OWN) == []
    [text] = [text for kind, text in await said_to(console, OWNER) if kind == "team_changed"]
    assert OWN in text
    assert "Balafon" in text
    assert "ada@example.com" in text

    page = await act(bio, page.path, act="approve", reason="procuration du 3 mai")
    assert page.status == 200
    assert [kind for kind, _ in await said_to(console, OWN)] == ["invitation"]
    activity = await second.get(f"/console/{merchant.id}/live/activity")
    assert "Personne invitée" in activity.text
    team = [each.email for role, each in await users.team(operations.live.ctx.db, merchant.id) if role == "owner"]
    assert team == [OWNER], "an offer, which the person must accept"


async def test_an_open_invitation_of_an_owner_counts(sqlite_operations: Operations) -> None:
    """One admin could otherwise invite an address of their own beside the first owner's."""
    operations = sqlite_operations
    merchant = await operations.console.merchant("Balafon")
    ada = await operations.staff("ada@example.com", "admin")
    file = f"/admin/merchants/{merchant.id}"
    await act(ada, file, act="invite", person="Awa", email=OWNER)
    page = await act(ada, file, act="invite", person="Awa", email=OWNER)
    assert page.status == 200, "the same person again"
    page = await act(ada, file, act="invite", person="Eve", email=OWN)
    assert (page.status, "inviter une autre personne" in page.text) == (409, True), "nobody else could approve"
    assert await said_to(operations.console, OWN) == []


@pytest.mark.both_databases
async def test_taking_a_colleagues_invitation_back_makes_no_room_for_an_owner_of_ones_own(
    operations: Operations,
) -> None:
    merchant = await operations.console.merchant("Balafon")
    ada, bio = await operations.staff("ada@example.com", "admin"), await operations.staff("bio@example.com", "admin")
    file = f"/admin/merchants/{merchant.id}"
    await act(bio, file, act="invite", person="Awa", email="mistyped@example.com")
    await bio.get(file)
    await bio.submit("invitation", act="withdraw")
    page = await act(bio, file, act="invite", person="Awa", email=OWNER)
    assert page.path == file, "one's own invitation is corrected by one"
    await ada.get(file)
    await ada.submit("invitation", act="withdraw")
    page = await act(ada, file, act="invite", person="Eve", email=OWN)
    assert page.path.startswith("/admin/approvals/")
    assert await said_to(operations.console, OWN) == []


async def test_the_staff_raise_somebody_of_a_team_to_those_who_refund_by_two(operations: Operations) -> None:
    console = operations.console
    merchant = await console.merchant("Balafon")
    await console.joined(OWNER, merchant)
    await console.joined(OWN, merchant, "reader")
    ada, bio = await operations.staff("ada@example.com", "admin"), await operations.staff("bio@example.com", "admin")
    person, db = await _id(operations, OWN), operations.live.ctx.db
    wanted = {"act": "team_role", "merchant": str(merchant.id)}
    for number, role in enumerate(("finance", "owner"), 1):
        page = await act(ada, f"/admin/users/{person}", **wanted, role=role)
        assert page.path.startswith("/admin/approvals/")
        assert require(await users.membership(db, person, merchant.id)).role != role
        await act(bio, page.path, act="approve", reason="oui")
        assert require(await users.membership(db, person, merchant.id)).role == role
        assert len([kind for kind, _ in await said_to(console, OWNER) if kind == "team_changed"]) == number
    page = await act(ada, f"/admin/users/{await _id(operations, OWNER)}", **wanted, role="finance")
    assert not page.path.startswith("/admin/approvals/"), "an owner loses rights at once"
    page = await act(ada, f"/admin/users/{person}", **wanted, role="finance")
    assert page.status == 409, "the last owner"
    await act(ada, f"/admin/users/{await _id(operations, OWNER)}", act="disable", confirm="yes")
    assert (await act(ada, f"/admin/users/{person}", **wanted, role="cashier")).status == 409


async def test_a_disabled_owner_is_taken_out_by_the_one_who_can_act(sqlite_operations: Operations) -> None:
    operations = sqlite_operations
    console, db = operations.console, operations.live.ctx.db
    merchant = await console.merchant("Balafon")
    await console.joined(OWNER, merchant)
    second = await console.joined("second@example.com", merchant)
    ada, gone = await operations.staff("ada@example.com", "admin"), await _id(operations, OWNER)
    await act(ada, f"/admin/users/{gone}", act="disable", confirm="yes")
    removal = {"act": "team_remove", "merchant": str(merchant.id), "confirm": "yes"}
    left = await act(ada, f"/admin/users/{await _id(operations, 'second@example.com')}", **removal)
    assert left.status == 409, "who can act stays"
    await act(second, f"/console/{merchant.id}/live/team", act="remove", user=str(gone), confirm="yes")
    assert await users.membership(db, gone, merchant.id) is None


@pytest.mark.both_databases
async def test_owners_who_remove_each_other_at_once_leave_one(staff: Staff) -> None:
    """The row of the merchant is locked before they are counted."""
    ctx = staff.console.service.ctx
    merchant = await staff.console.merchant()
    emails = ["awa@example.com", "zoe@example.com", "ada@example.com"]
    for email in emails:
        await staff.console.joined(email, merchant)
    ids = [require(await users.by_email(ctx.db, email)).id for email in emails]

    async def remove(number: int) -> None:
        try:
            async with ctx.db.transaction() as tx:
                user = await users.lock(tx, ids[number])
                actor = Actor(emails[number - 1], "console")
                await people.set_merchant_role(tx, user, merchant.id, None, actor, ctx.clock.now())
        except LastOwner:
            return

    for _ in range(12):
        await asyncio.gather(*(remove(number) for number in range(3)))
        assert await users.owners(ctx.db, merchant.id) == 1
        async with ctx.db.transaction() as tx:
            for each in ids:
                await users.join(tx, each, merchant.id, "owner", ctx.clock.now())
