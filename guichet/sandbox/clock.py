"""The test clock of one merchant: time passes for what waits in its test environment, and for nothing else
(docs/decisions.md, "Test clock").

There is no second clock to ask. An advance moves the due times of the merchant's waiting test rows earlier, and tells
each pending payment how much older it is now; the sandbox adds that to its age. So no rule of the live environment, and
no other merchant, can read a wrong time, and dates that were written keep saying when something really happened.

What follows: the result of a pending payment, the polls of payments and refunds with their leases, and the next attempt
of a webhook. What does not: dates of objects, signatures, keys, rate limits, what is kept for how long. Payment links
and their reservations exist in live only (D17).
"""

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Executable, Select, Table, Update, bindparam, literal_column, or_, select, update

from guichet.audit_log import entries as audit_log
from guichet.clock import DAY, HOUR, MINUTE, NEVER, SECOND, Clock, Instant, earlier
from guichet.context import AppContext
from guichet.db.engine import Database, Reader, Row, Transaction
from guichet.db.queues.work_queue import PENDING
from guichet.db.tables import audit_log as audit_log_table
from guichet.db.tables import payments, refunds, webhook_deliveries
from guichet.domain.audit_log import Act, Actor, ActRefused, Facts
from guichet.domain.events import MAX_ATTEMPTS
from guichet.domain.ids import MerchantId
from guichet.domain.records import Record
from guichet.domain.refusals import Refusal
from guichet.domain.sandbox_scenarios import CLOCK_ADVANCED
from guichet.providers.registry import SANDBOX, decode_provider_data, encode_provider_data

ADVANCED: Final = "test_clock.advanced"
RESET: Final = "test_clock.reset"

#: One advance, in microseconds.
LONGEST: Final = 366 * DAY
#: Rows of each kind that one advance moves at most: they are moved together or not at all, in a tenth of a second.
MOST_ROWS: Final = 10_000
#: Rows that one statement moves.
BATCH: Final = 500
#: Advances that are added up; a reset begins anew.
_MOST_ACTS: Final = 500

_UNITS: Final = {"d": DAY // SECOND, "h": HOUR // SECOND, "m": MINUTE // SECOND, "s": 1}
_DURATION: Final = re.compile(r"(?:[0-9]{1,8}[dhms])+")

_TEST: Final[ColumnElement[str]] = literal_column("'test'")
_MERCHANT: Final[ColumnElement[int]] = bindparam("merchant")
_ATTEMPTS: Final = webhook_deliveries.c.attempts


def _waiting(
    rows: Table, due: str, *more: ColumnElement[Any], where: Sequence[ColumnElement[bool]] = ()
) -> Select[Any]:
    """Ids, due times and `more` of the merchant's rows that wait. What is due already needs no moving, and what is
    never due stays so."""
    return (
        select(rows.c.id, rows.c[due], *more)
        .where(
            rows.c.merchant_id == _MERCHANT,
            rows.c.env == _TEST,
            rows.c.status == PENDING,
            rows.c[due] > bindparam("now"),
            rows.c[due] < NEVER,
            *where,
        )
        .order_by(rows.c.id)
        .limit(MOST_ROWS + 1)
        .with_for_update()
    )


def _move(rows: Table, due: str, **more: Any) -> Update:
    still_waits = (rows.c.id == bindparam("row_id"), rows.c.status == "pending", rows.c.env == "test")
    return update(rows).where(*still_waits).values({due: bindparam("due"), **more})


_PAYMENTS: Final = _waiting(payments, "next_poll_at", payments.c.provider_data)
# Found by the sandbox's part of the queue: refunds have no index by merchant and status.
_OF_SANDBOX: Final = refunds.c.provider_account == SANDBOX
_REFUNDS: Final = _waiting(refunds, "next_poll_at", refunds.c.lease_expires_at, where=[_OF_SANDBOX])
# What has not ended its first attempt, or waits after its fifth was claimed, is being sent now.
_ATTEMPTED: Final = (
    literal_column("0") < _ATTEMPTS,
    literal_column(str(MAX_ATTEMPTS)) > _ATTEMPTS,
    webhook_deliveries.c.last_attempt_at.is_not(None),
)
_DELIVERIES: Final = _waiting(webhook_deliveries, "next_attempt_at", where=_ATTEMPTED)
_MOVE_PAYMENT: Final = _move(payments, "next_poll_at", provider_data=bindparam("new_data"))
_MOVE_REFUND: Final = _move(refunds, "next_poll_at", lease_expires_at=bindparam("lease"))
_MOVE_DELIVERY: Final = _move(webhook_deliveries, "next_attempt_at")
_ACTS: Final = (
    select(audit_log_table.c.action, audit_log_table.c.after)
    .where(
        audit_log_table.c.subject == bindparam("subject"),
        or_(audit_log_table.c.action == ADVANCED, audit_log_table.c.action == RESET),
    )
    .order_by(audit_log_table.c.number.desc())
    .limit(_MOST_ACTS)
)

_MOVES: Final = _ACTS.with_only_columns(audit_log_table.c.number).limit(2)


class MovedMeanwhile(ActRefused):
    """The clock was moved since the person saw it."""


class Moved(Record, frozen=True):
    """How many rows an advance moved."""

    payments: int
    refunds: int
    deliveries: int


def read_duration(text: str) -> int | None:
    """`1h30m` as seconds; None for what is no duration."""
    if not _DURATION.fullmatch(text):
        return None
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"([0-9]{1,8})([dhms])", text))


async def advance(
    ctx: AppContext, merchant_id: MerchantId, seconds: int, actor: Actor, seen: int | None = None
) -> Moved:
    """Lets `seconds` pass for the merchant's test environment, all at once. The worker then does what is due.
    `seen`: `newest_move` when the person asked, so that one form advances the clock once; None for a command.

    Raises ActRefused when it is not between a second and a year, or when too many rows wait; MovedMeanwhile when the
    clock was moved since it was seen.
    """
    if not 1 <= seconds <= LONGEST // SECOND:
        raise ActRefused(Refusal.CLOCK_STEP())
    now, by = ctx.clock.now(), seconds * SECOND
    async with ctx.db.transaction() as tx:
        # In the order in which settlements write: refunds before payments.
        moved_refunds = await _move_refunds(tx, merchant_id, now, by)
        moved = Moved(
            payments=await _move_payments(tx, merchant_id, now, by),
            refunds=moved_refunds,
            deliveries=await _move_deliveries(tx, merchant_id, now, by),
        )
        facts: Facts = {"seconds": seconds, "payments": moved.payments, "refunds": moved.refunds}
        await _record(tx, ADVANCED, merchant_id, {**facts, "deliveries": moved.deliveries}, actor, now)
        # Acts wait for one another in the log: the move just before this one is seen here.
        if seen is not None and (await _moves(tx, merchant_id))[1] != seen:
            raise MovedMeanwhile(Refusal.CLOCK_MOVED())
    for due in (ctx.wakeups.polling, ctx.wakeups.refunds, ctx.wakeups.deliveries):
        due.set()
    return moved


async def reset(db: Database, clock: Clock, merchant_id: MerchantId, actor: Actor) -> None:
    """Counts from zero again; nothing if it does already. What was moved stays moved."""
    now = clock.now()
    async with db.transaction() as tx:
        if await advanced_by(tx, merchant_id):
            await _record(tx, RESET, merchant_id, {}, actor, now)


async def advanced_by(db: Reader, merchant_id: MerchantId) -> int:
    """Seconds by which the merchant's test clock was advanced since its last reset, as the audit log has it. Cost: the
    newest entries about this merchant."""
    total = 0
    for action, after in await db.all(_ACTS, subject=str(merchant_id)):
        if action == RESET:
            break
        total += msgspec.json.decode(after, type=dict[str, int])["seconds"]
    return total


async def newest_move(db: Reader, merchant_id: MerchantId) -> int:
    """The number in the audit log of the clock's last advance or reset; 0 if there was none."""
    return (await _moves(db, merchant_id))[0]


async def _moves(db: Reader, merchant_id: MerchantId) -> tuple[int, int]:
    """The numbers of the last two moves, newest first."""
    numbers = [number for (number,) in await db.all(_MOVES, subject=str(merchant_id))]
    newest, before = [*numbers, 0, 0][:2]
    return newest, before


async def _move_payments(tx: Transaction, merchant_id: MerchantId, now: Instant, by: int) -> int:
    rows = [
        {"row_id": number, "due": _moved(due, by, now), "new_data": _aged(data, by)}
        for number, due, data in await _read(tx, _PAYMENTS, merchant_id, now)
    ]
    return await _move_rows(tx, _MOVE_PAYMENT, rows)


async def _move_refunds(tx: Transaction, merchant_id: MerchantId, now: Instant, by: int) -> int:
    rows = [
        {"row_id": number, "due": _moved(due, by, now), "lease": None if lease is None else _moved(lease, by, now)}
        for number, due, lease in await _read(tx, _REFUNDS, merchant_id, now)
    ]
    return await _move_rows(tx, _MOVE_REFUND, rows)


async def _move_deliveries(tx: Transaction, merchant_id: MerchantId, now: Instant, by: int) -> int:
    rows = [
        {"row_id": number, "due": _moved(due, by, now)}
        for number, due in await _read(tx, _DELIVERIES, merchant_id, now)
    ]
    return await _move_rows(tx, _MOVE_DELIVERY, rows)


async def _read(tx: Transaction, statement: Executable, merchant_id: MerchantId, now: Instant) -> Sequence[Row]:
    rows = await tx.all(statement, merchant=merchant_id, now=now)
    if len(rows) > MOST_ROWS:
        raise ActRefused(Refusal.TOO_MUCH_WAITS(count=MOST_ROWS))
    return rows


async def _move_rows(tx: Transaction, statement: Executable, rows: list[dict[str, Any]]) -> int:
    for start in range(0, len(rows), BATCH):
        await tx.write_many(statement, rows[start : start + BATCH])
    return len(rows)


def _moved(due: Instant, by: int, now: Instant) -> Instant:
    """Not before now: an old due time would go before what live waits for, and look like a worker that is late."""
    return max(earlier(due, by), now)


def _aged(provider_data: str | None, by: int) -> str | None:
    data = decode_provider_data(provider_data)
    return encode_provider_data({**data, CLOCK_ADVANCED: str(int(data.get(CLOCK_ADVANCED, 0)) + by)})


async def _record(
    tx: Transaction, action: str, merchant_id: MerchantId, facts: Facts, actor: Actor, now: Instant
) -> None:
    act = Act(actor, action, "merchant", str(merchant_id), merchant_id, after=facts)
    await audit_log.record(tx, act, now)
