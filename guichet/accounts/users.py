"""Users and their memberships: SQL and row mapping. Every statement goes through a primary key or a unique index."""

import json
from collections.abc import Collection
from typing import Final

from sqlalchemy import BigInteger, Boolean, and_, bindparam, case, delete, func, select, update

from guichet.clock import Instant
from guichet.db.engine import Reader, Transaction, Writer, require
from guichet.db.sql_functions import equal, is_listed, new_row, params, upsert
from guichet.db.tables import memberships, merchants, users
from guichet.domain.accounts import Language, Membership, User, UserId, UserStatus
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Merchant
from guichet.domain.roles import MerchantRole, StaffRole

#: People that one list shows. A team or a staff with more is listed by the command line.
MOST_LISTED: Final = 500

_INSERT: Final = (
    upsert(users)
    .values(
        **params("email", "name", "language"),
        status="invited",
        staff_role=bindparam("staff_role"),
        staff_since=bindparam("staff_since"),
        totp_confirmed=False,
        totp_step=0,
        created_at=bindparam("now"),
        updated_at=bindparam("now"),
    )
    .on_conflict_do_nothing()
    .returning(*users.c)
)
_BY_ID: Final = select(users).where(users.c.id == bindparam("id"))
_BY_EMAIL: Final = select(users).where(users.c.email == bindparam("email"))
_NAMES: Final = select(users.c.id, users.c.name).where(is_listed(users.c.id, "ids"))
_BY_IDS: Final = select(users).where(is_listed(users.c.id, "ids"))
#: Rows that name the user, such as mails to them, need not wait for it.
_LOCK: Final = _BY_ID.with_for_update(key_share=True)
_CHANGE: Final = update(users).where(users.c.id == bindparam("user"))
_ACTIVATE: Final = (
    _CHANGE.where(users.c.status != "disabled")
    .values(
        status="active",
        password_hash=bindparam("new_hash"),
        name=func.coalesce(bindparam("new_name", type_=users.c.name.type), users.c.name),
        updated_at=bindparam("now"),
    )
    .returning(*users.c)
)
_REHASH: Final = _CHANGE.where(users.c.password_hash == bindparam("old_hash")).values(
    password_hash=bindparam("new_hash")
)
_SET_STATUS: Final = _CHANGE.values(
    status=bindparam("new_status"),
    staff_since=case((users.c.staff_role.is_not(None), bindparam("now", type_=BigInteger))),
    updated_at=bindparam("now"),
).returning(*users.c)
_SET_STAFF_ROLE: Final = _CHANGE.values(
    staff_role=bindparam("new_role"), staff_since=bindparam("since"), updated_at=bindparam("now")
).returning(*users.c)
_NOTE_REMOVAL: Final = (
    update(users)
    .where(is_listed(users.c.id, "ids"))
    .values(
        approver_until=case(
            (
                and_(users.c.id == bindparam("removed"), bindparam("ends", type_=Boolean)),
                bindparam("at", type_=BigInteger),
            ),
            else_=users.c.approver_until,
        ),
        removed_approver_at=case(
            (is_listed(users.c.id, "by"), bindparam("at", type_=BigInteger)),
            else_=users.c.removed_approver_at,
        ),
    )
    .returning(users.c.id)
)
_APPROVERS_UNTIL: Final = (
    select(users)
    .where(users.c.approver_until >= bindparam("since"))
    .order_by(users.c.approver_until)
    .limit(MOST_LISTED)
)
_SIGNED_IN: Final = _CHANGE.values(last_signed_in_at=bindparam("now"))
_SET_TOTP: Final = _CHANGE.values(
    totp_secret=bindparam("new_secret"),
    totp_confirmed=False,
    totp_step=0,
    next_totp_secret=None,
    updated_at=bindparam("now"),
)
_BEGIN_TOTP: Final = _SET_TOTP.where(users.c.totp_confirmed.is_(False)).returning(users.c.id)
_PREPARE_TOTP: Final = _CHANGE.values(next_totp_secret=bindparam("new_secret"), updated_at=bindparam("now"))
_REPLACE_TOTP: Final = (
    _CHANGE.where(users.c.next_totp_secret == bindparam("proved"))
    .values(
        totp_secret=users.c.next_totp_secret,
        next_totp_secret=None,
        totp_confirmed=True,
        totp_step=bindparam("step"),
        updated_at=bindparam("now"),
    )
    .returning(users.c.id)
)
#: A code counts once, whoever sends it again and on whichever machine.
_TAKE_STEP: Final = (
    _CHANGE.where(users.c.totp_secret == bindparam("proved"), users.c.totp_step < bindparam("step"))
    .values(
        totp_step=bindparam("step"),
        totp_confirmed=case((bindparam("confirms", type_=Boolean), True), else_=users.c.totp_confirmed),
    )
    .returning(users.c.id)
)
_STAFF: Final = select(users).where(users.c.staff_role.is_not(None)).order_by(users.c.id).limit(MOST_LISTED)

_MERCHANTS_OF: Final = (
    select(memberships.c.role, *merchants.c)
    .join(merchants, merchants.c.id == memberships.c.merchant_id)
    .where(memberships.c.user_id == bindparam("user"))
    .order_by(merchants.c.id)
    .limit(MOST_LISTED)
)
_THIS_MEMBERSHIP: Final = equal(memberships, user_id="user", merchant_id="merchant")
_MEMBERSHIP: Final = select(memberships).where(*_THIS_MEMBERSHIP)
_TEAM: Final = (
    select(memberships.c.role, *users.c)
    .join(users, users.c.id == memberships.c.user_id)
    .where(memberships.c.merchant_id == bindparam("merchant"))
    .order_by(users.c.id)
    .limit(MOST_LISTED)
)
_NEW_MEMBERSHIP: Final = upsert(memberships).values(new_row(memberships))
_JOIN: Final = _NEW_MEMBERSHIP.on_conflict_do_update(
    index_elements=["user_id", "merchant_id"], set_={"role": _NEW_MEMBERSHIP.excluded.role}
)
_LEAVE: Final = delete(memberships).where(*_THIS_MEMBERSHIP).returning(*memberships.c)
_OWNERS: Final = (
    select(func.count())
    .select_from(memberships.join(users, users.c.id == memberships.c.user_id))
    .where(
        memberships.c.merchant_id == bindparam("merchant"),
        memberships.c.role == "owner",
        users.c.status != "disabled",
    )
)


async def create(
    tx: Transaction, email: str, name: str, language: Language, staff_role: StaffRole | None, now: Instant
) -> User | None:
    """A user who is invited; None when the address has one already."""
    profile = {"email": email, "name": name, "language": language}
    since = now if staff_role is not None else None
    return await tx.write_as(User, _INSERT, **profile, staff_role=staff_role, staff_since=since, now=now)


async def get(db: Reader, user_id: UserId) -> User | None:
    return await db.one_as(User, _BY_ID, id=user_id)


async def lock(tx: Transaction, user_id: UserId) -> User:
    """The user, whom no other transaction changes until the end of this one."""
    return User(*require(await tx.one(_LOCK, id=user_id)))


async def by_email(db: Reader, email: str) -> User | None:
    """`email` as `normal_email` gives it."""
    return await db.one_as(User, _BY_EMAIL, email=email)


async def set_password(
    tx: Transaction, user_id: UserId, hashed: str, now: Instant, name: str | None = None
) -> User | None:
    """Makes the user active; None if the account is disabled."""
    return await tx.write_as(User, _ACTIVATE, user=user_id, new_hash=hashed, new_name=name, now=now)


async def renew_hash(db: Writer, user: User, hashed: str) -> None:
    """The same password under today's parameters, unless it was changed meanwhile."""
    await db.write(_REHASH, user=user.id, old_hash=user.password_hash, new_hash=hashed)


async def set_status(db: Writer, user_id: UserId, status: UserStatus, now: Instant) -> User | None:
    return await db.write_as(User, _SET_STATUS, user=user_id, new_status=status, now=now)


async def set_staff_role(
    db: Writer, user_id: UserId, role: StaffRole | None, now: Instant, *, since: Instant | None = None
) -> User | None:
    """`since`: of rights that the person had before and keeps; otherwise the role counts from now on."""
    begins = None if role is None else now if since is None else since
    return await db.write_as(User, _SET_STAFF_ROLE, user=user_id, new_role=role, since=begins, now=now)


async def note_removed_approver(
    db: Writer, user_id: UserId, by: Collection[UserId], now: Instant, *, ends: bool
) -> None:
    """The accounts `by` took rights from this approver, who approves nothing more if that `ends`."""
    everybody = json.dumps(sorted({user_id, *by}))
    await db.write_all(_NOTE_REMOVAL, ids=everybody, removed=user_id, by=json.dumps(sorted(by)), at=now, ends=ends)


async def note_sign_in(db: Writer, user_id: UserId, now: Instant) -> None:
    await db.write(_SIGNED_IN, user=user_id, now=now)


async def begin_totp(db: Writer, user_id: UserId, encrypted: str, now: Instant) -> bool:
    """A first seed that is not confirmed yet. False, without a change, for somebody whose telephone counts by now."""
    return await db.write(_BEGIN_TOTP, user=user_id, new_secret=encrypted, now=now) is not None


async def remove_totp(db: Writer, user_id: UserId, now: Instant) -> None:
    await db.write(_SET_TOTP, user=user_id, new_secret=None, now=now)


async def prepare_totp(db: Writer, user_id: UserId, encrypted: str | None, now: Instant) -> None:
    """The seed of a new telephone; the old one counts until a code of the new one was given."""
    await db.write(_PREPARE_TOTP, user=user_id, new_secret=encrypted, now=now)


async def replace_totp(db: Writer, user_id: UserId, proved: str, step: int, now: Instant) -> bool:
    """The new telephone counts instead of the old one from here on. False if its seed is no longer `proved`, the
    encrypted seed whose code of this step was given."""
    return await db.write(_REPLACE_TOTP, user=user_id, proved=proved, step=step, now=now) is not None


async def take_totp_step(db: Writer, user_id: UserId, proved: str, step: int, *, confirms: bool) -> bool:
    """Whether the code of this step had not been used, and the seed is still `proved` (encrypted); it is used now."""
    return await db.write(_TAKE_STEP, user=user_id, proved=proved, step=step, confirms=confirms) is not None


async def names(db: Reader, user_ids: Collection[UserId]) -> dict[UserId, str]:
    """The names of these users. Cost: those rows."""
    return dict(await db.all(_NAMES, ids=json.dumps(sorted(user_ids)))) if user_ids else {}


async def by_ids(db: Reader, user_ids: Collection[UserId]) -> dict[UserId, User]:
    rows = await db.all(_BY_IDS, ids=json.dumps(sorted(user_ids))) if user_ids else []
    return {user.id: user for user in (User(*row) for row in rows)}


async def staff_in(db: Reader) -> list[User]:
    """Everybody of the staff, by id."""
    return [User(*row) for row in await db.all(_STAFF)]


async def approvers_until(db: Reader, since: Instant) -> list[User]:
    """Those who lost the right to approve at or after this time."""
    return [User(*row) for row in await db.all(_APPROVERS_UNTIL, since=since)]


async def merchants_of(db: Reader, user_id: UserId) -> list[tuple[MerchantRole, Merchant]]:
    """The merchants that the user works for, with the role; the oldest merchant first."""
    return [(row[0], Merchant(*row[1:])) for row in await db.all(_MERCHANTS_OF, user=user_id)]


async def membership(db: Reader, user_id: UserId, merchant_id: MerchantId) -> Membership | None:
    return await db.one_as(Membership, _MEMBERSHIP, user=user_id, merchant=merchant_id)


async def team(db: Reader, merchant_id: MerchantId) -> list[tuple[MerchantRole, User]]:
    return [(row[0], User(*row[1:])) for row in await db.all(_TEAM, merchant=merchant_id)]


async def join(tx: Transaction, user_id: UserId, merchant_id: MerchantId, role: MerchantRole, now: Instant) -> None:
    """Gives the user this role with the merchant, in place of the one before if there was one."""
    await tx.write(_JOIN, user_id=user_id, merchant_id=merchant_id, role=role, created_at=now)


async def leave(tx: Transaction, user_id: UserId, merchant_id: MerchantId) -> bool:
    """Whether there was a membership to end."""
    return await tx.write(_LEAVE, user=user_id, merchant=merchant_id) is not None


async def owners(db: Reader, merchant_id: MerchantId) -> int:
    """How many owners can act for the merchant."""
    return int(require(await db.one(_OWNERS, merchant=merchant_id))[0])
