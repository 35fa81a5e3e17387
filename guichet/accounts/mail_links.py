"""Single-use links in mails: an invitation, a new password. The mail holds a secret, the row its hash."""

from typing import Final

from sqlalchemy import BigInteger, bindparam, func, insert, select, update

from guichet.accounts.errors import LinkUnusable
from guichet.clock import Instant, later
from guichet.db.engine import Reader, Transaction, Writer, require
from guichet.db.sql_functions import equal, lock_until_commit, params
from guichet.db.tables import mail_links, users
from guichet.domain.accounts import LINK_LASTS, LinkPurpose, TeamOffer, User, UserId, is_secret, new_secret, secret_hash
from guichet.domain.ids import MerchantId
from guichet.domain.records import Record
from guichet.domain.roles import MerchantRole

#: Open invitations that one list shows.
MOST_LISTED: Final = 500

_INSERT: Final = insert(mail_links).values(
    params("user_id", "hash", "purpose", "created_at", "expires_at", "merchant_id", "role")
)
#: A new link replaces the one before: only the last mail works. Invitations to different teams stand beside each other.
_REPLACE: Final = (
    update(mail_links)
    .where(
        *equal(mail_links, user_id="user", purpose="of_purpose"),
        func.coalesce(mail_links.c.merchant_id, 0) == func.coalesce(bindparam("merchant", type_=BigInteger), 0),
        mail_links.c.used_at.is_(None),
    )
    .values(used_at=bindparam("now"))
)
_USABLE: Final = (
    *equal(mail_links, hash="link_hash", purpose="of_purpose"),
    mail_links.c.used_at.is_(None),
    mail_links.c.expires_at > bindparam("now"),
)
_OFFER: Final = (mail_links.c.merchant_id, mail_links.c.role)
_FIND: Final = (
    select(*_OFFER, *users.c)
    .join(mail_links, mail_links.c.user_id == users.c.id)
    .where(*_USABLE, users.c.status != "disabled")
)
_USE: Final = (
    update(mail_links).where(*_USABLE).values(used_at=bindparam("now")).returning(mail_links.c.user_id, *_OFFER)
)
_OPEN: Final = (
    mail_links.c.merchant_id == bindparam("merchant"),
    mail_links.c.used_at.is_(None),
    mail_links.c.expires_at > bindparam("now"),
)
_OFFERS_OF: Final = (
    select(mail_links.c.id, mail_links.c.role, *users.c)
    .join(users, users.c.id == mail_links.c.user_id)
    .where(*_OPEN)
    .order_by(mail_links.c.id)
    .limit(MOST_LISTED)
)
#: Offers as owner that ended before their time: they were taken back, answered or replaced.
_ENDED_OWNER_OFFERS: Final = (
    select(users.c.id, users.c.email)
    .distinct()
    .select_from(mail_links.join(users, users.c.id == mail_links.c.user_id))
    .where(
        mail_links.c.merchant_id == bindparam("merchant"),
        mail_links.c.role == "owner",
        mail_links.c.used_at.is_not(None),
        mail_links.c.expires_at > bindparam("now"),
    )
)
_WITHDRAW: Final = (
    update(mail_links)
    .where(*_OPEN, mail_links.c.id == bindparam("link"))
    .values(used_at=bindparam("now"))
    .returning(mail_links.c.user_id, *_OFFER)
)


#: Invitations are counted that were answered, replaced or taken back as well.
_TO_PERSON: Final = select(mail_links.c.merchant_id).where(
    mail_links.c.user_id == bindparam("user"),
    mail_links.c.purpose == "invitation",
    mail_links.c.created_at > bindparam("since"),
)
_OF_MERCHANT: Final = (
    select(func.count())
    .select_from(mail_links)
    .where(mail_links.c.merchant_id == bindparam("merchant"), mail_links.c.created_at > bindparam("since"))
)
_LOCK_INVITATIONS: Final = select(lock_until_commit(bindparam("locked")))


class OpenOffer(Record, frozen=True):
    """An invitation to a team that nobody has accepted yet. `user` may have an account with other teams, of which the
    team that invites learns nothing but the address that it wrote."""

    id: int
    role: MerchantRole
    user: User


async def create(
    tx: Transaction, user_id: UserId, purpose: LinkPurpose, now: Instant, offer: TeamOffer | None = None
) -> str:
    """The secret of a new link; the one before for the same purpose, and the same team, stops working."""
    secret = new_secret()
    merchant_id = offer.merchant_id if offer else None
    await tx.write(_REPLACE, user=user_id, of_purpose=purpose, merchant=merchant_id, now=now)
    await tx.write(
        _INSERT,
        user_id=user_id,
        hash=secret_hash(secret),
        purpose=purpose,
        created_at=now,
        expires_at=later(now, LINK_LASTS[purpose]),
        merchant_id=merchant_id,
        role=offer.role if offer else None,
    )
    return secret


async def invitations_since(
    tx: Transaction, user_id: UserId, merchant_id: MerchantId | None, since: Instant
) -> tuple[int, int, int]:
    """How many invitations were made since then: to this person by anybody, to this person by this merchant, and by
    this merchant to anybody. No other transaction makes one of this merchant until the end of this one."""
    of_merchant = 0
    if merchant_id is not None:
        await tx.one(_LOCK_INVITATIONS, locked=f"invitations of merchant {merchant_id}")
        of_merchant = require(await tx.one(_OF_MERCHANT, merchant=merchant_id, since=since))[0]
    inviters = [row[0] for row in await tx.all(_TO_PERSON, user=user_id, since=since)]
    return len(inviters), sum(inviter is not None and inviter == merchant_id for inviter in inviters), of_merchant


async def find(db: Reader, secret: str, purpose: LinkPurpose, now: Instant) -> tuple[User, TeamOffer | None]:
    """Whose link it is and what it offers, without using it: mail programs open links before people do. Raises
    LinkUnusable."""
    row = None
    if is_secret(secret):
        row = await db.one(_FIND, link_hash=secret_hash(secret), of_purpose=purpose, now=now)
    if row is None:
        raise LinkUnusable
    return User(*row[2:]), _offer(row[0], row[1])


async def use(tx: Writer, secret: str, purpose: LinkPurpose, now: Instant) -> tuple[UserId, TeamOffer | None]:
    """Uses the link up, in the transaction of what it allows. Raises LinkUnusable."""
    row = None
    if is_secret(secret):
        row = await tx.write(_USE, link_hash=secret_hash(secret), of_purpose=purpose, now=now)
    if row is None:
        raise LinkUnusable
    return UserId(row[0]), _offer(row[1], row[2])


async def open_offers(db: Reader, merchant_id: MerchantId, now: Instant) -> list[OpenOffer]:
    """The invitations to this merchant's team that wait for an answer, oldest first. Cost: the links of the merchant
    that pruning has left."""
    rows = await db.all(_OFFERS_OF, merchant=merchant_id, now=now)
    return [OpenOffer(row[0], row[1], User(*row[2:])) for row in rows]


async def ended_owner_offers(db: Reader, merchant_id: MerchantId, now: Instant) -> list[tuple[UserId, str]]:
    """Who was invited as an owner lately by a link that ended before its time, with the address."""
    return [(UserId(row[0]), row[1]) for row in await db.all(_ENDED_OWNER_OFFERS, merchant=merchant_id, now=now)]


async def withdraw(
    tx: Writer, merchant_id: MerchantId, link_id: int, now: Instant
) -> tuple[UserId, MerchantRole] | None:
    """The link of this open invitation stops working: whose it was, and which role it offered. None without one."""
    row = await tx.write(_WITHDRAW, merchant=merchant_id, link=link_id, now=now)
    return (UserId(row[0]), row[2]) if row else None


def _offer(merchant_id: MerchantId | None, role: MerchantRole | None) -> TeamOffer | None:
    return TeamOffer(merchant_id, role) if merchant_id is not None and role is not None else None
