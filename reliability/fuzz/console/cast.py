"""The people of the trial, and their sessions: each role of a merchant's team and of the staff, and those who leave."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode

import pyotp
from sqlalchemy import bindparam, update

from guichet.accounts import mail_links, sessions, users
from guichet.accounts.passwords import Passwords
from guichet.clock import DAY, MINUTE, SECOND, earlier
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.db.tables import user_sessions
from guichet.domain.accounts import TeamOffer, User, secret_hash
from guichet.domain.roles import MERCHANT_ROLES, STAFF_ROLES, MerchantRole, StaffRole
from reliability.fuzz.console.stock import Stock
from reliability.fuzz.recorded import FORM, wire
from reliability.fuzz.sockets import Answer, BrokenAnswer, Connection

PASSWORD: Final = "trois chats dorment"
#: Sessions of those who leave: each of them may be ended by a request.
LEAVING: Final = 6
_WITHOUT_FACTOR: Final = ("cashier", "reader")
_COOKIE: Final = "__Host-guichet-session"
_FRESHEN: Final = (
    update(user_sessions)
    .where(user_sessions.c.id == bindparam("session"))
    .values(factor_at=bindparam("now"), last_seen_at=bindparam("now"))
)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with a session. `role`: in the team of the own merchant, or in the staff. `session`: its row's id."""

    name: str
    role: MerchantRole | StaffRole
    is_staff: bool
    user_id: int
    session: int
    cookie: str
    csrf: str = ""

    @property
    def header(self) -> tuple[str, str]:
        return cookie_header(self.cookie)


@dataclass(frozen=True)
class Cast:
    """`people`: whose sessions no request may end. `leavers`: whose sessions may end. `stale`: people of the first kind
    whose second factor was given too long ago. `ended`, `half`: cookies of sessions that were signed out, and that have
    not given a second factor. `invitations`: secrets of links to a team and to a new password that stay unused."""

    people: Mapping[str, Person]
    leavers: list[Person]
    stale: Mapping[str, Person]
    ended: Person
    half: Person
    foreigner: Person

    @property
    def names(self) -> dict[str, str]:
        """What differs between two runs."""
        everybody = [*self.people.values(), *self.leavers, *self.stale.values(), self.ended, self.half, self.foreigner]
        found = {f"cookie_{number}": each.cookie for number, each in enumerate(everybody)}
        return found | {f"csrf_{number}": each.csrf for number, each in enumerate(everybody) if each.csrf}


def cookie_header(secret: str) -> tuple[str, str]:
    return ("Cookie", f"{_COOKIE}={secret}")


def session_of(answer: Answer) -> str | None:
    """The cookie of a session that the answer sets; None if it sets none, or takes one away."""
    for name, value in answer.headers:
        if name == "set-cookie" and (found := re.match(rf"{_COOKIE}=([^;\"]+)", value)):
            return found[1]
    return None


async def create_people(ctx: AppContext, own: Stock, foreign: Stock) -> dict[str, tuple[User, str | None]]:
    """Accounts by name, with the seeds of their telephones. The first account belongs to somebody who leaves: small
    numbers are what hostile forms name by chance."""
    passwords = Passwords()
    hashed = await passwords.hash(PASSWORD)
    passwords.close()
    team: list[tuple[str, MerchantRole | None, StaffRole | None, Stock | None]] = [
        ("leaver", "finance", None, own),
        ("colleague", None, "support", None),
        *((role, role, None, own) for role in MERCHANT_ROLES),
        *((f"staff {role}", None, role, None) for role in STAFF_ROLES),
        ("foreigner", "owner", None, foreign),
    ]
    made: dict[str, tuple[User, str | None]] = {}
    for name, role, staff_role, stock in team:
        word = stock.word if stock else "guichet"
        # Only who has been in the staff for a day may approve.
        now, mail = earlier(ctx.clock.now(), 2 * DAY), f"{name.replace(' ', '.')}@{word}.example"
        called = f"{word} {name} <script>zq7(3)</script>"
        async with ctx.db.transaction() as tx:
            user = require(await users.create(tx, mail, called, "fr", staff_role, now))
            user = require(await users.set_password(tx, user.id, hashed, now, None))
            if stock is not None and role is not None:
                await users.join(tx, user.id, stock.merchant.id, role, now)
        made[name] = (user, None if name in _WITHOUT_FACTOR else await _telephone(ctx, user))
    return made


async def _telephone(ctx: AppContext, user: User) -> str:
    seed = pyotp.random_base32()
    encrypted = ctx.vault.encrypt(seed)
    assert await users.begin_totp(ctx.db, user.id, encrypted, ctx.clock.now())
    assert await users.take_totp_step(ctx.db, user.id, encrypted, 1, confirms=True)
    return seed


async def invite(ctx: AppContext, made: Stock) -> None:
    """Somebody whom the team waits for, and a link to a new password: both stay unused."""
    async with ctx.db.transaction() as tx:
        now = ctx.clock.now()
        user = require(await users.create(tx, f"invited@{made.word}.example", made.word, "fr", None, now))
        secret = await mail_links.create(tx, user.id, "invitation", now, TeamOffer(made.merchant.id, "reader"))
    [offer, *_] = await mail_links.open_offers(ctx.db, made.merchant.id, now)
    made.fields["invitation"] = [str(offer.id)]
    made.names[f"{made.word}_invitation"] = secret


async def enter(
    ctx: AppContext, port: int, accounts: Mapping[str, tuple[User, str | None]], by_pages: Sequence[str]
) -> Cast:
    """Everybody's sessions. `by_pages`: who signs in by the pages, with the password and the telephone."""
    connection = Connection(port)
    people = {}
    for name, (user, seed) in accounts.items():
        if name in ("leaver", "colleague", "foreigner"):
            continue
        if name in by_pages:
            people[name] = await _sign_in(ctx, connection, name, user, seed)
        else:
            people[name] = await _session(ctx, name, user, factor=seed is not None)
    owner, admin = accounts["owner"][0], accounts["staff admin"][0]
    leavers = [await _session(ctx, each, accounts[each][0]) for each in ("leaver", "colleague") for _ in range(LEAVING)]
    stale = {name: await _session(ctx, name, user, age=10) for name, user in (("owner", owner), ("staff admin", admin))}
    half = await _session(ctx, "owner", owner, factor=False)
    ended = await _with_csrf(connection, await _session(ctx, "owner", owner))
    form = urlencode({"csrf": ended.csrf}).encode()
    answer = await connection.ask(_post("/console/sign-out", form, ended.header), "POST")
    if answer.status != 303 or session_of(answer):
        raise BrokenAnswer(f"signing out: {answer.status}")
    cast = Cast(
        {name: await _with_csrf(connection, each) for name, each in people.items()},
        [await _with_csrf(connection, each) for each in leavers],
        {name: await _with_csrf(connection, each) for name, each in stale.items()},
        ended,
        half,
        await _session(ctx, "foreigner", accounts["foreigner"][0]),
    )
    await connection.close()
    return cast


async def freshen(ctx: AppContext, cast: Cast) -> None:
    """A second factor counts for five minutes (`accounts/sessions.py`), a trial takes longer."""
    for person in (*cast.people.values(), *cast.leavers):
        await ctx.db.write(_FRESHEN, session=person.session, now=ctx.clock.now())


async def _session(ctx: AppContext, name: str, user: User, *, factor: bool = True, age: int = 0) -> Person:
    """`age`: of the second factor, in minutes."""
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        given = earlier(now, age * MINUTE) if factor else None
        secret, session = await sessions.begin(tx, user.id, now, address="10.0.0.1", agent="Firefox", factor_at=given)
    return _person(name, user, session.id, secret)


async def _sign_in(ctx: AppContext, connection: Connection, name: str, user: User, seed: str | None) -> Person:
    """Raises BrokenAnswer."""
    form = urlencode({"email": user.email, "password": PASSWORD}).encode()
    answer = await connection.ask(_post("/console/sign-in", form), "POST")
    secret = session_of(answer)
    if seed is not None and secret is not None:
        person = await _with_csrf(connection, _person(name, user, 0, secret), "/console/factor")
        code = pyotp.TOTP(seed).generate_otp(ctx.clock.now() // (30 * SECOND))
        form = urlencode({"csrf": person.csrf, "code": code}).encode()
        answer = await connection.ask(_post("/console/factor", form, person.header), "POST")
        secret = session_of(answer)
    if answer.status != 303 or secret is None:
        raise BrokenAnswer(f"{name} cannot sign in: {answer.status} {answer.body[:300]!r}")
    [session] = [
        each for each in await sessions.of_user(ctx.db, user.id, ctx.clock.now()) if each.hash == secret_hash(secret)
    ]
    return _person(name, user, session.id, secret)


def _person(name: str, user: User, session: int, secret: str) -> Person:
    own_role = name.removeprefix("staff ")
    role = {"leaver": "finance", "colleague": "support", "foreigner": "owner"}.get(name, own_role)
    return Person(name, role, user.staff_role is not None, user.id, session, secret)  # type: ignore[arg-type]


async def _with_csrf(connection: Connection, person: Person, path: str = "/console/security") -> Person:
    """Raises BrokenAnswer when the session does not open the page."""
    raw = f"GET {path} HTTP/1.1\r\nHost: x\r\n{person.header[0]}: {person.header[1]}\r\n\r\n".encode()
    answer = await connection.ask(raw, "GET")
    found = re.search(rb'name="csrf" value="([^"]+)"', answer.body)
    if answer.status != 200 or found is None:
        raise BrokenAnswer(f"{person.name} does not see {path}: {answer.status}")
    return replace(person, csrf=found[1].decode())


def _post(path: str, form: bytes, *headers: tuple[str, str]) -> bytes:
    return wire("", "POST", path, (FORM, ("Sec-Fetch-Site", "same-origin"), *headers), form).raw
