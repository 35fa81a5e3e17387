"""Sessions: rows that can be listed and revoked. The cookie holds a secret, the row its hash.

A session has a new secret after each sign-in and each second factor, so that one that was planted or seen before is
worth nothing afterwards (ASVS 4.0.3, 3.2.1). `last_seen_at` moves at most once a minute: reading costs one index probe.

Device cookies outlive sessions: a browser from which somebody proved everything before is known, so that strangers who
guess passwords or codes use up their own attempts, not the person's (OWASP, "Slow down online guessing attacks with
device cookies").
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import bindparam, delete, func, insert, select, update

from guichet.accounts.signed_tokens import SignedTokens
from guichet.accounts.users import MOST_LISTED
from guichet.clock import DAY, MINUTE, Clock, Instant
from guichet.db.engine import Database, Reader, Transaction, Writer, require
from guichet.db.sql_functions import equal, new_row, values_of
from guichet.db.tables import memberships, merchants, user_sessions, users
from guichet.domain.accounts import Session, User, UserId, new_secret, secret_hash
from guichet.domain.merchants import Merchant
from guichet.domain.roles import MerchantRole

#: How exactly `last_seen_at` is kept.
_SEEN_EVERY: Final = MINUTE
#: Sessions of one person; the oldest ends when there would be more.
MOST_SESSIONS: Final = 20
_MAX_AGENT: Final = 200

_INSERT: Final = insert(user_sessions).values(new_row(user_sessions)).returning(*user_sessions.c)
_FIND: Final = (
    select(*user_sessions.c, *users.c, memberships.c.role, *merchants.c)
    .join(users, users.c.id == user_sessions.c.user_id)
    .outerjoin(memberships, memberships.c.user_id == users.c.id)
    .outerjoin(merchants, merchants.c.id == memberships.c.merchant_id)
    .where(user_sessions.c.hash == bindparam("hash"), users.c.status == "active")
    .order_by(memberships.c.merchant_id)
    .limit(MOST_LISTED)
)
_USER_FROM: Final = len(user_sessions.c)
_ROLE_AT: Final = _USER_FROM + len(users.c)
_SEEN: Final = (
    update(user_sessions).where(user_sessions.c.id == bindparam("session")).values(last_seen_at=bindparam("now"))
)
_RENEW: Final = (
    update(user_sessions)
    .where(*equal(user_sessions, id="session", hash="old_hash"))
    .values(hash=bindparam("new_hash"), factor_at=bindparam("now"), last_seen_at=bindparam("now"))
    .returning(*user_sessions.c)
)
_THIS_USER: Final = user_sessions.c.user_id == bindparam("user")
_OF_USER: Final = select(user_sessions).where(_THIS_USER).order_by(user_sessions.c.id.desc()).limit(MOST_SESSIONS)
_END: Final = (
    delete(user_sessions).where(_THIS_USER, user_sessions.c.id == bindparam("session")).returning(user_sessions.c.id)
)
_END_ALL: Final = (
    delete(user_sessions)
    .where(_THIS_USER, user_sessions.c.id != func.coalesce(bindparam("kept", type_=user_sessions.c.id.type), 0))
    .returning(user_sessions.c.id)
)
_OLDEST_KEPT: Final = (
    select(user_sessions.c.id).where(_THIS_USER).order_by(user_sessions.c.id.desc()).offset(MOST_SESSIONS - 1).limit(1)
)
_END_OLDER: Final = delete(user_sessions).where(_THIS_USER, user_sessions.c.id < bindparam("oldest"))


async def begin(
    tx: Transaction, user_id: UserId, now: Instant, *, address: str, agent: str, factor_at: Instant | None = None
) -> tuple[str, Session]:
    """A new session and its cookie's secret. The oldest session ends when there are too many."""
    secret = new_secret()
    new = Session(0, user_id, secret_hash(secret), now, now, factor_at, address, agent[:_MAX_AGENT])
    row = await tx.write(_INSERT, **values_of(user_sessions, new))
    oldest = await tx.one(_OLDEST_KEPT, user=user_id)
    if oldest is not None:
        await tx.write(_END_OLDER, user=user_id, oldest=oldest[0])
    return secret, Session(*require(row))


class OpenSession(NamedTuple):
    """A session, its user, and the merchants that the user works for, with the role; the oldest merchant first."""

    session: Session
    user: User
    memberships: list[tuple[MerchantRole, Merchant]]


async def find(db: Database, secret: str, now: Instant) -> OpenSession | None:
    """The session of a cookie; None if it ended or the user is disabled. One statement, which every page makes."""
    rows = await db.all(_FIND, hash=secret_hash(secret))
    if not rows:
        return None
    session, user = Session(*rows[0][:_USER_FROM]), User(*rows[0][_USER_FROM:_ROLE_AT])
    if session.ends_at() <= now:
        return None
    if now - session.last_seen_at >= _SEEN_EVERY:
        await db.write(_SEEN, session=session.id, now=now)
    memberships = [(row[_ROLE_AT], Merchant(*row[_ROLE_AT + 1 :])) for row in rows if row[_ROLE_AT] is not None]
    return OpenSession(session, user, memberships)


async def renew(db: Writer, session: Session, now: Instant) -> tuple[str, Session] | None:
    """The same session under a new secret, with a second factor that was given now. None if another request renewed it
    in the same moment."""
    secret = new_secret()
    row = await db.write(_RENEW, session=session.id, old_hash=session.hash, new_hash=secret_hash(secret), now=now)
    return (secret, Session(*row)) if row else None


async def of_user(db: Reader, user_id: UserId, now: Instant) -> list[Session]:
    """Those that have not ended, newest first."""
    rows = [Session(*row) for row in await db.all(_OF_USER, user=user_id)]
    return [session for session in rows if session.ends_at() > now]


async def end(db: Writer, user_id: UserId, session_id: int) -> bool:
    """Whether the user had this session."""
    return await db.write(_END, user=user_id, session=session_id) is not None


async def end_all(db: Writer, user_id: UserId, *, kept: int | None = None) -> int:
    """Ends every session of the user but `kept`; how many there were. After a change of password, factor or role."""
    return len(await db.write_all(_END_ALL, user=user_id, kept=kept))


#: How long a browser is remembered.
MAX_AGE: Final = 180 * DAY


class Devices:
    """Issues and reads device cookies. `keys`: the service's secret keys, newest first.

    A cookie is for one account, with the password and the kind of proof that it has at that time: it ends with a new
    password, and one that a password alone earned is worth nothing once the account has a second factor. Otherwise who
    knew the password once could collect cookies, and guess with each of them."""

    def __init__(self, keys: Sequence[str], clock: Clock) -> None:
        self._tokens = SignedTokens(keys, "guichet device cookie v2", MAX_AGE, clock)

    def issue(self, user: User, name: str | None = None) -> str:
        """`name`: of a browser that was known until the account changed; its attempts are counted on."""
        return self._tokens.issue(_account_of(user), name)

    def known(self, user: User, cookie: str | None) -> str | None:
        """What names the browser if this user proved everything from it before; None if not."""
        return self._tokens.nonce_of(_account_of(user), cookie)


def _account_of(user: User) -> str:
    return f"{user.id}.{secret_hash(user.password_hash or '')}.{user.totp_confirmed:d}"
