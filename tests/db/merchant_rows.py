"""The simplest rows to write and read: merchants, by name."""

from sqlalchemy import insert, select

from guichet.db.engine import Database
from guichet.db.tables import merchants

ADD = insert(merchants).values(status="active", currency="XOF", created_at=1).returning(merchants.c.id)
NAMES = select(merchants.c.name).order_by(merchants.c.id)


async def add(db: Database, name: str) -> None:
    await db.write(ADD.values(name=name))


async def names(db: Database) -> list[str]:
    return [row[0] for row in await db.scan(NAMES)]
