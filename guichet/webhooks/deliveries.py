"""Webhook deliveries as a queue: the same table is their log (`delivery_log.py`). What is sent is in `events`.

A claimed one is a `DueDelivery`; what came of sending it is a `sender.Attempt`, then an `EndedAttempt` to be recorded,
and at last a `PastAttempt` in the row's history.

The claim counts the attempt, so that a crash may repeat a send but never exceeds five; the claim's lease is the due
time. First attempts of one payment's events keep their order: an event waits until the one before it was attempted once
(D35).

The attempts that ended (when, how long they took, what the receiver answered) are a column of the delivery, written by
the UPDATE that records the attempt: no statement and no row more. An attempt that does not count leaves nothing,
nor does one that died with its process.
"""

import json
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec import structs
from sqlalchemy import ColumnElement, FromClause, bindparam, func, insert, literal_column, or_, select, update

from guichet.clock import Instant
from guichet.db.engine import Database, Reader, RowStatement, Transaction
from guichet.db.queues.fair_queue import FairClaims, FairQueue
from guichet.db.queues.work_queue import PENDING, is_still_pending
from guichet.db.sql_functions import columns, equal, is_listed, params
from guichet.db.tables import events, webhook_deliveries, webhook_endpoints
from guichet.domain.events import MAX_ATTEMPTS, Delivery, DeliveryError
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.records import Record
from guichet.webhooks.sender import Attempt

#: Attempts that are kept: a delivery has five, and five more each time it is sent again.
MOST: Final = 20
#: Bytes of an answer's body that are kept, for whoever looks for the reason.
ANSWER_SHOWN: Final = 500


class PastAttempt(Record, frozen=True, rename={"ended_at": "at", "response_code": "status"}):
    """`duration`: microseconds. `answer`: the beginning of the body, which the receiver chose; `cut` if there was more.
    Both are what a stranger sent: never to be shown but as plain text."""

    ended_at: Instant
    duration: int
    response_code: int | None
    error: DeliveryError | None
    answer: str = ""
    cut: bool = False


_PastAttempts: Final = msgspec.json.Decoder(list[PastAttempt])
_ENCODER: Final = msgspec.json.Encoder()


def past_attempts(history: str | None) -> list[PastAttempt]:
    """Oldest first."""
    return [] if history is None else _PastAttempts.decode(history)


def with_attempt(history: str | None, attempt: PastAttempt) -> str:
    """The column with one attempt more; the oldest is forgotten beyond MOST."""
    return _ENCODER.encode([*past_attempts(history)[1 - MOST :], attempt]).decode()


def without_answers(history: str | None) -> str | None:
    """The column without what receivers sent."""
    if history is None:
        return None
    left = [structs.replace(attempt, answer="", cut=False) for attempt in past_attempts(history)]
    return _ENCODER.encode(left).decode()


def shown_answer(body: bytes) -> tuple[str, bool]:
    """The beginning of a body as text, and whether it was cut."""
    return body[:ANSWER_SHOWN].decode("utf-8", "replace"), len(body) > ANSWER_SHOWN


#: Its columns stand in the order of the fields of `Delivery`.
_INSERT: Final = RowStatement(
    insert(webhook_deliveries).values(params(*webhook_deliveries.c.keys())), tuple(webhook_deliveries.c.keys())
)
#: Of one merchant's environment.
OF_MERCHANT: Final = equal(webhook_deliveries, "merchant_id", env="environment")
#: What an attempt needs beside its delivery: the event's bytes, and where its merchant's webhooks go at present.
_TO_SEND: Final = (
    select(
        events.c.id,
        events.c.body,
        *columns(webhook_endpoints, "url", "secret", "old_secret", "old_secret_until"),
    )
    .join(
        webhook_endpoints,
        (webhook_endpoints.c.merchant_id == events.c.merchant_id) & (webhook_endpoints.c.env == events.c.env),
    )
    .where(is_listed(events.c.id, "ids"))
)
_earlier: Final = webhook_deliveries.alias("earlier")


def _ready(rows: FromClause) -> tuple[ColumnElement[bool], ...]:
    """Attempts are left, and the event before it was attempted once (D35)."""
    # A count, because PostgreSQL may plan NOT EXISTS or a first row as a walk through all pending rows, once a row.
    waits_for = select(func.count()).where(
        _earlier.c.payment_id == rows.c.payment_id,
        _earlier.c.id < rows.c.id,
        _earlier.c.status == PENDING,
        _earlier.c.last_attempt_at.is_(None),
    )
    return rows.c.attempts < MAX_ATTEMPTS, waits_for.correlate(rows).scalar_subquery() == 0


#: Shared by merchant: neither a merchant with many hosts nor a long backlog can take all attempts.
_CLAIMS: Final = FairClaims(
    webhook_deliveries,
    "next_attempt_at",
    owner="merchant_id",
    destination="destination",
    first=webhook_deliveries.c.attempts == literal_column("0"),  # spelled out, as the indexes say it
    retry=webhook_deliveries.c.attempts > literal_column("0"),
    values={"attempts": webhook_deliveries.c.attempts + 1},
    ready=_ready,
)
#: Deliveries whose fifth attempt was claimed by a process that died: nothing more may be sent.
_EXPIRE: Final = (
    update(webhook_deliveries)
    .where(
        webhook_deliveries.c.status == PENDING,
        webhook_deliveries.c.next_attempt_at <= bindparam("now"),
        webhook_deliveries.c.attempts == literal_column(str(MAX_ATTEMPTS)),  # spelled out, as its index says it
    )
    .values(status="failed", next_attempt_at=None, last_attempt_at=bindparam("now"), error="interrupted")
)
_NEW_STATUS: Final = bindparam("new_status", type_=webhook_deliveries.c.status.type)
_RECORD: Final = (
    update(webhook_deliveries)
    .where(
        webhook_deliveries.c.id == bindparam("delivery_id"),
        is_still_pending(webhook_deliveries),
        # After the lease ran out another attempt may have been claimed: its result is kept, unless this one succeeded.
        or_(webhook_deliveries.c.attempts == bindparam("claimed_attempts"), _NEW_STATUS == "success"),
    )
    .values(
        status=_NEW_STATUS,
        url=bindparam("new_url", type_=webhook_deliveries.c.url.type),
        destination=bindparam("new_destination", type_=webhook_deliveries.c.destination.type),
        response_code=bindparam("new_response_code"),
        last_attempt_at=bindparam("ended_at"),
        delivered_at=bindparam("new_delivered_at", type_=webhook_deliveries.c.delivered_at.type),
        next_attempt_at=bindparam("next_due"),
        error=bindparam("new_error", type_=webhook_deliveries.c.error.type),
        history=bindparam("new_history", type_=webhook_deliveries.c.history.type),
    )
)
#: An attempt that does not count, as nothing was sent. `last_attempt_at` stays: the payment's later events still wait.
_RELEASE_CLAIM: Final = (
    update(webhook_deliveries)
    .where(
        webhook_deliveries.c.id == bindparam("delivery_id"),
        is_still_pending(webhook_deliveries),
        webhook_deliveries.c.attempts == bindparam("claimed_attempts"),
    )
    .values(attempts=webhook_deliveries.c.attempts - 1, next_attempt_at=bindparam("next_due"))
)
_CANCEL: Final = (
    update(webhook_deliveries)
    .where(*OF_MERCHANT, webhook_deliveries.c.status == "pending", webhook_deliveries.c.target == "account")
    .values(status="failed", next_attempt_at=None, error="endpoint_disabled")
)


class EndedAttempt(Record, frozen=True):
    """One that counts. `duration`: microseconds. `next_due` of a failure: when to try again; None after the last
    attempt."""

    delivery: Delivery
    attempt: Attempt
    ended_at: Instant
    duration: int
    next_due: Instant | None = None


async def insert_new(tx: Transaction, new: Sequence[Delivery]) -> None:
    """Inserts deliveries of events; the order of these is the order of first attempts."""
    await tx.write_rows(_INSERT, [structs.astuple(delivery) for delivery in new])


class DueDelivery(Record, frozen=True):
    """A claimed delivery with its event's bytes, the address and the encrypted secrets that were in force at the claim
    (D34, D36)."""

    delivery: Delivery
    body: bytes
    secrets: tuple[str, ...]


async def with_contents(db: Reader, claimed: Sequence[Delivery], now: Instant) -> list[DueDelivery]:
    """What is to be sent. Cost: the events' rows and their merchants' endpoints."""
    rows = await db.all(_TO_SEND, ids=json.dumps([delivery.id for delivery in claimed]))
    contents = {row[0]: row for row in rows}
    due = []
    for delivery in claimed:
        _, body, url, secret, old_secret, until = contents[delivery.id]
        secrets = (secret,) if until is None or until <= now else (secret, old_secret)
        due.append(DueDelivery(_at_present_address(delivery, url), body.encode(), secrets))
    return due


def _at_present_address(delivery: Delivery, url: str | None) -> Delivery:
    """Without an address it was disabled a moment ago: as if the attempt had begun before."""
    if delivery.target == "callback" or url is None or url == delivery.url:
        return delivery
    return structs.replace(delivery, url=url, destination=destination_of(url))


def destination_of(url: str) -> str:
    """The host and port whose attempts at once are limited together."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def delivery_queue() -> FairQueue[Delivery]:
    """The queue as one process claims from it: each claimed delivery has its attempt counted, and is due again at the
    end of the lease if the process dies."""
    return FairQueue(_CLAIMS, lambda row: Delivery(*row))


async def give_up_exhausted(db: Database, now: Instant) -> None:
    """Marks deliveries as failed whose last attempt nobody recorded. Cost: those rows."""
    await db.write(_EXPIRE, now=now)


async def record(db: Database, attempts: Sequence[EndedAttempt]) -> None:
    """Records all attempts or none, in one round trip."""
    await db.write_many(_RECORD, [_recorded(attempt) for attempt in attempts])


async def release_claims(db: Database, claimed: Sequence[Delivery], next_due: Instant) -> None:
    """For attempts that were not made: they do not count, and are due at `next_due`."""
    rows = [
        {"delivery_id": delivery.id, "claimed_attempts": delivery.attempts, "next_due": next_due}
        for delivery in claimed
    ]
    await db.write_many(_RELEASE_CLAIM, rows)


def _recorded(ended: EndedAttempt) -> dict[str, object]:
    delivery, attempt = ended.delivery, ended.attempt
    final = "success" if attempt.delivered else "failed"
    past = PastAttempt(
        ended.ended_at, ended.duration, attempt.response_code, attempt.error, *shown_answer(attempt.answer)
    )
    return {
        "delivery_id": delivery.id,
        "claimed_attempts": delivery.attempts,
        "new_url": delivery.url,
        "new_destination": delivery.destination,
        "new_status": final if ended.next_due is None else "pending",
        "new_response_code": attempt.response_code,
        "ended_at": ended.ended_at,
        "new_delivered_at": ended.ended_at if attempt.delivered else None,
        "next_due": ended.next_due,
        "new_error": attempt.error,
        "new_history": with_attempt(delivery.history, past),
    }


async def cancel_waiting(tx: Transaction, merchant_id: MerchantId, env: Environment) -> None:
    """Fails what still waits for the account endpoint, which was disabled (D36). Cost: those rows."""
    await tx.write(_CANCEL, merchant_id=merchant_id, environment=env)
