"""Payment links: SQL and row mapping. A conditional UPDATE reserves a use, so that parallel payments cannot exceed the
limit (D30)."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from sqlalchemy import Integer, bindparam, func, insert, or_, select, update

from guichet.db.engine import Database, Reader, Row, Transaction, require
from guichet.db.tables import payment_links
from guichet.domain.ids import LinkId, MerchantId
from guichet.domain.payment_links import PaymentLink

_INSERT: Final = (
    insert(payment_links)
    .values({column.name: bindparam(column.name) for column in payment_links.c if column.name != "id"})
    .returning(*payment_links.c)
)
_BY_ID: Final = select(payment_links).where(
    payment_links.c.merchant_id == bindparam("merchant_id"), payment_links.c.id == bindparam("id")
)
_BY_TOKEN: Final = select(payment_links).where(payment_links.c.token == bindparam("token"))
_COUNT: Final = (
    select(func.count()).select_from(payment_links).where(payment_links.c.merchant_id == bindparam("merchant_id"))
)
_PAGE: Final = (
    select(payment_links)
    .where(payment_links.c.merchant_id == bindparam("merchant_id"))
    .order_by(payment_links.c.id.desc())
    .limit(bindparam("most"))
    .offset(bindparam("skipped"))
)
_RESERVE: Final = (
    update(payment_links)
    .where(
        payment_links.c.id == bindparam("link_id"),
        or_(payment_links.c.max_uses.is_(None), payment_links.c.reserved_uses < payment_links.c.max_uses),
    )
    .values(reserved_uses=payment_links.c.reserved_uses + 1)
    .returning(payment_links.c.id)
)
_RELEASE: Final = (
    update(payment_links)
    .where(payment_links.c.id == bindparam("link_id"))
    .values(reserved_uses=payment_links.c.reserved_uses - bindparam("uses", type_=Integer))
)
_COMPLETE: Final = (
    update(payment_links)
    .where(payment_links.c.id == bindparam("link_id"))
    .values(completed_uses=payment_links.c.completed_uses + bindparam("uses", type_=Integer))
)


async def insert_new(db: Database, link: PaymentLink) -> PaymentLink:
    values = {column.name: getattr(link, column.name) for column in payment_links.c if column.name != "id"}
    return PaymentLink(*require(await db.write(_INSERT, **values)))


async def by_id(db: Reader, merchant_id: MerchantId, link_id: LinkId) -> PaymentLink | None:
    return _link(await db.one(_BY_ID, merchant_id=merchant_id, id=link_id))


async def by_token(db: Reader, token: str) -> PaymentLink | None:
    """The link of a hosted page; the token itself is the authorisation."""
    return _link(await db.one(_BY_TOKEN, token=token))


async def page(db: Database, merchant_id: MerchantId, limit: int, offset: int) -> tuple[list[PaymentLink], int]:
    """One page, newest first, and the exact total. Reads an index range of this merchant's links."""
    total: int = (await db.scan(_COUNT, merchant_id=merchant_id))[0][0]
    if offset >= total:
        return [], total
    rows = await db.scan(_PAGE, merchant_id=merchant_id, most=limit, skipped=offset)
    return [PaymentLink(*row) for row in rows], total


async def reserve_use(tx: Transaction, link_id: LinkId) -> bool:
    """Reserves a use for a new payment; False when none is left."""
    return await tx.write(_RESERVE, link_id=link_id) is not None


async def release_uses(tx: Transaction, link_ids: Sequence[LinkId]) -> None:
    """Gives back one use for each item, when payments failed; a link may occur several times."""
    await tx.execute_many(_RELEASE, _uses(link_ids))


async def complete_uses(tx: Transaction, link_ids: Sequence[LinkId]) -> None:
    """Counts one completed use for each item, when payments succeeded; a link may occur several times."""
    await tx.execute_many(_COMPLETE, _uses(link_ids))


def _uses(link_ids: Sequence[LinkId]) -> list[dict[str, int]]:
    """The number of uses of each link, ordered by link, so that two transactions cannot deadlock."""
    return [{"link_id": link_id, "uses": uses} for link_id, uses in sorted(Counter(link_ids).items())]


def _link(row: Row | None) -> PaymentLink | None:
    return PaymentLink(*row) if row is not None else None
