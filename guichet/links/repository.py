"""Payment links: SQL and row mapping.

A conditional UPDATE reserves a use, so that parallel payments cannot exceed the limit (D30). A pending payment holds
its use until `payments.link_reserved_until`, and longer while nobody needs it: a new payment for which there is no room
takes the place of the one whose time passed first (docs/decisions.md, "Reserved use"). Whoever clears that column, or
ends the payment while it is set, gives the use back or completes it: this happens once for each payment, because both
lock its row.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import BigInteger, Executable, Integer, bindparam, case, func, or_, select, text, update

from guichet.clock import Instant
from guichet.db.engine import Database, Reader, Transaction, Writer, require
from guichet.db.lists.pages import PageBounds
from guichet.db.sql_functions import equal, new_row, upsert, values_of
from guichet.db.tables import payment_links, payments
from guichet.db.tables.payment_tables import LIVE_EXTERNAL_ID, PLAIN_LINKS, TEST_EXTERNAL_ID
from guichet.domain.accounts import UserId
from guichet.domain.ids import LinkId, MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.payment_links import PaymentLink
from guichet.domain.records import Record

_OF_MERCHANT: Final = equal(payment_links, "merchant_id", "test")
#: Checkout sessions are no links to whoever lists, reads or closes links (`links/session_repository.py`).
_PLAIN_OF_MERCHANT: Final[tuple[Any, ...]] = (*_OF_MERCHANT, text(PLAIN_LINKS))
#: Inserts nothing and returns no row if the merchant has a link with this external_id in this environment.
_INSERT: Final = (
    upsert(payment_links).values(new_row(payment_links)).on_conflict_do_nothing().returning(*payment_links.c)
)
_BY_ID: Final = select(payment_links).where(*_PLAIN_OF_MERCHANT, payment_links.c.id == bindparam("id"))
_ANY_BY_ID: Final = select(payment_links).where(*_OF_MERCHANT, payment_links.c.id == bindparam("id"))
#: By environment: the conditions are those of the indexes.
_EXTERNAL_ID: Final = equal(payment_links, "merchant_id", "external_id")
_BY_EXTERNAL_ID: Final[dict[Environment, Executable]] = {
    "live": select(payment_links).where(*_EXTERNAL_ID, text(LIVE_EXTERNAL_ID)),
    "test": select(payment_links).where(*_EXTERNAL_ID, text(TEST_EXTERNAL_ID)),
}
_BY_TOKEN: Final = select(payment_links).where(payment_links.c.token == bindparam("token"))
_COUNT: Final = select(func.count()).select_from(payment_links).where(*_PLAIN_OF_MERCHANT)
#: A sale that nobody paid yet. It may have ended: a payment that was begun in time can still come.
_CANCEL: Final = (
    update(payment_links)
    .where(
        *_PLAIN_OF_MERCHANT,
        payment_links.c.id == bindparam("link_id"),
        payment_links.c.cash_desk,
        payment_links.c.cancelled_at.is_(None),
        payment_links.c.completed_uses + payment_links.c.late_uses == 0,
    )
    .values(
        cancelled_at=bindparam("now"),
        expires_at=case(
            (payment_links.c.expires_at <= bindparam("now"), payment_links.c.expires_at),
            else_=bindparam("now", type_=BigInteger),
        ),
    )
    .returning(*payment_links.c)
)
#: Ends what is open, or opens later; what ended before keeps its end.
_CLOSE: Final = (
    update(payment_links)
    .where(
        *_PLAIN_OF_MERCHANT,
        payment_links.c.id == bindparam("link_id"),
        or_(payment_links.c.expires_at.is_(None), payment_links.c.expires_at > bindparam("now")),
    )
    .values(expires_at=bindparam("now"))
    .returning(*payment_links.c)
)
_RESERVE: Final = (
    update(payment_links)
    .where(
        payment_links.c.id == bindparam("link_id"),
        or_(
            payment_links.c.max_uses.is_(None),
            payment_links.c.reserved_uses + payment_links.c.late_uses < payment_links.c.max_uses,
        ),
    )
    .values(reserved_uses=payment_links.c.reserved_uses + 1)
    .returning(payment_links.c.id)
)
_CHANGE: Final = update(payment_links).where(payment_links.c.id == bindparam("link_id"))
_RELEASE: Final = _CHANGE.values(reserved_uses=payment_links.c.reserved_uses - bindparam("uses", type_=Integer))
_END_USES: Final = _CHANGE.values(
    reserved_uses=payment_links.c.reserved_uses - bindparam("released", type_=Integer),
    completed_uses=payment_links.c.completed_uses + bindparam("completed", type_=Integer),
    late_uses=payment_links.c.late_uses + bindparam("late", type_=Integer),
).returning(*payment_links.c)
#: Not the key: a payment that was inserted for the link holds a shared lock on that already.
_LOCK: Final = select(payment_links).where(payment_links.c.id == bindparam("link_id")).with_for_update(key_share=True)
#: The reservations of a link whose time has passed, the first of them first; reads at most `most` entries of an index.
_LAPSED: Final = (
    select(payments.c.id)
    .where(
        payments.c.link_id == bindparam("link_id"),
        text("payments.status = 'pending'"),
        payments.c.link_reserved_until <= bindparam("now"),
    )
    .order_by(payments.c.link_reserved_until)
    .limit(bindparam("most"))
)
#: Passes over a payment that is being settled: its use is completed or given back in a moment.
_to_end: Final = _LAPSED.with_for_update(skip_locked=True).cte("lapsed")
_END_RESERVATIONS: Final = (
    update(payments)
    .where(payments.c.id.in_(select(_to_end.c.id)))
    .values(link_reserved_until=None)
    .returning(payments.c.id)
)


async def insert_new(writer: Writer, link: PaymentLink) -> PaymentLink | None:
    """The link as stored; None when the merchant has one with the same external_id."""
    values = values_of(payment_links, link)
    return await writer.write_as(PaymentLink, _INSERT, **values)


async def by_id(db: Reader, merchant_id: MerchantId, env: Environment, link_id: LinkId) -> PaymentLink | None:
    return await db.one_as(PaymentLink, _BY_ID, merchant_id=merchant_id, test=env == "test", id=link_id)


async def any_by_id(db: Reader, merchant_id: MerchantId, env: Environment, link_id: LinkId) -> PaymentLink | None:
    """As `by_id`, a checkout session too."""
    return await db.one_as(PaymentLink, _ANY_BY_ID, merchant_id=merchant_id, test=env == "test", id=link_id)


async def lock(tx: Transaction, link_id: LinkId) -> PaymentLink:
    """The link as it is until the transaction ends."""
    return PaymentLink(*require(await tx.one(_LOCK, link_id=link_id)))


async def by_external_id(db: Reader, merchant_id: MerchantId, env: Environment, external_id: str) -> PaymentLink | None:
    return await db.one_as(PaymentLink, _BY_EXTERNAL_ID[env], merchant_id=merchant_id, external_id=external_id)


async def close(tx: Transaction, link: PaymentLink, now: Instant) -> PaymentLink | None:
    """The link as it is after it was closed at `now`; None when it had ended already. A sale of the cash desk is
    cancelled by this, unless somebody paid it or it is cancelled already: None then."""
    statement = _CANCEL if link.cash_desk else _CLOSE
    return await tx.write_as(
        PaymentLink, statement, merchant_id=link.merchant_id, test=link.test, link_id=link.id, now=now
    )


async def by_token(db: Reader, token: str) -> PaymentLink | None:
    """The link of a hosted page; the token itself is the authorisation."""
    return await db.one_as(PaymentLink, _BY_TOKEN, token=token)


async def page(
    db: Database,
    merchant_id: MerchantId,
    env: Environment,
    bounds: PageBounds,
) -> tuple[list[PaymentLink], int]:
    """One page and the exact total. Reads an index range of this merchant's links in one environment."""
    scope = {"merchant_id": merchant_id, "test": env == "test"}
    total: int = (await db.scan(_COUNT, **scope))[0][0]
    if bounds.offset >= total:
        return [], total
    after = {} if bounds.after is None else {"after": bounds.after.id}
    statement = _page(bool(after), bounds.oldest_first)
    rows = await db.scan(statement, **scope, most=bounds.size, skipped=bounds.offset, **after)
    return [PaymentLink(*row) for row in rows], total


@cache
def _page(is_after: bool, oldest_first: bool) -> Executable:
    """Ids rise with the time of creation."""
    number = payment_links.c.id
    bounds = [number > bindparam("after") if oldest_first else number < bindparam("after")] if is_after else []
    return (
        select(payment_links)
        .where(*_PLAIN_OF_MERCHANT, *bounds)
        .order_by(number.asc() if oldest_first else number.desc())
        .limit(bindparam("most"))
        .offset(bindparam("skipped"))
    )


class LinkList(Record, frozen=True):
    """A merchant's links in one environment, either those of the cash desk or all others. `cashier`: sales of this
    person only."""

    merchant_id: MerchantId
    env: Environment
    cash_desk: bool = False
    cashier: UserId | None = None


async def walk(
    db: Reader, link_list: LinkList, most: int, key: LinkId | None = None, *, newer: bool = False
) -> list[PaymentLink]:
    """Up to `most` links, the newest first: those older than `key`, or the next newer ones; the newest of all without a
    key. Reads as many entries of an index."""
    bound: dict[str, int] = {} if key is None else {"key": key}
    bound |= {"cash_desk": link_list.cash_desk} if link_list.cashier is None else {"cashier": link_list.cashier}
    rows = await db.all(
        _walk(key is not None, newer, link_list.cashier is not None),
        merchant_id=link_list.merchant_id,
        test=link_list.env == "test",
        most=most,
        **bound,
    )
    links = [PaymentLink(*row) for row in rows]
    return links[::-1] if newer else links


@cache
def _walk(has_key: bool, newer: bool, of_cashier: bool) -> Executable:
    number = payment_links.c.id
    kind: list[Any] = [payment_links.c.cash_desk == bindparam("cash_desk")]
    if of_cashier:  # In the words of the index.
        kind = [payment_links.c.cashier_id == bindparam("cashier"), text("payment_links.cash_desk")]
    bounds = [number > bindparam("key") if newer else number < bindparam("key")] if has_key else []
    return (
        select(payment_links)
        .where(*_PLAIN_OF_MERCHANT, *kind, *bounds)
        .order_by(number.asc() if newer else number.desc())
        .limit(bindparam("most"))
    )


async def release_uses(tx: Transaction, link_id: LinkId, uses: int) -> None:
    """Gives back the uses that this many payments held until this transaction."""
    await tx.write(_RELEASE, link_id=link_id, uses=uses)


async def reserve_use(tx: Transaction, link_id: LinkId, now: Instant) -> bool:
    """Reserves a use for a new payment, in the place of one whose time has passed if there is no other; False when none
    is left. Then the transaction must be rolled back. One statement, a few more when the link is full."""
    if await tx.write(_RESERVE, link_id=link_id):
        return True
    # The row stays locked until the end, so that two payments do not look for the same place.
    needed = (await lock(tx, link_id)).uses_to_free
    if needed:
        ended = await tx.write_all(_END_RESERVATIONS, link_id=link_id, now=now, most=needed)
        await release_uses(tx, link_id, len(ended))
    return await tx.write(_RESERVE, link_id=link_id) is not None


async def has_room(db: Reader, link: PaymentLink, now: Instant) -> bool:
    """Whether `reserve_use` would find a use now. Reads nothing while the link is not full."""
    needed = link.uses_to_free
    return not needed or len(await db.all(_LAPSED, link_id=link.id, now=now, most=needed)) == needed


class EndedPayment(Record, frozen=True):
    """A payment through a link that is final now. `held_use`: no other payment had taken its place."""

    link_id: LinkId
    held_use: bool
    succeeded: bool


async def end_uses(tx: Transaction, ended: Sequence[EndedPayment]) -> dict[LinkId, PaymentLink]:
    """A success completes the use that its payment held, or counts as a late one; a failure gives back what it held.
    Returns the links as they are now: they stay locked until the transaction ends.

    One statement, whose rows are ordered by link, so that two transactions cannot deadlock.
    """
    by_link: dict[LinkId, Counter[str]] = defaultdict(Counter)
    for payment in ended:
        outcome = ("completed" if payment.held_use else "late") if payment.succeeded else "released"
        by_link[payment.link_id][outcome] += payment.succeeded or payment.held_use
    rows = [
        {"link_id": link_id, "released": uses["released"], "completed": uses["completed"], "late": uses["late"]}
        for link_id, uses in sorted(by_link.items())
    ]
    links = [PaymentLink(*row) for row in await tx.write_many(_END_USES, rows)]
    return {link.id: link for link in links}
