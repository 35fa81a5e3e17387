"""Webhook deliveries: the queue and the log are one table.

A claim counts the attempt, so that a crash can repeat a send but never exceed five; `due_at` is the claim's lease. The
first attempts of one payment's events keep their order: an event waits until the one before it was tried once (D35).
"""

import json
from collections.abc import Iterable
from typing import Final

from sqlalchemy import bindparam, exists, func, insert, select, update

from guichet.clock import Instant
from guichet.domain.events import MAX_ATTEMPTS, Delivery
from guichet.storage import counts
from guichet.storage.engine import Database, Transaction, json_texts
from guichet.storage.tables import deliveries

_earlier: Final = deliveries.alias("earlier")
_NOT_BUSY: Final = deliveries.c.destination.bool_op("NOT IN")(json_texts(bindparam("busy")))

_INSERT: Final = insert(deliveries).values(
    {column.name: bindparam(column.name) for column in deliveries.c if column.name != "id"}
)
_MINE: Final = (deliveries.c.merchant_id == bindparam("merchant_id"), deliveries.c.env == bindparam("environment"))
#: A CTE is locked and counted once; as a subquery PostgreSQL may run it again for every row and exceed the limit.
_DUE: Final = (
    select(deliveries.c.id)
    .where(
        deliveries.c.status == "pending",
        deliveries.c.due_at <= bindparam("now"),
        deliveries.c.attempts < MAX_ATTEMPTS,
        _NOT_BUSY,
        ~exists().where(
            _earlier.c.payment_id == deliveries.c.payment_id,
            _earlier.c.id < deliveries.c.id,
            _earlier.c.status == "pending",
            _earlier.c.answered_at.is_(None),
        ),
    )
    .order_by(deliveries.c.due_at, deliveries.c.id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True, of=deliveries)
    .cte("due")
)
_CLAIM: Final = (
    update(deliveries)
    .where(deliveries.c.id.in_(select(_DUE.c.id)), deliveries.c.status == "pending")
    .values(attempts=deliveries.c.attempts + 1, due_at=bindparam("until"))
    .returning(*deliveries.c)
)
#: The fifth attempt was claimed and its process died: nothing more may be sent.
_EXPIRE: Final = (
    update(deliveries)
    .where(
        deliveries.c.status == "pending",
        deliveries.c.due_at <= bindparam("now"),
        deliveries.c.attempts >= MAX_ATTEMPTS,
    )
    .values(status="failed", due_at=None, answered_at=bindparam("now"))
)
_SUCCEEDED: Final = (
    update(deliveries)
    .where(deliveries.c.id == bindparam("delivery_id"), deliveries.c.status == "pending")
    .values(
        status="success",
        response_code=bindparam("code"),
        answered_at=bindparam("now"),
        delivered_at=bindparam("now"),
        due_at=None,
    )
)
_ATTEMPT_FAILED: Final = (
    update(deliveries)
    .where(
        deliveries.c.id == bindparam("delivery_id"),
        deliveries.c.status == "pending",
        # A lease that ran out: another attempt was claimed since, and its outcome is the one to keep.
        deliveries.c.attempts == bindparam("tried"),
    )
    .values(
        status=bindparam("new_status"),
        response_code=bindparam("code"),
        answered_at=bindparam("now"),
        due_at=bindparam("next_due"),
    )
)
_CANCEL: Final = (
    update(deliveries)
    .where(*_MINE, deliveries.c.status == "pending", deliveries.c.target == "account")
    .values(status="failed", due_at=None)
)
_NEXT_DUE: Final = select(func.min(deliveries.c.due_at)).where(deliveries.c.status == "pending", _NOT_BUSY)


async def insert_new(tx: Transaction, delivery: Delivery) -> None:
    await tx.write(
        _INSERT, **{column.name: getattr(delivery, column.name) for column in deliveries.c if column.name != "id"}
    )


async def page(db: Database, merchant_id: int, env: str, limit: int, offset: int) -> tuple[list[Delivery], int]:
    """One page, newest first, and the exact total, at the flat cost described in `counts.py`."""
    rows, total = await counts.page(db, deliveries, counts.Scope("deliveries", merchant_id, env), limit, offset)
    return [Delivery(*row) for row in rows], total


async def claim_due(db: Database, now: Instant, until: Instant, most: int, busy: Iterable[str]) -> list[Delivery]:
    """Up to `most` deliveries to attempt now, none to a `busy` destination, the attempt already counted.

    They come back at `until` if this process dies. Cost: the due rows of destinations that are not busy.
    """
    async with db.transaction() as tx:
        rows = await tx.all(_CLAIM, now=now, until=until, most=most, busy=json.dumps(sorted(busy)))
    return sorted((Delivery(*row) for row in rows), key=lambda delivery: delivery.id)


async def give_up_exhausted(db: Database, now: Instant) -> None:
    """Ends deliveries whose fifth attempt was claimed by a process that died. Cost: the due rows."""
    await db.write(_EXPIRE, now=now)


async def record_success(db: Database, delivery: Delivery, code: int, now: Instant) -> None:
    await db.write(_SUCCEEDED, delivery_id=delivery.id, code=code, now=now)


async def record_failure(
    db: Database, delivery: Delivery, code: int | None, now: Instant, next_due: Instant | None
) -> None:
    """`next_due` None: that was the last attempt."""
    status = "failed" if next_due is None else "pending"
    await db.write(
        _ATTEMPT_FAILED,
        delivery_id=delivery.id,
        tried=delivery.attempts,
        new_status=status,
        code=code,
        now=now,
        next_due=next_due,
    )


async def cancel_waiting(tx: Transaction, merchant_id: int, env: str) -> None:
    """The account endpoint was disabled: what still waits for it has failed (D36). Cost: those rows."""
    await tx.write(_CANCEL, merchant_id=merchant_id, environment=env)


async def next_due(db: Database, busy: Iterable[str]) -> Instant | None:
    """When the next delivery outside the busy destinations is due."""
    row = await db.one(_NEXT_DUE, busy=json.dumps(sorted(busy)))
    return row[0] if row else None
