"""Links that sign somebody in without a password: `guichet demo` prints them for its demo people.

They exist in development only, and only in the memory of the process that printed them, by the hash of their secret: no
database ever holds a way in without a password, and stopping the process ends them all. Each works once, for
SIGN_IN_LINK_LASTS, and on this machine only (`console/sign_in_page.py`).
"""

from typing import Final

from guichet.accounts import users
from guichet.accounts.errors import LinkUnusable
from guichet.accounts.sign_in import Accounts, Browser, SignedIn, begin_session
from guichet.audit_log import entries as audit_log
from guichet.clock import MINUTE, later
from guichet.context import AppContext
from guichet.domain.accounts import SignInLink, UserId, new_secret, secret_hash
from guichet.domain.audit_log import Act, Actor

SIGN_IN_LINK_LASTS: Final = 15 * MINUTE


def create(ctx: AppContext, user_id: UserId) -> str:
    """The secret of a new link. Raises LinkUnusable outside development."""
    if not ctx.settings.development:
        raise LinkUnusable
    secret = new_secret()
    ctx.sign_in_links[secret_hash(secret)] = SignInLink(user_id, later(ctx.clock.now(), SIGN_IN_LINK_LASTS))
    return secret


async def use(accounts: Accounts, secret: str, browser: Browser) -> SignedIn:
    """Uses the link up, and signs its person in with a fresh second factor, so that every page can be tried.

    Raises LinkUnusable: outside development, when the link expired or was used, and when the account was disabled.
    """
    ctx = accounts.ctx
    now = ctx.clock.now()
    link = ctx.sign_in_links.pop(secret_hash(secret), None) if ctx.settings.development else None
    user = await users.get(ctx.db, link.user_id) if link is not None and now < link.expires_at else None
    if user is None or user.status != "active":
        raise LinkUnusable
    async with ctx.db.transaction() as tx:
        act = Act(Actor(user.email, "console"), "user.sign_in_link_used", "user", str(user.id))
        await audit_log.record(tx, act, now)
    return await begin_session(accounts, user, browser, "demo", factor_at=now)
