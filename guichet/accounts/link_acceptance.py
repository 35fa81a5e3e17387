"""What the holder of a mailed link does with it: accepts an invitation, joins a team, chooses a new password
(docs/security.md)."""

from guichet.accounts import mail_links, sessions, users
from guichet.accounts.errors import LinkUnusable, PasswordWeak
from guichet.accounts.passwords import weakness
from guichet.accounts.sign_in import Accounts, Browser, SignedIn, begin_session
from guichet.audit_log import entries as audit_log
from guichet.clock import Instant
from guichet.db.engine import Transaction
from guichet.domain.accounts import LinkPurpose, TeamOffer, User, normal_email, secret_hash
from guichet.domain.audit_log import Act, Actor


async def accept(accounts: Accounts, secret: str, name: str | None, password: str, browser: Browser) -> SignedIn:
    """Makes the account active with this password, and signs its owner in.

    Raises LinkUnusable, PasswordWeak, TooBusy.
    """
    return await _choose_password(accounts, secret, "invitation", password, browser, name)


async def join_team(accounts: Accounts, secret: str) -> None:
    """Whoever has the link of an invitation to an active account accepts it: the account is in one team more. It opens
    no session, and changes neither the password nor the name. Raises LinkUnusable."""
    ctx = accounts.ctx
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        user_id, offer = await mail_links.use(tx, secret, "invitation", now)
        user = await users.lock(tx, user_id)
        if user.status != "active" or offer is None:
            raise LinkUnusable
        await _take_offer(tx, user, offer, now)
        act = Act(Actor(user.email, "console"), "user.invitation_used", "user", str(user.id), offer.merchant_id)
        await audit_log.record(tx, act, now)


async def _take_offer(tx: Transaction, user: User, offer: TeamOffer, now: Instant) -> None:
    """Raises LinkUnusable for somebody who has joined the staff since the invitation."""
    if user.staff_role is not None:
        raise LinkUnusable
    if await users.membership(tx, user.id, offer.merchant_id) is None:
        await users.join(tx, user.id, offer.merchant_id, offer.role, now)


async def count_request(accounts: Accounts, email: str, browser: Browser) -> None:
    """Somebody asks for a link to a new password. Raises TooManyAttempts."""
    await accounts.attempt("address", browser.address)
    await accounts.attempt("mail", secret_hash(normal_email(email) or ""))


async def mail_new_password(accounts: Accounts, email: str) -> None:
    """Mails a link if the address has an account. It is done after the answer, so that neither the answer nor the time
    that it takes says whether there is one."""
    ctx, address = accounts.ctx, normal_email(email) or ""
    user = await users.by_email(ctx.db, address) if address else None
    if user is None or user.status != "active":
        return
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        secret = await mail_links.create(tx, user.id, "password", now)
        link = f"{ctx.settings.public_url}/console/password/{secret}"
        await accounts.outbox.add(tx, user, "password", {"name": user.name, "link": link}, now)


async def reset_password(accounts: Accounts, secret: str, password: str, browser: Browser) -> SignedIn:
    """A new password by the link of a mail. Every session ends; the second factor is still asked for. Raises
    LinkUnusable, PasswordWeak, TooBusy."""
    return await _choose_password(accounts, secret, "password", password, browser, None)


async def _choose_password(
    accounts: Accounts, secret: str, purpose: LinkPurpose, password: str, browser: Browser, name: str | None
) -> SignedIn:
    ctx = accounts.ctx
    user, _ = await mail_links.find(ctx.db, secret, purpose, ctx.clock.now())
    known = accounts.devices.known(user, browser.device)
    if fault := weakness(password, user.email, user.name):
        raise PasswordWeak(fault)
    hashed = await accounts.passwords.hash(password)
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        user_id, offer = await mail_links.use(tx, secret, purpose, now)
        if purpose == "invitation" and (await users.lock(tx, user_id)).status != "invited":
            # A team's invitation is no way to a new password of an account that exists.
            raise LinkUnusable
        changed = await users.set_password(tx, user_id, hashed, now, name)
        if changed is None:
            raise LinkUnusable
        if offer is not None:
            await _take_offer(tx, changed, offer, now)
        await sessions.end_all(tx, user_id)
        await _tell(accounts, tx, changed, purpose, offer, now)
    return await begin_session(accounts, changed, browser, "mail", known=known)


async def _tell(
    accounts: Accounts, tx: Transaction, user: User, purpose: LinkPurpose, offer: TeamOffer | None, now: Instant
) -> None:
    """The audit log, and for a new password the person: it may have been somebody else."""
    merchant_id = offer.merchant_id if offer else None
    act = Act(Actor(user.email, "console"), f"user.{purpose}_used", "user", str(user.id), merchant_id)
    await audit_log.record(tx, act, now)
    if purpose == "password":
        values = {"name": user.name, "date": str(now), "link": accounts.reset_address}
        await accounts.outbox.add(tx, user, "password_changed", values, now)
