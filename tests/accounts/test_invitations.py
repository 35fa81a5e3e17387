"""Invitations and new passwords: links that work once, and what they leave behind."""

import pytest
from sqlalchemy import select

from guichet.accounts import mail_links, sessions, users
from guichet.accounts.errors import LinkUnusable, PasswordWeak, TooManyAttempts
from guichet.accounts.invitations import InTeamAlready, InvitationRefused
from guichet.accounts.link_acceptance import accept, join_team, reset_password
from guichet.audit_log import entries
from guichet.clock import DAY, HOUR, SECOND
from guichet.db.engine import require
from guichet.db.tables import mail_links as links_table
from guichet.db.tables import mails as mails_table
from guichet.db.tables import users as users_table
from tests.accounts.conftest import PASSWORD, PHONE, People


async def test_an_invitation_is_mailed_accepted_once_and_kept_in_the_log(people: People) -> None:
    merchant = await people.merchant()
    secret = await people.invited("Awa@Example.com", merchant, "owner")
    assert secret == await people.last_link()
    signed = await accept(people.accounts, secret, "Awa K.", PASSWORD, PHONE)
    assert (signed.user.email, signed.user.name, signed.user.status) == ("awa@example.com", "Awa K.", "active")
    assert [(role, each.id) for role, each in await users.merchants_of(people.ctx.db, signed.user.id)] == [
        ("owner", merchant.id)
    ]
    with pytest.raises(LinkUnusable):
        await accept(people.accounts, secret, None, PASSWORD, PHONE)
    acts = [(entry.action, entry.merchant_id) for entry in await entries.latest(people.ctx.db)]
    assert acts[:2] == [("user.invitation_used", merchant.id), ("user.invited", merchant.id)]


async def test_no_secret_is_stored_as_it_is(people: People) -> None:
    signed = await people.joined("awa@example.com")
    await people.ask_for_password("awa@example.com")
    secret = await people.last_link()
    stored = [
        str(value)
        for table in (links_table, mails_table, users_table)
        for row in await people.ctx.db.scan(select(table))
        for value in row
    ]
    assert not any(secret in text or signed.secret in text or PASSWORD in text for text in stored)
    assert any(text.startswith("$argon2id$") for text in stored)


async def test_a_second_invitation_replaces_the_first_link(sqlite_people: People) -> None:
    people, merchant = sqlite_people, await sqlite_people.merchant()
    first = await people.invited("awa@example.com", merchant, "cashier")
    second = await people.invited("awa@example.com", merchant, "finance")
    assert first is not None
    assert second is not None
    with pytest.raises(LinkUnusable):
        await accept(people.accounts, first, None, PASSWORD, PHONE)
    signed = await accept(people.accounts, second, None, PASSWORD, PHONE)
    [(role, _)] = await users.merchants_of(people.ctx.db, signed.user.id)
    assert role == "finance"


@pytest.mark.parametrize(("age", "works"), [(7 * DAY - SECOND, True), (7 * DAY, False)])
async def test_an_invitation_lasts_seven_days(sqlite_people: People, age: int, *, works: bool) -> None:
    people = sqlite_people
    secret = await people.invited("awa@example.com", await people.merchant(), "owner")
    assert secret is not None
    people.clock.advance(age / SECOND)
    if works:
        user, offer = await mail_links.find(people.ctx.db, secret, "invitation", people.clock.now())
        assert (user.status, offer and offer.role) == ("invited", "owner")
    else:
        with pytest.raises(LinkUnusable):
            await accept(people.accounts, secret, None, PASSWORD, PHONE)


@pytest.mark.parametrize(
    ("password", "weakness"),
    [
        ("onze carac!", "short"),
        ("x" * 129 + "abcde", "long"),
        ("motdepasse123", "common"),
        ("1Q2W3E4R5T6Y", "common"),
        ("weihnachtsbaum", "common"),
        ("aaaaaaaaaaaaaaaa", "common"),
        ("awa@example.com", "known"),
    ],
)
async def test_a_weak_password_is_refused_and_leaves_the_link_usable(
    sqlite_people: People, password: str, weakness: str
) -> None:
    people = sqlite_people
    secret = await people.invited("awa@example.com", await people.merchant(), "owner")
    assert secret is not None
    with pytest.raises(PasswordWeak) as refused:
        await accept(people.accounts, secret, None, password, PHONE)
    assert refused.value.weakness == weakness
    await accept(people.accounts, secret, None, PASSWORD, PHONE)


async def test_a_link_is_for_one_purpose(sqlite_people: People) -> None:
    people = sqlite_people
    secret = await people.invited("awa@example.com", await people.merchant(), "owner")
    assert secret is not None
    with pytest.raises(LinkUnusable):
        await reset_password(people.accounts, secret, PASSWORD, PHONE)


async def test_a_person_with_an_account_is_in_no_team_more_before_saying_yes(people: People) -> None:
    signed = await people.joined("awa@example.com")
    other = await people.merchant("Deuxième boutique")
    secret = require(await people.invited("awa@example.com", other, "reader"))
    assert secret == await people.last_link()
    before = await people.user("awa@example.com")
    db = people.ctx.db
    assert [role for role, _ in await users.merchants_of(db, before.id)] == ["owner"]
    assert await users.team(db, other.id) == []
    with pytest.raises(LinkUnusable):
        await accept(people.accounts, secret, "Mallory", "quatre chiens aboient", PHONE)
    assert await people.user("awa@example.com") == before, "an invitation is no way to a new password"
    await join_team(people.accounts, secret)
    assert [role for role, _ in await users.merchants_of(db, before.id)] == ["owner", "reader"]
    assert await sessions.find(db, signed.secret, people.clock.now()) is not None
    with pytest.raises(LinkUnusable):
        await join_team(people.accounts, secret)
    last = (await entries.latest(db))[0]
    assert (last.action, last.merchant_id) == ("user.invitation_used", other.id)


async def test_invitations_of_two_teams_stand_beside_each_other(people: People) -> None:
    one, two = await people.merchant("Kora"), await people.merchant("Balafon")
    first = require(await people.invited("awa@example.com", one, "reader"))
    second = require(await people.invited("awa@example.com", two, "cashier"))
    with pytest.raises(LinkUnusable):
        await join_team(people.accounts, second)
    signed = await accept(people.accounts, first, None, PASSWORD, PHONE)
    assert [role for role, _ in await users.merchants_of(people.ctx.db, signed.user.id)] == ["reader"]
    await join_team(people.accounts, second)
    assert [role for role, _ in await users.merchants_of(people.ctx.db, signed.user.id)] == ["reader", "cashier"]


async def test_an_invitation_changes_no_role_of_a_member(sqlite_people: People) -> None:
    people, merchant = sqlite_people, await sqlite_people.merchant()
    await people.joined("awa@example.com", merchant)
    with pytest.raises(InTeamAlready):
        await people.invited("awa@example.com", merchant, "reader")


async def test_staff_are_in_no_team_and_a_team_is_no_staff(people: People) -> None:
    merchant = await people.merchant()
    await people.joined("awa@example.com", merchant)
    with pytest.raises(InvitationRefused):
        await people.invited("awa@example.com", None, "support")
    await people.invited("staff@example.com", None, "admin")
    with pytest.raises(InvitationRefused):
        await people.invited("staff@example.com", merchant, "owner")
    offered = require(await people.invited("later@example.com", merchant, "owner"))
    await people.invited("later@example.com", None, "support")
    with pytest.raises(LinkUnusable):
        await accept(people.accounts, offered, None, PASSWORD, PHONE)


async def test_a_new_password_ends_every_session_and_is_told(people: People) -> None:
    signed = await people.joined("awa@example.com")
    await people.ask_for_password("AWA@example.com")
    again = await reset_password(people.accounts, await people.last_link(), "quatre chiens aboient", PHONE)
    now = people.clock.now()
    assert await sessions.find(people.ctx.db, signed.secret, now) is None
    assert await sessions.find(people.ctx.db, again.secret, now) is not None
    assert (await people.mails())[-1].kind == "password_changed"
    await people.sign_in("awa@example.com", "quatre chiens aboient")


async def test_asking_for_a_new_password_says_nothing_about_accounts(sqlite_people: People) -> None:
    people = sqlite_people
    await people.invited("not-yet@example.com", await people.merchant(), "owner")
    before = len(await people.mails())
    for email in ("nobody@example.com", "not-yet@example.com", "not an address"):
        await people.ask_for_password(email)
    assert len(await people.mails()) == before


async def test_mails_with_new_passwords_are_limited_for_each_address(sqlite_people: People) -> None:
    people = sqlite_people
    await people.joined("awa@example.com")
    people.limits.full = {"mail"}
    with pytest.raises(TooManyAttempts):
        await people.ask_for_password("awa@example.com")


async def test_a_link_for_a_new_password_lasts_an_hour(sqlite_people: People) -> None:
    people = sqlite_people
    await people.joined("awa@example.com")
    await people.ask_for_password("awa@example.com")
    secret = await people.last_link()
    people.clock.advance(HOUR / SECOND)
    with pytest.raises(LinkUnusable):
        await reset_password(people.accounts, secret, "quatre chiens aboient", PHONE)
