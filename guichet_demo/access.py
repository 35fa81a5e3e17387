"""How the demo's people come in: links that sign in once, and the codes of telephones that nobody has.

`guichet demo` alone makes one, in development, and gives it to the console. Links exist only in the memory of the
process that printed them, by the hash of their secret: no database holds a way in without a password, and stopping the
process ends them all. The console asks for both on behalf of browsers on this machine only.
"""

from dataclasses import dataclass, field
from typing import Final

import pyotp

from guichet.accounts import factors, users
from guichet.accounts.errors import LinkUnusable
from guichet.accounts.factors import step_at
from guichet.accounts.sign_in import Accounts, Browser, SignedIn, begin_session
from guichet.audit_log import entries as audit_log
from guichet.clock import MINUTE, Instant, later
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.accounts import User, UserId, new_secret, secret_hash
from guichet.domain.audit_log import Act, Actor
from guichet.merchants.vault import Vault

SIGN_IN_LINK_LASTS: Final = 15 * MINUTE


@dataclass(frozen=True, slots=True)
class DemoAccess:
    """Implements `accounts.sign_in.WithoutPassword`."""

    #: The person and the end of each link, by the hash of its secret.
    _links: dict[str, tuple[UserId, Instant]] = field(default_factory=dict)
    _people: set[UserId] = field(default_factory=set)

    def new_link(self, user_id: UserId, now: Instant) -> str:
        secret = new_secret()
        self._links[secret_hash(secret)] = (user_id, later(now, SIGN_IN_LINK_LASTS))
        return secret

    async def sign_in(self, accounts: Accounts, secret: str, browser: Browser) -> SignedIn:
        """Uses the link up, and signs its person in with a fresh second factor, so that every page can be tried.

        Raises LinkUnusable when the link expired or was used, and when the account was disabled.
        """
        ctx = accounts.ctx
        now = ctx.clock.now()
        user_id, expires_at = self._links.pop(secret_hash(secret), (None, now))
        user = await users.get(ctx.db, user_id) if user_id is not None and now < expires_at else None
        if user is None or user.status != "active":
            raise LinkUnusable
        async with ctx.db.transaction() as tx:
            act = Act(Actor(user.email, "console"), "user.sign_in_link_used", "user", str(user.id))
            await audit_log.record(tx, act, now)
        return await begin_session(accounts, user, browser, "demo", factor_at=now)

    async def give_telephone(self, ctx: AppContext, user: User) -> None:
        """From here on pages show the person's codes. Who has no telephone gets one that has proved itself. Their
        second factor is one like everybody's: nothing is asked for less often."""
        if not user.totp_confirmed:
            seed = await factors.begin_totp(ctx, user)
            prepared = require(await users.get(ctx.db, user.id))
            # The code before the present one, which stays for the first page that asks.
            first = pyotp.TOTP(seed).generate_otp(step_at(ctx.clock.now()) - 1)
            await factors.check_totp(ctx, prepared, first, confirms=True)
        self._people.add(user.id)

    def code(self, user: User, vault: Vault, now: Instant) -> str | None:
        """The code that the person can give now. None for everybody else, and while the present ones are used up."""
        if user.id not in self._people or user.totp_secret is None:
            return None
        present = step_at(now)
        step = max(present, user.totp_step + 1)
        if step > present + 1:
            return None
        return pyotp.TOTP(vault.decrypt(user.totp_secret)).generate_otp(step)
