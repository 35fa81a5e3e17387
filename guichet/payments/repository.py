"""Payments: SQL and row mapping."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from operator import itemgetter
from typing import Any, Final

import msgspec
from sqlalchemy import bindparam, func, select, update

from guichet.clock import Instant
from guichet.db.engine import Database, GroupedWrite, Reader, RowStatement, Transaction, Writer
from guichet.db.sql_functions import columns, equal, new_columns, upsert
from guichet.db.tables import payments, provider_callbacks
from guichet.domain.ids import LinkId, MerchantId, PaymentId
from guichet.domain.merchants import Environment
from guichet.domain.payments import REFUNDED, REFUSED_AT_INITIATION, Payment, Settlement, Transition
from guichet.ledger import wallets
from guichet.merchants import idempotency
from guichet.merchants.idempotency import IdempotencyKey

#: What no new payment has yet: the database has the same defaults as `Payment`. A quarter of the columns, which a
#: database behind PgBouncer would parse and plan with each payment.
_LATER: Final = frozenset(
    {
        "provider_reference",
        "failure_reason",
        "payer_number",
        "asked_at",
        "initiation_ended_at",
        "not_found_count",
        "not_found_duration",
        "answered_pending",
        "refused_at_initiation",
    }
)
#: In their order, which is that of the fields of `Payment`.
_NEW_COLUMNS: Final = tuple(name for name in new_columns(payments) if name not in _LATER)
_NEXT_POLL_AT: Final = _NEW_COLUMNS.index("next_poll_at")
_IS_NEW: Final = [name in _NEW_COLUMNS for name in Payment.__struct_fields__]

#: One statement inserts a payment. If a unique key (reference, external_id, checkout_token) exists already, it inserts
#: nothing and returns no row. So the constraint decides races, on both databases.
_values: Final = {name: bindparam(name, type_=payments.c[name].type) for name in _NEW_COLUMNS}
_INSERT: Final = (
    upsert(payments).values(_values).on_conflict_do_nothing().returning(payments.c.reference, payments.c.id)
)
#: A live payment: none either while the wallet of its merchant accepts no movement.
_INSERT_LIVE: Final = (
    upsert(payments)
    .from_select(_NEW_COLUMNS, select(*_values.values()).where(wallets.accepts_movements))
    .on_conflict_do_nothing()
    .returning(payments.c.reference, payments.c.id)
)
_CREATE: Final[Mapping[Environment, GroupedWrite]] = {
    "test": GroupedWrite(_INSERT, "reference", _NEW_COLUMNS),
    "live": GroupedWrite(_INSERT_LIVE, "reference", _NEW_COLUMNS),
}
#: As `_CREATE`, of requests with an Idempotency-Key: none either if the key names another payment.
_CREATE_WITH_KEY: Final[Mapping[Environment, GroupedWrite]] = {
    env: GroupedWrite(group.statement, group.key, claim=idempotency.CLAIM, release=idempotency.RELEASE)
    for env, group in _CREATE.items()
}


#: No payment has this id or a greater one.
_NEWEST: Final = PaymentId(2**63 - 1)
OF_MERCHANT: Final = (payments.c.merchant_id == bindparam("merchant_id"), payments.c.env == bindparam("env"))
_BY_REFERENCE: Final = select(payments).where(*OF_MERCHANT, payments.c.reference == bindparam("reference"))
_FIND: Final = select(payments).where(payments.c.reference == bindparam("reference"))
_BY_EXTERNAL_ID: Final = select(payments).where(*OF_MERCHANT, payments.c.external_id == bindparam("external_id"))
_BY_ID: Final = select(payments).where(payments.c.id == bindparam("id"))
_BY_TOKEN: Final = select(payments).where(payments.c.checkout_token == bindparam("token"))
#: The newest payments through a link, those before another if there is one. The condition on `link_id` is that of
#: `ix_payments_link`.
_OF_LINK: Final = (
    select(payments)
    .where(
        payments.c.link_id.is_not(None), payments.c.link_id == bindparam("link_id"), payments.c.id < bindparam("before")
    )
    .order_by(payments.c.id.desc())
    .limit(bindparam("most"))
)
_ON_ACCOUNT: Final = select(payments).where(
    payments.c.reference == bindparam("reference"), payments.c.provider_account == bindparam("provider_account")
)

_REFERENCE_FROM_CALLBACK: Final = select(provider_callbacks.c.provider_reference).where(
    *equal(provider_callbacks, "subject_id", "subject_type", "provider_account"),
)
#: What other writes change in a payment while it is pending: they may have done so since its settlement read it. The
#: rest is never changed before its end (held by a test), and reading 46 columns takes a third of the UPDATE on SQLite.
CHANGED_WHILE_PENDING: Final = (
    "provider_account",
    "provider_reference",
    "provider_data",
    "redirect_url",
    "poll_count",
    "account_fingerprint",
    "payer_number",
    "asked_at",
    "initiation_ended_at",
    "not_found_count",
    "not_found_duration",
    "link_reserved_until",
    "answered_pending",
    "attempt_of",
)
#: What a settlement sets, in the order of `_finished`, and what it reads back.
_CHANGED: Final = (
    *("status", "updated_at", "failure_reason", "refused_at_initiation", "next_poll_at", "lease_expires_at"),
    *CHANGED_WHILE_PENDING,
)
#: The fields of a payment from its values as it was and those of _CHANGED behind them.
_FINISHED_VALUES: Final = itemgetter(
    *(
        len(Payment.__struct_fields__) + _CHANGED.index(name) if name in _CHANGED else position
        for position, name in enumerate(Payment.__struct_fields__)
    )
)
_FINISH: Final = RowStatement(
    update(payments)
    .where(payments.c.id == bindparam("payment_id"), payments.c.status == bindparam("source"))
    .values(
        status=bindparam("target"),
        updated_at=bindparam("now"),
        failure_reason=bindparam("reason"),
        refused_at_initiation=bindparam("at_initiation"),
        provider_reference=func.coalesce(
            bindparam("new_ref", type_=payments.c.provider_reference.type), payments.c.provider_reference
        ),
        payer_number=func.coalesce(bindparam("new_payer", type_=payments.c.payer_number.type), payments.c.payer_number),
        next_poll_at=None,
        lease_expires_at=None,
    )
    .returning(payments.c.id, *columns(payments, *CHANGED_WHILE_PENDING)),
    ("target", "now", "new_ref", "reason", "new_payer", "at_initiation", "payment_id", "source"),
)


async def create(
    db: Database, payment: Payment, next_poll_at: Instant | None, key: IdempotencyKey | None = None
) -> Payment | None:
    """As `insert_new`, in a transaction of its own, which those that are created at the same time share. None also when
    `key` is taken."""
    new = _new_row(payment, next_poll_at)
    if key is None:
        row = await db.insert_grouped(_CREATE[payment.env], new)
    else:
        values = _by_name(new) | key.claiming(payment.reference, payment.created_at)
        row = await db.write_grouped(_CREATE_WITH_KEY[payment.env], values)
    return msgspec.structs.replace(payment, id=row[1], next_poll_at=next_poll_at) if row else None


async def insert_new(tx: Writer, payment: Payment, next_poll_at: Instant | None) -> Payment | None:
    """The payment as stored, with its id and its next poll; None when one with the same unique key exists, or when it
    is live and its wallet is not `Actif`.

    One statement, one round trip.
    """
    row = await tx.write(_CREATE[payment.env].statement, **_by_name(_new_row(payment, next_poll_at)))
    return msgspec.structs.replace(payment, id=row[1], next_poll_at=next_poll_at) if row else None


def _new_row(payment: Payment, next_poll_at: Instant | None) -> list[Any]:
    """The values of _NEW_COLUMNS."""
    row = list(compress(msgspec.structs.astuple(payment), _IS_NEW))
    row[_NEXT_POLL_AT] = next_poll_at
    return row


def _by_name(row: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(_NEW_COLUMNS, row, strict=True))


async def by_reference(db: Reader, merchant_id: MerchantId, env: Environment, reference: str) -> Payment | None:
    """`reference` must be a UUID."""
    return await db.one_as(Payment, _BY_REFERENCE, merchant_id=merchant_id, env=env, reference=reference)


async def find(db: Reader, reference: str) -> Payment | None:
    """The payment with this reference (a UUID), whoever's it is: for the staff. References are unique."""
    return await db.one_as(Payment, _FIND, reference=reference)


async def by_external_id(db: Reader, merchant_id: MerchantId, env: Environment, external_id: str) -> Payment | None:
    return await db.one_as(Payment, _BY_EXTERNAL_ID, merchant_id=merchant_id, env=env, external_id=external_id)


async def by_id(db: Reader, payment_id: PaymentId) -> Payment | None:
    return await db.one_as(Payment, _BY_ID, id=payment_id)


async def by_token(db: Reader, token: str) -> Payment | None:
    """The payment of a hosted page; the token itself is the authorisation."""
    return await db.one_as(Payment, _BY_TOKEN, token=token)


async def of_link(db: Reader, link_id: LinkId, most: int, before: PaymentId | None = None) -> list[Payment]:
    """Up to `most` payments through a link, the newest first, all older than `before`. Reads as many entries of an
    index."""
    rows = await db.all(_OF_LINK, link_id=link_id, most=most, before=_NEWEST if before is None else before)
    return [Payment(*row) for row in rows]


async def by_reference_on_account(db: Database, provider_account: str, reference: str) -> Payment | None:
    """`reference` must be a UUID. A provider does not say which merchant's payment it is; references are unique."""
    return await db.one_as(Payment, _ON_ACCOUNT, provider_account=provider_account, reference=reference)


async def reference_from_callback(db: Reader, payment: Payment) -> str | None:
    """The provider's reference that the last callback about a payment named, on the account that it is on now."""
    row = await db.one(
        _REFERENCE_FROM_CALLBACK,
        subject_id=payment.id,
        subject_type="payment",
        provider_account=payment.provider_account,
    )
    return row[0] if row else None


async def finish(tx: Transaction, transitions: Iterable[tuple[Settlement, Transition]]) -> dict[PaymentId, Payment]:
    """The payments that made their transition, as they are stored now; one that had left its source is missing. At most
    one transition for each payment; `REFUNDED` after the success of its refund."""
    ordered = sorted(transitions, key=lambda item: item[0].payment.id)
    changes = {settlement.payment.id: _change(settlement, transition) for settlement, transition in ordered}
    before = {settlement.payment.id: settlement.payment for settlement, _ in ordered}
    rows = await tx.write_rows(_FINISH, list(changes.values()))
    return {row[0]: _finished(before[row[0]], changes[row[0]], row[1:]) for row in rows}


def _change(settlement: Settlement, transition: Transition) -> tuple[Any, ...]:
    """The values of _FINISH. None as the provider's reference or the payer's number keeps the stored one."""
    is_refunded = transition is REFUNDED
    return (
        transition.target,
        settlement.now,
        None if is_refunded else settlement.provider_reference,
        None if is_refunded else settlement.failure_reason,
        None if is_refunded else settlement.payer_number,
        transition is REFUSED_AT_INITIATION,
        settlement.payment.id,
        transition.source,
    )


def _finished(before: Payment, change: tuple[Any, ...], stored: Sequence[Any]) -> Payment:
    """`stored`: the values of CHANGED_WHILE_PENDING. By position: by their names it takes four times as long."""
    target, now, _, reason, _, at_initiation, *_ = change
    values = (*msgspec.structs.astuple(before), target, now, reason, at_initiation, None, None, *stored)
    return Payment(*_FINISHED_VALUES(values))


def from_row(row: Any) -> Payment | None:
    return Payment(*row) if row is not None else None
