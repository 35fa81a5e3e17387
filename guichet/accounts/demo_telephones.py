"""The one-time codes of the demo's people, who have no telephone: pages that ask for a code show it.

In development only, for people whom `guichet demo` made in this process, and to browsers on this machine
(`console/factor_pages.py`). Their second factor is one like everybody's: nothing is asked for less often.
"""

import pyotp

from guichet.accounts import factors, users
from guichet.accounts.factors import step_at
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.accounts import User


async def give(ctx: AppContext, user: User) -> None:
    """From here on pages show the person's codes. Who has no telephone gets one that has proved itself."""
    if not ctx.settings.development:
        return
    if not user.totp_confirmed:
        seed = await factors.begin_totp(ctx, user)
        prepared = require(await users.get(ctx.db, user.id))
        # The code before the present one, which stays for the first page that asks.
        first = pyotp.TOTP(seed).generate_otp(step_at(ctx.clock.now()) - 1)
        await factors.check_totp(ctx, prepared, first, confirms=True)
    ctx.demo_people.add(user.id)


def code(ctx: AppContext, user: User) -> str | None:
    """The code that the person can give now. None for everybody else, and while the present ones are used up."""
    if not ctx.settings.development or user.id not in ctx.demo_people or user.totp_secret is None:
        return None
    present = step_at(ctx.clock.now())
    step = max(present, user.totp_step + 1)
    if step > present + 1:
        return None
    return pyotp.TOTP(ctx.vault.decrypt(user.totp_secret)).generate_otp(step)
