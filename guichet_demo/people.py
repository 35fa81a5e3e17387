"""The people of the demonstration: an owner of both demo merchants, and two of the staff: one alone moves no money.

Nobody knows their passwords, and they have no telephones: `access.py` lets them in.
"""

from dataclasses import dataclass
from typing import Final

from guichet.accounts import users
from guichet.accounts.passwords import Passwords
from guichet.audit_log import entries as audit_log
from guichet.clock import DAY, earlier
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.accounts import User, new_secret
from guichet.domain.audit_log import Act, Actor, Facts
from guichet.domain.ids import MerchantId
from guichet.domain.roles import StaffRole
from guichet_demo import month
from guichet_demo.access import DemoAccess

_OWNER: Final = ("proprietaire@demo.example.com", "Awa Démo")
#: Who made the demonstration, in the audit log.
_ACTOR: Final = Actor("guichet demo", "guichet demo")
_STAFF: Final = (("equipe@demo.example.com", "Équipe Démo"), ("controle@demo.example.com", "Contrôle Démo"))
#: Who has been in the staff for less than a day approves nothing.
_IN_STAFF_SINCE: Final = 8 * DAY


@dataclass(frozen=True, slots=True)
class DemoLinks:
    """Addresses that sign in once: the owner at `/console`, the two of the staff at `/admin`."""

    owner: str
    staff: tuple[str, str]


async def demo_people(ctx: AppContext, access: DemoAccess, merchant_id: MerchantId) -> DemoLinks:
    """New links of the demo people, who are created on the first call with the second merchant and its month."""
    owner = await _person(ctx, *_OWNER)
    staff = [await _person(ctx, *person, staff_role="admin") for person in _STAFF]
    places = [merchant for _, merchant in await users.merchants_of(ctx.db, owner.id)]
    if merchant_id not in [merchant.id for merchant in places]:
        await _join(ctx, owner, merchant_id)
    shop = next((merchant for merchant in places if merchant.name == month.NAME), None)
    if shop is None:
        shop = await month.add_merchant(ctx)
        await _join(ctx, owner, shop.id)
    await month.fill_month(ctx, shop)
    for person in (owner, *staff):
        await access.give_telephone(ctx, person)
    site = f"{ctx.settings.browser_url}/console/sign-in"
    links = [f"{site}/{access.new_link(person.id, ctx.clock.now())}" for person in (owner, *staff)]
    return DemoLinks(links[0], (links[1], links[2]))


async def _person(ctx: AppContext, email: str, name: str, staff_role: StaffRole | None = None) -> User:
    """The person with an account that is active, whose password nobody has seen."""
    existing = await users.by_email(ctx.db, email)
    if existing is not None:
        return existing
    passwords = Passwords()
    hashed = await passwords.hash(new_secret())
    passwords.close()
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        since = earlier(now, _IN_STAFF_SINCE)
        created = require(await users.create(tx, email, name, "fr", staff_role, since))
        user = require(await users.set_password(tx, created.id, hashed, now, None))
        act = Act(_ACTOR, "user.created", "user", str(user.id), after={"role": staff_role})
        await audit_log.record(tx, act, now)
    return user


async def _join(ctx: AppContext, owner: User, merchant_id: MerchantId) -> None:
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        await users.join(tx, owner.id, merchant_id, "owner", now)
        after: Facts = {"role": "owner"}
        await audit_log.record(
            tx, Act(_ACTOR, "user.role_changed", "user", str(owner.id), merchant_id, after=after), now
        )
