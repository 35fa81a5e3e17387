"""Signing in: what is refused without saying why, who is limited and who is not, sessions and second factors."""

import asyncio

import pytest

from guichet.accounts import factors, sessions, users
from guichet.accounts import people as acts
from guichet.accounts.errors import CodeRefused, LastOwner, SignInRefused, TooManyAttempts
from guichet.accounts.sign_in import Browser, give_factor, state_of
from guichet.clock import MINUTE, SECOND
from guichet.domain.accounts import ABSOLUTE_END, IDLE_END, STEP_UP_LASTS
from tests.accounts.conftest import ACTOR, PASSWORD, PHONE, People

AWA = "awa@example.com"


async def test_why_a_sign_in_is_refused_is_never_said(people: People) -> None:
    await people.joined(AWA)
    await people.invited("invited@example.com", await people.merchant(), "reader")
    disabled = await people.joined("gone@example.com")
    async with people.ctx.db.transaction() as tx:
        await acts.disable(tx, people.accounts.outbox, disabled.user, ACTOR, people.clock.now())
    for email, password in (
        (AWA, "trois chats dormen"),
        ("nobody@example.com", PASSWORD),
        ("invited@example.com", PASSWORD),
        ("gone@example.com", PASSWORD),
        ("", ""),
        ("\0", "\0"),
    ):
        with pytest.raises(SignInRefused) as refused:
            await people.sign_in(email, password)
        assert refused.value.args == ()
    assert (await people.sign_in(" AWA@EXAMPLE.COM ")).user.email == AWA


async def test_strangers_use_up_their_own_attempts_and_lock_nobody_out(sqlite_people: People) -> None:
    """A flood of guesses for an address refuses strangers; the browser that signed in before still may."""
    people = sqlite_people
    known = await people.joined(AWA)
    assert known.device is not None
    people.limits.full = {"account"}
    with pytest.raises(TooManyAttempts):
        await people.sign_in(AWA)
    own = Browser("198.51.100.9", "Firefox", known.device)
    signed = await people.sign_in(AWA, browser=own)
    assert signed.device is None, "it has a good one already"
    people.limits.full = {"device"}
    with pytest.raises(TooManyAttempts):
        await people.sign_in(AWA, browser=own)


async def test_a_device_cookie_is_for_one_person_and_cannot_be_made(sqlite_people: People) -> None:
    people = sqlite_people
    device = (await people.joined(AWA)).device
    await people.joined("ada@example.com")
    people.limits.full = {"account"}
    assert device is not None
    for cookie in (device[:-1] + ("A" if device[-1] != "A" else "B"), "x.y.z", ""):
        with pytest.raises(TooManyAttempts):
            await people.sign_in(AWA, browser=Browser("a", "b", cookie))
    with pytest.raises(TooManyAttempts):
        await people.sign_in("ada@example.com", browser=Browser("a", "b", device))


async def test_a_sign_in_from_an_unknown_browser_is_told_by_mail(sqlite_people: People) -> None:
    people = sqlite_people
    device = (await people.joined(AWA)).device
    before = len(await people.mails())
    await people.sign_in(AWA, browser=Browser("198.51.100.9", "Firefox", device))
    assert len(await people.mails()) == before
    await people.sign_in(AWA, browser=Browser("192.0.2.1", "curl/8"))
    assert [mail.kind for mail in (await people.mails())[before:]] == ["new_sign_in"]


@pytest.mark.parametrize(("pause", "times", "lives"), [
    (IDLE_END - SECOND, 1, True),
    (IDLE_END, 1, False),
    (20 * MINUTE, ABSOLUTE_END // (20 * MINUTE) - 1, True),
    (20 * MINUTE, ABSOLUTE_END // (20 * MINUTE), False),
])  # fmt: skip
async def test_a_session_ends_when_idle_and_in_any_case(
    sqlite_people: People, pause: int, times: int, *, lives: bool
) -> None:
    people = sqlite_people
    signed = await people.joined(AWA)
    found = None
    for _ in range(times):
        people.clock.advance(pause / SECOND)
        found = await sessions.find(people.ctx.db, signed.secret, people.clock.now())
    assert (found is not None) is lives


@pytest.mark.both_databases
async def test_sessions_are_listed_and_ended(people: People) -> None:
    first = await people.joined(AWA)
    second = await people.sign_in(AWA, browser=Browser("192.0.2.1", "x" * 500))
    db, now = people.ctx.db, people.clock.now()
    listed = await sessions.of_user(db, first.user.id, now)
    assert [(each.address, len(each.agent)) for each in listed] == [("192.0.2.1", 200), ("203.0.113.7", 19)]
    other = await people.joined("ada@example.com")
    assert not await sessions.end(db, other.user.id, second.session.id), "of somebody else"
    assert await sessions.end(db, first.user.id, second.session.id)
    assert await sessions.find(db, second.secret, now) is None
    assert await sessions.find(db, first.secret, now) is not None


async def test_a_person_has_twenty_sessions_at_most(sqlite_people: People) -> None:
    people = sqlite_people
    first = await people.joined(AWA)
    for _ in range(20):
        last = await people.sign_in(AWA)
    now = people.clock.now()
    assert len(await sessions.of_user(people.ctx.db, first.user.id, now)) == 20
    assert await sessions.find(people.ctx.db, first.secret, now) is None
    assert await sessions.find(people.ctx.db, last.secret, now) is not None


async def with_codes(people: People, email: str = AWA) -> str:
    """Sets up one-time codes for somebody who joined; their seed."""
    seed = await factors.begin_totp(people.ctx, await people.user(email))
    await factors.check_totp(people.ctx, await people.user(email), people.code(seed), confirms=True)
    people.clock.advance(60)
    return seed


async def test_a_second_factor_renews_the_session(people: People) -> None:
    signed = await people.joined(AWA)
    seed = await with_codes(people)
    signed = await people.sign_in(AWA)
    assert state_of(signed.session, signed.user, ("owner",)) == "needs_factor"
    given = await give_factor(people.accounts, signed.session, signed.user, people.code(seed), PHONE)
    secret, session = given.secret, given.session
    now = people.clock.now()
    assert await sessions.find(people.ctx.db, signed.secret, now) is None, "the secret before is worth nothing"
    assert await sessions.find(people.ctx.db, secret, now) is not None
    assert state_of(session, signed.user, ("owner",)) == "open"
    assert session.factor_is_fresh(now)
    people.clock.advance(STEP_UP_LASTS / SECOND + 1)
    assert not session.factor_is_fresh(people.clock.now())


async def test_a_code_counts_once_even_in_a_race(people: People) -> None:
    signed = await people.joined(AWA)
    seed = await with_codes(people)
    user, code = await people.user(AWA), people.code(seed)
    used = await asyncio.gather(*(factors.check_totp(people.ctx, user, code) for _ in range(8)), return_exceptions=True)
    assert sum(result is None for result in used) == 1
    assert all(isinstance(result, CodeRefused) for result in used if result is not None)
    with pytest.raises(CodeRefused):
        await give_factor(people.accounts, signed.session, user, code, PHONE)
    earlier = people.code(seed, -1)
    with pytest.raises(CodeRefused):
        await factors.check_totp(people.ctx, user, earlier)


@pytest.mark.parametrize(("steps", "good"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
async def test_the_clock_of_a_telephone_may_differ_by_half_a_minute(
    sqlite_people: People, steps: int, *, good: bool
) -> None:
    people = sqlite_people
    await people.joined(AWA)
    seed = await with_codes(people)
    people.clock.advance(300)
    attempt = factors.check_totp(people.ctx, await people.user(AWA), people.code(seed, steps))
    if good:
        await attempt
    else:
        with pytest.raises(CodeRefused):
            await attempt


@pytest.mark.parametrize("code", ["", "12345", "1234567", "abcdef", "١٢٣٤٥٦", "-00001", "0" * 400])
async def test_what_is_no_code_is_refused(sqlite_people: People, code: str) -> None:
    people = sqlite_people
    signed = await people.joined(AWA)
    await with_codes(people)
    with pytest.raises(CodeRefused):
        await give_factor(people.accounts, signed.session, await people.user(AWA), code, PHONE)


async def test_codes_count_only_after_the_first_was_given(sqlite_people: People) -> None:
    people = sqlite_people
    signed = await people.joined(AWA)
    seed = await factors.begin_totp(people.ctx, signed.user)
    user = await people.user(AWA)
    with pytest.raises(CodeRefused):
        await factors.check_totp(people.ctx, user, people.code(seed))
    assert state_of(signed.session, user, ("owner",)) == "needs_setup"


@pytest.mark.both_databases
async def test_whoever_was_slower_takes_no_telephone_away(people: People) -> None:
    """Two sessions set up a first telephone at once: what one read before the other ended changes nothing after it."""
    await people.joined(AWA)
    stale = await people.user(AWA)
    seed = await factors.begin_totp(people.ctx, stale)
    shown = await people.user(AWA)
    await factors.begin_totp(people.ctx, shown)
    with pytest.raises(CodeRefused):
        await factors.check_totp(people.ctx, shown, people.code(seed), confirms=True)
    assert not (await people.user(AWA)).totp_confirmed, "the seed that was replaced"
    await with_codes(people)
    with pytest.raises(CodeRefused):
        await factors.begin_totp(people.ctx, stale)
    assert (await people.user(AWA)).totp_confirmed


@pytest.mark.both_databases
async def test_recovery_codes_count_once_each(people: People) -> None:
    signed = await people.joined(AWA)
    await with_codes(people)
    user, now = await people.user(AWA), people.clock.now()
    async with people.ctx.db.transaction() as tx:
        codes = await factors.new_recovery_codes(tx, user.id, now)
    assert len(set(codes)) == factors.RECOVERY_CODES
    session = (await give_factor(people.accounts, signed.session, user, codes[0].lower(), PHONE)).session
    with pytest.raises(CodeRefused):
        await give_factor(people.accounts, session, user, codes[0], PHONE)
    assert await factors.recovery_codes_left(people.ctx.db, user.id) == factors.RECOVERY_CODES - 1
    async with people.ctx.db.transaction() as tx:
        await factors.new_recovery_codes(tx, user.id, now)
    with pytest.raises(CodeRefused):
        await give_factor(people.accounts, session, user, codes[1], PHONE)


@pytest.mark.parametrize(("role", "state"), [
    ("owner", "needs_setup"), ("finance", "needs_setup"),
    ("cashier", "open"), ("developer", "open"), ("reader", "open"),
])  # fmt: skip
async def test_who_moves_money_must_have_a_second_factor(sqlite_people: People, role: str, state: str) -> None:
    people = sqlite_people
    signed = await people.joined(AWA, None, role)  # type: ignore[arg-type]
    roles = tuple(each for each, _ in await users.merchants_of(people.ctx.db, signed.user.id))
    assert state_of(signed.session, signed.user, roles) == state


async def test_a_lost_factor_is_removed_and_told(people: People) -> None:
    signed = await people.joined(AWA)
    await with_codes(people)
    async with people.ctx.db.transaction() as tx:
        outbox, address = people.accounts.outbox, people.accounts.reset_address
        await acts.reset_factor(tx, outbox, await people.user(AWA), ACTOR, address, people.clock.now())
    assert await sessions.find(people.ctx.db, signed.secret, people.clock.now()) is None
    assert (await people.mails())[-1].kind == "factor_changed"
    again = await people.sign_in(AWA)
    assert state_of(again.session, again.user, ("owner",)) == "needs_setup"


async def test_the_last_owner_stays(people: People) -> None:
    merchant = await people.merchant()
    awa = await people.joined(AWA, merchant)
    db, now = people.ctx.db, people.clock.now()
    for role in ("reader", None):
        with pytest.raises(LastOwner):
            async with db.transaction() as tx:
                await acts.set_merchant_role(tx, awa.user, merchant.id, role, ACTOR, now)
    await people.joined("ada@example.com", merchant)
    async with db.transaction() as tx:
        await acts.set_merchant_role(tx, awa.user, merchant.id, "reader", ACTOR, now)
    assert await sessions.find(db, awa.secret, now) is not None, "the person may be at work for another merchant"
    assert [(role, user.email) for role, user in await users.team(db, merchant.id)] == [
        ("reader", AWA),
        ("owner", "ada@example.com"),
    ]
