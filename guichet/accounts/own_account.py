"""What people change about their own account: the password, passkeys, telephones and recovery codes. Each change is
kept in the audit log and told by mail, since somebody else may have made it."""

from msgspec import structs

from guichet.accounts import factors, passkeys, sessions, users
from guichet.accounts.errors import PasswordWeak, SignInRefused
from guichet.accounts.passwords import weakness
from guichet.accounts.sign_in import Accounts, Browser, SignedIn, refusals_logged, renewed
from guichet.audit_log import entries as audit_log
from guichet.db.engine import Transaction
from guichet.domain.accounts import Session, User
from guichet.domain.audit_log import Act, Actor


async def change_password(
    accounts: Accounts, user: User, session: Session, present: str, password: str, actor: Actor, browser: Browser
) -> str | None:
    """The new password counts; every session but this one ends, and so does what made other browsers known; a mail
    tells the person. A device cookie for this browser.

    Raises SignInRefused when `present` is not the password of now, PasswordWeak, TooManyAttempts, TooBusy.
    """
    ctx = accounts.ctx
    with refusals_logged("password", user, session.address):
        await accounts.attempt_factor(user, browser)
        if not await accounts.passwords.matches(user.password_hash, present):
            raise SignInRefused
    if fault := weakness(password, user.email, user.name):
        raise PasswordWeak(fault)
    hashed = await accounts.passwords.hash(password)
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        changed = await users.set_password(tx, user.id, hashed, now)
        if changed is None:
            raise SignInRefused
        await sessions.end_all(tx, user.id, kept=session.id)
        await audit_log.record(tx, Act(actor, "user.password_changed", "user", str(user.id)), now)
        values = {"name": user.name, "date": str(now), "link": accounts.reset_address}
        await accounts.outbox.add(tx, user, "password_changed", values, now)
    return accounts.device_cookie(changed, browser, accounts.devices.known(user, browser.device))


async def add_passkey(accounts: Accounts, user: User, answer: str, name: str, actor: Actor, browser: Browser) -> None:
    """Stores a key that the person's browser made. Raises CodeRefused, TooManyPasskeys."""
    ctx, site = accounts.ctx, await passkeys.load_site(accounts.ctx)
    async with ctx.db.transaction() as tx:
        await passkeys.add(ctx, tx, site, user, answer, name, browser.passkey)
        await _record(tx, accounts, user, "user.passkey_added", actor)


async def remove_passkey(accounts: Accounts, user: User, passkey_id: int, actor: Actor) -> None:
    async with accounts.ctx.db.transaction() as tx:
        if await passkeys.remove(tx, user.id, passkey_id) is not None:
            await _record(tx, accounts, user, "user.passkey_removed", actor)


async def add_telephone(
    accounts: Accounts, user: User, session: Session, code: str, actor: Actor, browser: Browser
) -> tuple[SignedIn, list[str]]:
    """A first telephone counts: the session under a new secret, and the recovery codes. One transaction: a telephone
    that counts has recovery codes, an entry in the audit log and a mail. Raises CodeRefused, TooManyAttempts."""
    ctx = accounts.ctx
    # Of this session alone, which saw the seed: others must not use up its attempts.
    await accounts.attempt("factor_device", f"session {session.id}")
    async with ctx.db.transaction() as tx:
        await factors.check_totp(ctx, user, code, confirms=True, tx=tx)
        secret, session = await renewed(accounts, session, tx)
        codes = await factors.new_recovery_codes(tx, user.id, ctx.clock.now())
        await _record(tx, accounts, user, "user.factor_added", actor)
    device = accounts.device_cookie(structs.replace(user, totp_confirmed=True), browser)
    return SignedIn(user, session, secret, device), codes


async def make_recovery_codes(accounts: Accounts, user: User, actor: Actor) -> list[str]:
    """New codes, shown once; those before count no more."""
    async with accounts.ctx.db.transaction() as tx:
        codes = await factors.new_recovery_codes(tx, user.id, accounts.ctx.clock.now())
        await _record(tx, accounts, user, "user.recovery_codes_made", actor)
    return codes


async def change_telephone(
    accounts: Accounts, user: User, session: Session, code: str, actor: Actor, browser: Browser
) -> None:
    """The new telephone counts instead of the old one; every session but this one ends. Raises CodeRefused,
    TooManyAttempts."""
    await accounts.attempt_factor(user, browser)
    async with accounts.ctx.db.transaction() as tx:
        await factors.change_telephone(accounts.ctx.clock, accounts.ctx.vault, tx, user, code)
        await sessions.end_all(tx, user.id, kept=session.id)
        await _record(tx, accounts, user, "user.telephone_changed", actor)


async def _record(tx: Transaction, accounts: Accounts, user: User, action: str, actor: Actor) -> None:
    now = accounts.ctx.clock.now()
    await audit_log.record(tx, Act(actor, action, "user", str(user.id)), now)
    values = {"name": user.name, "date": str(now), "link": accounts.reset_address}
    await accounts.outbox.add(tx, user, "factor_changed", values, now)
