"""Proposed refunds: SQL and row mapping. The primary key allows one for each payment."""

from typing import Any, Final

from sqlalchemy import bindparam, func, literal, select, text, update

from guichet.clock import Instant
from guichet.db.engine import Database, Reader, Transaction
from guichet.db.sql_functions import params, upsert
from guichet.db.tables import api_keys, payments, refund_proposals
from guichet.domain.ids import MerchantId, PaymentId
from guichet.domain.merchants import Environment, key_label
from guichet.domain.payments import Payment
from guichet.domain.records import Record
from guichet.domain.refund_proposals import RefundProposal, StoredProposalStatus

#: Open ones that are shown, and counted, at most.
MOST: Final = 50

_rows: Final = refund_proposals.c
_NAMES: Final = [column.name for column in _rows]
_NEW: Final = upsert(refund_proposals).values(params(*_NAMES))
#: Returns no row while another one stands (`RefundProposal.stands_at`).
_INSERT: Final = _NEW.on_conflict_do_update(
    index_elements=["payment_id"],
    set_={name: _NEW.excluded[name] for name in ("key_id", "status", "reason", "created_at", "expires_at")},
    where=(_rows.expires_at <= _NEW.excluded.created_at) & (_rows.status != "confirmed"),
).returning(*_rows)
_OF_PAYMENT: Final = select(refund_proposals).where(_rows.payment_id == bindparam("payment_id"))
_CLOSE: Final = (
    update(refund_proposals)
    .where(_rows.payment_id == bindparam("payment_id"), _rows.status == "open", _rows.expires_at > bindparam("now"))
    .values(status=bindparam("target"))
    .returning(_rows.payment_id)
)
_OPEN: Final[tuple[Any, ...]] = (
    _rows.merchant_id == bindparam("merchant_id"),
    _rows.env == bindparam("env"),
    text("refund_proposals.status = 'open'"),
    _rows.expires_at > bindparam("now"),
)
_LIST: Final = (
    select(api_keys.c.preview, api_keys.c.name, *_rows, *payments.c)
    .select_from(refund_proposals)
    .join(api_keys, api_keys.c.id == _rows.key_id)
    .join(payments, payments.c.id == _rows.payment_id)
    .where(*_OPEN)
    .order_by(_rows.expires_at)
    .limit(MOST)
)
_COUNT: Final = select(func.count()).select_from(select(literal(1)).where(*_OPEN).limit(MOST).subquery())
_KEY: Final = select(api_keys.c.preview, api_keys.c.name).where(api_keys.c.id == bindparam("key_id"))


class OpenProposal(Record, frozen=True):
    """`key`: how people recognise the key of the program."""

    proposal: RefundProposal
    key: str
    payment: Payment


async def insert_new(tx: Transaction, proposal: RefundProposal) -> RefundProposal | None:
    """The proposal as stored, in the place of one that stands no more; None while one stands."""
    return await tx.write_as(RefundProposal, _INSERT, **{name: getattr(proposal, name) for name in _NAMES})


async def of_payment(db: Reader, payment_id: PaymentId) -> RefundProposal | None:
    return await db.one_as(RefundProposal, _OF_PAYMENT, payment_id=payment_id)


async def close(tx: Transaction, payment_id: PaymentId, target: StoredProposalStatus, now: Instant) -> bool:
    """False if the payment has no open proposal."""
    return await tx.write(_CLOSE, payment_id=payment_id, target=target, now=now) is not None


async def count_open(db: Reader, merchant_id: MerchantId, env: Environment, now: Instant) -> int:
    """MOST also stands for more. Cost: so many entries of an index."""
    row = await db.one(_COUNT, merchant_id=merchant_id, env=env, now=now)
    return int(row[0]) if row else 0


async def open_of(db: Database, merchant_id: MerchantId, env: Environment, now: Instant) -> list[OpenProposal]:
    """Up to MOST, those that expire first."""
    width = len(_NAMES) + 2
    return [
        OpenProposal(RefundProposal(*row[2:width]), key_label(*row[:2]), Payment(*row[width:]))
        for row in await db.scan(_LIST, merchant_id=merchant_id, env=env, now=now)
    ]


async def key_of(db: Reader, proposal: RefundProposal) -> str:
    """How people recognise the key of the program."""
    row = await db.one(_KEY, key_id=proposal.key_id)
    return key_label(*row) if row else ""
