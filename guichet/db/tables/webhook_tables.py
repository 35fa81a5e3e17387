"""The tables of events, with the bytes that tell of each, and of webhook deliveries: the queue and the log in one."""

from typing import Final

from sqlalchemy import BigInteger, CheckConstraint, Column, Index, Integer, String, Text, UniqueConstraint

from guichet.db.sql_functions import transaction_id
from guichet.db.tables.columns import UUID, env_column, id_column, merchant_column, one_of, partial_index, table
from guichet.domain.events import DELIVERY_STATUSES, DELIVERY_TARGETS, MAX_ATTEMPTS
from guichet.domain.merchants import ENVS

#: What happened to a merchant's payments, whether or not a webhook tells of it. Without a foreign key, which would lock
#: the merchant's row. `transaction_id`: `sql_functions.transaction_id`, by which events are listed.
events: Final = table(
    "events",
    id_column(),
    Column("merchant_id", BigInteger, nullable=False),
    env_column(),
    Column("reference", UUID, nullable=False),
    Column("payment_id", BigInteger),
    Column("event", String(32), nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("transaction_id", BigInteger, nullable=False, server_default=transaction_id()),
    UniqueConstraint("merchant_id", "env", "reference", name="uq_events_reference"),
    one_of("env", ENVS, "events"),
    Index("ix_events_place", "merchant_id", "env", "transaction_id", "id"),
    partial_index("ix_events_payment_id", "payment_id", where="payment_id IS NOT NULL"),
)

#: `id` is that of the event.
webhook_deliveries: Final = table(
    "webhook_deliveries",
    id_column(),
    merchant_column(),
    env_column(),
    Column("reference", UUID, nullable=False),
    Column("payment_id", BigInteger),
    Column("event", String(32), nullable=False),
    Column("target", String(8), nullable=False),
    Column("url", Text, nullable=False),
    Column("destination", Text, nullable=False),
    Column("status", String(8), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("response_code", Integer),
    Column("created_at", BigInteger, nullable=False),
    Column("delivered_at", BigInteger),
    Column("last_attempt_at", BigInteger),
    Column("next_attempt_at", BigInteger),
    Column("error", String(24)),
    Column("history", Text),
    one_of("env", ENVS, "webhook_deliveries"),
    one_of("status", DELIVERY_STATUSES, "webhook_deliveries"),
    one_of("target", DELIVERY_TARGETS, "webhook_deliveries"),
    CheckConstraint(f"attempts BETWEEN 0 AND {MAX_ATTEMPTS}", name="ck_webhook_deliveries_attempts"),
    CheckConstraint("(status = 'success') = (delivered_at IS NOT NULL)", name="ck_webhook_deliveries_delivered_at"),
    CheckConstraint(
        "(status = 'pending') = (next_attempt_at IS NOT NULL)", name="ck_webhook_deliveries_next_attempt_at"
    ),
    Index("ix_webhook_deliveries_newest", "merchant_id", "env", "created_at", "id"),
    # The three indexes of a `fair_queue.FairQueue`.
    partial_index("ix_webhook_deliveries_next_attempt_at", "next_attempt_at", "id", where="status = 'pending'"),
    partial_index(
        "ix_webhook_deliveries_first_attempts",
        "merchant_id",
        "next_attempt_at",
        "id",
        where="status = 'pending' AND attempts = 0",
    ),
    partial_index(
        "ix_webhook_deliveries_retries",
        "merchant_id",
        "next_attempt_at",
        "id",
        where="status = 'pending' AND attempts > 0",
    ),
    partial_index(
        "ix_webhook_deliveries_exhausted",
        "attempts",
        "next_attempt_at",
        where=f"status = 'pending' AND attempts = {MAX_ATTEMPTS}",
    ),
    Index("ix_webhook_deliveries_payment_id", "payment_id", "id"),
    Index("ix_webhook_deliveries_event", "merchant_id", "env", "event", "status", "created_at", "id"),
)
