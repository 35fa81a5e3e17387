"""A person who is signed in chooses another password, and proves first that it is not a stranger at an open screen."""

from guichet.accounts import sessions, users
from guichet.accounts.errors import PasswordWeak, SignInRefused
from guichet.accounts.passwords import weakness
from guichet.accounts.sign_in import Accounts, refusals_logged
from guichet.audit_log import entries as audit_log
from guichet.domain.accounts import Session, User
from guichet.domain.audit_log import Act, Actor


async def change_password(
    accounts: Accounts, user: User, session: Session, present: str, password: str, actor: Actor
) -> None:
    """The new password counts; every session but this one ends, and a mail tells the person.

    Raises SignInRefused when `present` is not the password of now, PasswordWeak, TooManyAttempts, TooBusy.
    """
    ctx = accounts.ctx
    with refusals_logged("password", user, session.address):
        await accounts.attempt("factor", str(user.id))
        if not await accounts.passwords.matches(user.password_hash, present):
            raise SignInRefused
    if found := weakness(password, user.email, user.name):
        raise PasswordWeak(found)
    hashed = await accounts.passwords.hash(password)
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        if await users.set_password(tx, user.id, hashed, now) is None:
            raise SignInRefused
        await sessions.end_all(tx, user.id, kept=session.id)
        await audit_log.record(tx, Act(actor, "user.password_changed", "user", str(user.id)), now)
        values = {"name": user.name, "date": str(now), "link": accounts.reset_address}
        await accounts.outbox.add(tx, user, "password_changed", values, now)
