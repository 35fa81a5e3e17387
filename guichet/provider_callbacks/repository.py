"""Callbacks that name a payment or refund of ours: SQL and row mapping. One row for each, however many come."""

from typing import Any, Final, Literal

from sqlalchemy import Select, Table, bindparam, func, select, update

from guichet.clock import Instant
from guichet.db.engine import Database, GroupedWrite, Reader
from guichet.db.queues.work_queue import WorkQueue
from guichet.db.sql_functions import columns, equal, is_listed, params, upsert
from guichet.db.tables import payments, provider_callbacks, refunds
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.payments import Payment, Refund, SubjectType
from guichet.domain.records import Record


class ProviderCallback(Record, frozen=True):
    """The callbacks about one payment or refund. `provider_reference`: the last one that a callback named."""

    id: int
    merchant_id: MerchantId
    env: Environment
    subject_type: SubjectType
    subject_id: int
    provider_account: str
    provider_reference: str | None
    received_at: Instant
    received_count: int
    status: Literal["pending", "asked"]
    due_at: Instant | None


class CallbackSubject(Record, frozen=True):
    """Of the payment or refund that a callback names, what storing the callback takes. The whole row would be three
    times as much for PostgreSQL to parse and plan."""

    subject_type: SubjectType
    id: int
    merchant_id: MerchantId
    env: Environment
    asked_at: Instant | None


_SUBJECT: Final = ("id", "merchant_id", "env", "asked_at")


def _by_reference(rows: Table) -> Select[Any]:
    found = select(*columns(rows, "reference", "provider_account", *_SUBJECT))
    return found.where(is_listed(rows.c.reference, "keys"))


def _by_provider_reference(rows: Table) -> Select[Any]:
    return select(*columns(rows, *_SUBJECT)).where(*equal(rows, "provider_account", "provider_reference"))


_TABLES: Final[tuple[tuple[SubjectType, Table], ...]] = (("payment", payments), ("refund", refunds))
_BY_OUR_REFERENCE: Final = [(subject_type, _by_reference(rows)) for subject_type, rows in _TABLES]
_BY_PROVIDER_REFERENCE: Final = [(subject_type, _by_provider_reference(rows)) for subject_type, rows in _TABLES]
_INSERT: Final = upsert(provider_callbacks).values(
    **params("merchant_id", "env", "subject_type", "subject_id", "provider_account", "provider_reference"),
    **params("received_at", "received_count", "status", "due_at"),
)
_RECORD: Final = GroupedWrite(
    _INSERT.on_conflict_do_update(
        index_elements=["subject_id", "subject_type"],
        set_={
            "provider_account": _INSERT.excluded.provider_account,
            "provider_reference": func.coalesce(
                _INSERT.excluded.provider_reference, provider_callbacks.c.provider_reference
            ),
            "received_at": _INSERT.excluded.received_at,
            "received_count": provider_callbacks.c.received_count + 1,
            "status": _INSERT.excluded.status,
            "due_at": _INSERT.excluded.due_at,
        },
    ),
    "subject_id",
)
_MARK_ASKED: Final = GroupedWrite(
    update(provider_callbacks)
    .where(
        *equal(provider_callbacks, id="callback_id", received_count="asked_count"),
    )
    .values(status="asked", due_at=None),
    "callback_id",
)
_POLL_LATER: Final = GroupedWrite(
    update(provider_callbacks)
    .where(
        *equal(provider_callbacks, id="callback_id", received_count="asked_count"),
        provider_callbacks.c.status == "pending",
    )
    .values(due_at=bindparam("new_due")),
    "callback_id",
)
_ABOUT: Final = select(provider_callbacks).where(
    *equal(provider_callbacks, "subject_id", "subject_type"),
)
#: Callbacks to ask about, by provider account.
QUEUE: Final = WorkQueue(provider_callbacks, "due_at", "provider_account", lambda row: ProviderCallback(*row))


async def by_our_reference(db: Database, provider_account: str, reference: str) -> CallbackSubject | None:
    """`reference` must be a UUID. A callback does not say whose payment or refund it is; references are unique."""
    for subject_type, statement in _BY_OUR_REFERENCE:
        if row := await db.find_grouped(statement, reference):
            _, account, *subject = row
            return CallbackSubject(subject_type, *subject) if account == provider_account else None
    return None


async def by_provider_reference(db: Reader, provider_account: str, provider_reference: str) -> CallbackSubject | None:
    for subject_type, statement in _BY_PROVIDER_REFERENCE:
        if row := await db.one(statement, provider_account=provider_account, provider_reference=provider_reference):
            return CallbackSubject(subject_type, *row)
    return None


async def record(
    db: Database,
    subject: CallbackSubject,
    *,
    provider_account: str,
    provider_reference: str | None,
    now: Instant,
    due_at: Instant,
) -> None:
    """Stores that a callback about `subject` came; the provider is to be asked at `due_at`."""
    await db.write_grouped(
        _RECORD,
        {
            "merchant_id": subject.merchant_id,
            "env": subject.env,
            "subject_type": subject.subject_type,
            "subject_id": subject.id,
            "provider_account": provider_account,
            "provider_reference": provider_reference,
            "received_at": now,
            "received_count": 1,
            "status": "pending",
            "due_at": due_at,
        },
    )


async def mark_asked(db: Database, callback: ProviderCallback) -> None:
    """The question that `callback` causes has been asked; one that came meanwhile still causes its own."""
    await db.write_grouped(_MARK_ASKED, {"callback_id": callback.id, "asked_count": callback.received_count})


async def poll_later(db: Database, callback: ProviderCallback, due_at: Instant) -> None:
    """Puts the question off, unless another callback came meanwhile, which is due by itself, or another process asked
    after our lease had expired."""
    await db.write_grouped(
        _POLL_LATER, {"callback_id": callback.id, "asked_count": callback.received_count, "new_due": due_at}
    )


async def about(db: Reader, subject: Payment | Refund) -> ProviderCallback | None:
    """The callbacks about one payment or refund; None if none came."""
    return await db.one_as(ProviderCallback, _ABOUT, subject_id=subject.id, subject_type=subject.subject_type)
