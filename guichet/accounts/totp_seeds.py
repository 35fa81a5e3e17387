"""The seeds of one-time codes as they are stored, all of them: for the rotation of `GUICHET_SECRET_KEYS`."""

from typing import Final

from sqlalchemy import bindparam, select, update

from guichet.db.engine import Database, Writer
from guichet.db.tables import users
from guichet.domain.accounts import UserId

_ALL: Final = select(users.c.id, users.c.totp_secret).where(users.c.totp_secret.is_not(None)).order_by(users.c.id)
_PREPARED: Final = (
    select(users.c.id, users.c.next_totp_secret).where(users.c.next_totp_secret.is_not(None)).order_by(users.c.id)
)
_REPLACE_PREPARED: Final = (
    update(users)
    .where(users.c.id == bindparam("user"), users.c.next_totp_secret == bindparam("old"))
    .values(next_totp_secret=bindparam("new"))
    .returning(users.c.id)
)
_REPLACE: Final = (
    update(users)
    .where(users.c.id == bindparam("user"), users.c.totp_secret == bindparam("old"))
    .values(totp_secret=bindparam("new"))
    .returning(users.c.id)
)


async def all_seeds(db: Database) -> list[tuple[UserId, str]]:
    """(user, encrypted seed). Grows with the number of people; for the command line."""
    return [(user_id, seed) for user_id, seed in await db.scan(_ALL)]


async def replace(db: Writer, user_id: UserId, old: str, new: str) -> bool:
    """The same seed in another encryption; False when the person has a new one meanwhile: that one stays."""
    return await db.write(_REPLACE, user=user_id, old=old, new=new) is not None


async def prepared(db: Database) -> list[tuple[UserId, str]]:
    """(user, encrypted seed) of other telephones that have not proved themselves yet."""
    return [(user_id, seed) for user_id, seed in await db.scan(_PREPARED)]


async def replace_prepared(db: Writer, user_id: UserId, old: str, new: str) -> bool:
    """As `replace`."""
    return await db.write(_REPLACE_PREPARED, user=user_id, old=old, new=new) is not None
