"""Signing in: the password, then a second factor where the account has one.

The flow of a session (docs/security.md):

1. `sign_in` checks the password and begins a session without a factor (`factor_at` is null).
2. If the account has a second factor, the session may do nothing but give it (`give_factor`), which renews its secret.
3. If its roles need one and it has none, the session may do nothing but set one up (`factors.py`).
4. Acts that need a fresh factor ask for it again, and `give_factor` renews the secret again.

What is wrong about a sign-in is never said, and an unknown address takes as long as a wrong password.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

from msgspec import structs

from guichet.accounts import factors, passkeys, sessions, users
from guichet.accounts.errors import AccountError, CodeRefused, SignInRefused, TooManyAttempts
from guichet.accounts.passwords import Passwords, is_outdated
from guichet.accounts.sessions import Devices
from guichet.clock import Instant
from guichet.context import AppContext
from guichet.db.engine import Transaction
from guichet.domain.accounts import Session, User, normal_email, secret_hash
from guichet.domain.records import Record
from guichet.domain.roles import MerchantRole, needs_second_factor
from guichet.logs import log
from guichet.mail.outbox import Outbox
from guichet.merchants.vault import Vault

#: What a session may do: everything its roles allow, or only give or set up the second factor.
SessionState = Literal["open", "needs_factor", "needs_setup"]


class AttemptLimits(Protocol):
    """Counts attempts across processes (`console/sign_in_limits.py`)."""

    async def take(self, kind: "AttemptKind", key: str) -> int:
        """Counts one attempt; 0 if it is allowed, else the seconds until there is room again."""


#: By what somebody signs in: `mail` is the link of an invitation or of a new password, `demo` that of `guichet demo`.
Means = Literal["password", "passkey", "mail", "demo"]
#: What attempts are counted by. A known browser counts for itself: `device` its passwords, `factor_device` its codes.
#: All unknown ones together count for the account: `account` passwords, `factor` codes. `told`: mails about those.
AttemptKind = Literal["address", "account", "device", "factor", "factor_device", "mail", "told"]


class Browser(Record, frozen=True):
    """Who is asking: the address as limits count it, the browser's name for itself, its device cookie, and that of the
    challenges for passkeys."""

    address: str
    agent: str
    device: str | None = None
    passkey: str | None = None


class SignedIn(Record, frozen=True):
    """`secret`: for the session's cookie. `device`: a new device cookie, None if the browser has a good one."""

    user: User
    session: Session
    secret: str
    device: str | None


class WithoutPassword(Protocol):
    """How the demo's people come in (`guichet_demo` has them); an installation has none."""

    async def sign_in(self, accounts: "Accounts", secret: str, browser: Browser) -> SignedIn:
        """By a link that works once. Raises LinkUnusable."""

    def code(self, user: User, vault: Vault, now: Instant) -> str | None:
        """The code of the person's telephone, to be shown to them."""


class Accounts(Record, frozen=True):
    """What the acts of this package need, built once for a process."""

    ctx: AppContext
    passwords: Passwords
    devices: Devices
    outbox: Outbox
    limits: AttemptLimits
    #: Where a person asks for a new password: it is named in mails.
    reset_address: str

    async def attempt(self, kind: AttemptKind, key: str) -> None:
        """Counts an attempt. Raises TooManyAttempts."""
        if wait := await self.limits.take(kind, key):
            raise TooManyAttempts(wait, kind)

    async def attempt_factor(self, user: User, browser: "Browser") -> None:
        """Counts an attempt at a code, a passkey or the present password of somebody who gave a password. Raises
        TooManyAttempts, of which the person has been told if unknown browsers made them."""
        if known := self.devices.known(user, browser.device):
            return await self.attempt("factor_device", known)
        try:
            await self.attempt("factor", str(user.id))
        except TooManyAttempts:
            await self.tell_of_attempts(user, "code")
            raise

    async def tell_of_attempts(self, user: User, means: Literal["password", "code"]) -> None:
        """Mails the person, once a day, that unknown browsers have used up their attempts."""
        if user.status != "active" or await self.limits.take("told", f"{user.id} {means}"):
            return
        now = self.ctx.clock.now()
        values = {"name": user.name, "date": str(now), "means": means, "link": self.reset_address}
        async with self.ctx.db.transaction() as tx:
            await self.outbox.add(tx, user, "attempts_used_up", values, now)

    def device_cookie(self, user: User, browser: "Browser", known: str | None = None) -> str | None:
        """For a browser that proved everything: a device cookie, None if it has a good one. `known`: its name, if it
        was known until the account changed."""
        return None if self.devices.known(user, browser.device) else self.devices.issue(user, known)


@contextmanager
def refusals_logged(means: str, user: User | None, address: str) -> Iterator[None]:
    """Each refusal of a proof is a line of the log (ASVS 4.0.3, 7.2.1): whose account, from where, and why; never what
    was typed. `address`: as limits count it."""
    try:
        yield
    except AccountError as refused:
        reason, user_id = type(refused).__name__, user.id if user else None
        log.info("sign_in.refused", user=user_id, means=means, why=reason, address=address)
        raise


async def sign_in(accounts: Accounts, email: str, password: str, browser: Browser) -> SignedIn:
    """Raises SignInRefused, TooManyAttempts, TooBusy."""
    address = normal_email(email) or ""
    user = await users.by_email(accounts.ctx.db, address) if address else None
    known = accounts.devices.known(user, browser.device) if user else None
    active = user if user is not None and user.status == "active" else None
    with refusals_logged("password", user, browser.address):
        await accounts.attempt("address", browser.address)
        await accounts.attempt("device", known) if known else await accounts.attempt("account", secret_hash(address))
        matches = await accounts.passwords.matches(active.password_hash if active else None, password)
        if active is None or not matches:
            raise SignInRefused
        if is_outdated(active.password_hash or ""):
            hashed = await accounts.passwords.hash(password)
            await users.renew_hash(accounts.ctx.db, active, hashed)
            active = structs.replace(active, password_hash=hashed)
    return await begin_session(accounts, active, browser, "password", known=known)


async def tell_of_guesses(accounts: Accounts, email: str) -> None:
    """After a refusal of `account`: mails the person, if there is one. It is done after the answer, so that the time
    that it takes says nothing."""
    address = normal_email(email)
    user = await users.by_email(accounts.ctx.db, address) if address else None
    if user is not None:
        await accounts.tell_of_attempts(user, "password")


async def begin_session(
    accounts: Accounts,
    user: User,
    browser: Browser,
    means: "Means",
    *,
    known: str | None = None,
    factor_at: Instant | None = None,
) -> SignedIn:
    """A session for somebody who just proved who they are. `known`: the browser's name, None if it is not known: it is
    told to them by mail, unless it was a mail that brought them. `factor_at`: now, if it was proved by two factors; a
    browser becomes known only by all factors that the account has."""
    ctx = accounts.ctx
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        secret, session = await sessions.begin(
            tx, user.id, now, address=browser.address, agent=browser.agent, factor_at=factor_at
        )
        await users.note_sign_in(tx, user.id, now)
        if not known and means not in ("mail", "demo") and user.last_signed_in_at is not None:
            values = {"name": user.name, "date": str(now), "agent": session.agent or "–", "address": browser.address}
            await accounts.outbox.add(tx, user, "new_sign_in", values | {"link": accounts.reset_address}, now)
    log.info("sign_in.succeeded", user=user.id, means=means, address=browser.address)
    proved = known is not None or factor_at is not None or not user.totp_confirmed
    return SignedIn(user, session, secret, accounts.device_cookie(user, browser, known) if proved else None)


async def sign_in_with_passkey(accounts: Accounts, answer: str, browser: Browser) -> SignedIn:
    """A session with a fresh second factor. Raises SignInRefused, TooManyAttempts."""
    ctx = accounts.ctx
    with refusals_logged("passkey", None, browser.address):
        await accounts.attempt("address", browser.address)
        try:
            user = await users.get(ctx.db, await passkeys.check(ctx, answer, None, browser.passkey))
        except CodeRefused:
            raise SignInRefused from None
        if user is None or user.status != "active":
            raise SignInRefused
    known = accounts.devices.known(user, browser.device)
    return await begin_session(accounts, user, browser, "passkey", known=known, factor_at=ctx.clock.now())


async def give_passkey(accounts: Accounts, session: Session, user: User, answer: str, browser: Browser) -> SignedIn:
    """The session under a new secret, after one of the user's passkeys. Raises CodeRefused, TooManyAttempts."""
    with refusals_logged("passkey", user, session.address):
        await accounts.attempt_factor(user, browser)
        await passkeys.check(accounts.ctx, answer, user, browser.passkey)
    return await _factor_given(accounts, session, user, browser, "passkey")


def state_of(session: Session, user: User, roles: tuple[MerchantRole, ...]) -> SessionState:
    """`roles`: the user's with every merchant."""
    if session.factor_at is not None:
        return "open"
    if user.totp_confirmed:
        return "needs_factor"
    return "needs_setup" if needs_second_factor(user.staff_role, roles) else "open"


async def give_factor(accounts: Accounts, session: Session, user: User, code: str, browser: Browser) -> SignedIn:
    """The session under a new secret, after a one-time or a recovery code. Raises CodeRefused, TooManyAttempts."""
    with refusals_logged("code", user, session.address):
        await accounts.attempt_factor(user, browser)
        try:
            await factors.check_totp(accounts.ctx, user, code)
        except CodeRefused:
            await factors.use_recovery_code(accounts.ctx.db, user.id, code, accounts.ctx.clock.now())
    return await _factor_given(accounts, session, user, browser, "code")


async def _factor_given(accounts: Accounts, session: Session, user: User, browser: Browser, means: str) -> SignedIn:
    log.info("factor.given", user=user.id, means=means, address=session.address)
    secret, session = await renewed(accounts, session)
    return SignedIn(user, session, secret, accounts.device_cookie(user, browser))


async def renewed(accounts: Accounts, session: Session, tx: Transaction | None = None) -> tuple[str, Session]:
    """The session after a second factor. Raises CodeRefused when another request renewed it in the same moment."""
    renewal = await sessions.renew(tx or accounts.ctx.db, session, accounts.ctx.clock.now())
    if renewal is None:
        raise CodeRefused
    return renewal
