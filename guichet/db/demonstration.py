"""Whether a database is a demonstration's. `guichet demo` makes people whom anybody lets in and keys that stand in a
file: beside real money they would be open doors, and a copy of the database takes them along."""

from typing import Final

from sqlalchemy import exists, select, update

from guichet.db.engine import Database, Reader, require
from guichet.db.tables import payments, published_heads
from guichet.settings import SettingsError

_IS_MARKED: Final = select(published_heads.c.demonstration)
_HAS_LIVE_PAYMENTS: Final = select(exists().where(payments.c.env == "live"))
_MARK: Final = update(published_heads).values(demonstration=True)


async def mark(db: Database) -> None:
    """Before anything of a demonstration is made. Raises SettingsError for a database with live payments of others."""
    async with db.transaction() as tx:
        if await _is_marked(tx):
            return
        if require(await tx.one(_HAS_LIVE_PAYMENTS))[0]:
            raise SettingsError(
                "This database has live payments and is no demonstration's: nothing of a demonstration is put beside "
                "them. Give the demonstration a database of its own (GUICHET_DATABASE_URL or GUICHET_HOME)."
            )
        await tx.write(_MARK)


async def refuse_in_production(db: Reader) -> None:
    """Raises SettingsError if the database is a demonstration's."""
    if await _is_marked(db):
        raise SettingsError(
            "GUICHET_PROFILE is production, but this database is that of a demonstration (`guichet demo`): its staff "
            "and its keys are open to whoever reads its files. Start with a new, empty database "
            "(GUICHET_DATABASE_URL, or GUICHET_HOME for SQLite), and create merchants and people there; a "
            "demonstration cannot be made a real one."
        )


async def _is_marked(db: Reader) -> bool:
    return bool(require(await db.one(_IS_MARKED))[0])
