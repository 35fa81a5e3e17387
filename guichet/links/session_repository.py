"""Checkout sessions: SQL. Their rows are those of links of one use (docs/decisions.md, "Checkout sessions")."""

from typing import Final

from sqlalchemy import BigInteger, Executable, bindparam, case, select, text, tuple_, update

from guichet.clock import Instant
from guichet.db.engine import Reader, Transaction
from guichet.db.tables import payment_links, payments
from guichet.db.tables.payment_tables import SESSION_EXTERNAL_ID
from guichet.domain.ids import LinkId, MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.payment_links import PaymentLink
from guichet.domain.records import Record

_rows: Final = payment_links.c
_OF_MERCHANT: Final = (_rows.merchant_id == bindparam("merchant_id"), _rows.test == bindparam("test"))
_BY_REFERENCE: Final = select(payment_links).where(*_OF_MERCHANT, _rows.session_reference == bindparam("name"))
_BY_EXTERNAL_ID: Final = select(payment_links).where(
    *_OF_MERCHANT, _rows.external_id == bindparam("name"), text(SESSION_EXTERNAL_ID)
)
_COMPLETE: Final = (
    update(payment_links)
    .where(_rows.id == bindparam("link_id"), _rows.session_status != "completed")
    .values(session_status="completed", payment_reference=bindparam("paid_by"), customer=None)
    .returning(*_rows)
)
_EXPIRE: Final = (
    update(payment_links)
    .where(_rows.id == bindparam("link_id"), _rows.session_status == "open")
    .values(
        session_status="expired",
        expires_at=case(
            (_rows.expires_at <= bindparam("now"), _rows.expires_at), else_=bindparam("now", type_=BigInteger)
        ),
        customer=None,
    )
    .returning(*_rows)
)
_IS_PENDING: Final = (payments.c.link_id.is_not(None), payments.c.status == "pending")
_PENDING: Final = select(payments.c.id).where(payments.c.link_id == _rows.id, *_IS_PENDING).exists()
_A_PENDING_ONE: Final = (
    select(payments.c.reference).where(payments.c.link_id == bindparam("link_id"), *_IS_PENDING).limit(1)
)
_DUE: Final = (
    select(_rows.expires_at, _rows.id, _PENDING)
    .where(
        text("session_status = 'open'"),
        _rows.expires_at <= bindparam("now"),
        tuple_(_rows.expires_at, _rows.id)
        > tuple_(bindparam("after_end", type_=BigInteger), bindparam("after_id", type_=BigInteger)),
    )
    .order_by(_rows.expires_at, _rows.id)
    .limit(bindparam("most"))
)


class DueSession(Record, frozen=True):
    """An open session whose time has passed. `is_pending`: a payment may still complete it."""

    expires_at: Instant
    id: LinkId
    is_pending: bool


async def by_reference(db: Reader, merchant_id: MerchantId, env: Environment, reference: str) -> PaymentLink | None:
    """`reference` must be a UUID."""
    return await _find(db, _BY_REFERENCE, merchant_id, env, reference)


async def by_external_id(db: Reader, merchant_id: MerchantId, env: Environment, external_id: str) -> PaymentLink | None:
    return await _find(db, _BY_EXTERNAL_ID, merchant_id, env, external_id)


async def complete(tx: Transaction, link_id: LinkId, payment_reference: str) -> PaymentLink | None:
    """The session as it is, paid by this payment; None if another one had completed it."""
    return await tx.write_as(PaymentLink, _COMPLETE, link_id=link_id, paid_by=payment_reference)


async def pending_payment(db: Reader, link_id: LinkId) -> str | None:
    """The reference of a payment that can still complete the session. Cost: its payments."""
    row = await db.one(_A_PENDING_ONE, link_id=link_id)
    return None if row is None else str(row[0])


async def expire(tx: Transaction, link_id: LinkId, now: Instant) -> PaymentLink | None:
    """The session as it is, closed; None if it was not open."""
    return await tx.write_as(PaymentLink, _EXPIRE, link_id=link_id, now=now)


async def due(db: Reader, now: Instant, most: int, after: DueSession | None) -> list[DueSession]:
    """Up to `most` open sessions whose time has passed, the oldest end first, of those that follow `after`. Cost: two
    index probes for each."""
    end, number = (Instant(0), LinkId(0)) if after is None else (after.expires_at, after.id)
    return [DueSession(*row) for row in await db.all(_DUE, now=now, most=most, after_end=end, after_id=number)]


async def _find(
    db: Reader, statement: Executable, merchant_id: MerchantId, env: Environment, name: str
) -> PaymentLink | None:
    return await db.one_as(PaymentLink, statement, merchant_id=merchant_id, test=env == "test", name=name)
