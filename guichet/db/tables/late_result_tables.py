"""The tables of late results (what providers did after the end of a payment or refund had been told) and of the
requests that give late money back to the payer."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Text,
    UniqueConstraint,
)

from guichet.db.tables.columns import (
    UUID,
    env_column,
    id_column,
    merchant_column,
    one_of,
    partial_index,
    queue_indexes,
    table,
)
from guichet.domain.late_results import LATE_STAGES, LATE_STATUSES, RETURN_STATUSES
from guichet.domain.merchants import ENVS
from guichet.domain.payments import SUBJECT_TYPES

late_results: Final = table(
    "late_results",
    id_column(),
    merchant_column(),
    env_column(),
    Column("currency", String(3), nullable=False),
    Column("subject_type", String(8), nullable=False),
    Column("subject_id", BigInteger, nullable=False),
    Column("reference", UUID, nullable=False),
    Column("provider_account", String(64), nullable=False),
    Column("status", String(8), nullable=False),
    Column("stage", String(16), nullable=False),
    Column("told_at", BigInteger, nullable=False),
    Column("refused_by_provider", Boolean, nullable=False),
    Column("asked_count", Integer, nullable=False),
    Column("amount", BigInteger),
    Column("found_at", BigInteger),
    Column("next_poll_at", BigInteger),
    Column("return_reference", UUID),
    UniqueConstraint("merchant_id", "subject_type", "subject_id", name="uq_late_results_subject"),
    one_of("env", ENVS, "late_results"),
    one_of("subject_type", SUBJECT_TYPES, "late_results"),
    one_of("status", LATE_STATUSES, "late_results"),
    one_of("stage", LATE_STAGES, "late_results"),
    CheckConstraint("(stage = 'asking') = (next_poll_at IS NOT NULL)", name="ck_late_results_next_poll_at"),
    CheckConstraint("(stage = 'asking') = (amount IS NULL)", name="ck_late_results_amount"),
    *queue_indexes("late_results", "next_poll_at", "provider_account"),
    partial_index("ix_late_results_open", "id", where="status = 'open'"),
)

late_returns: Final = table(
    "late_returns",
    id_column(),
    merchant_column(),
    env_column(),
    Column("late_result_id", BigInteger, ForeignKey("late_results.id"), nullable=False),
    Column("reference", UUID, nullable=False),
    Column("provider_account", String(64), nullable=False),
    Column("status", String(16), nullable=False),
    Column("requested_at", BigInteger, nullable=False),
    Column("sent_at", BigInteger),
    Column("next_poll_at", BigInteger),
    Column("provider_reference", Text),
    Column("provider_data", Text),
    UniqueConstraint("reference", name="uq_late_returns_reference"),
    one_of("env", ENVS, "late_returns"),
    one_of("status", RETURN_STATUSES, "late_returns"),
    CheckConstraint("(status = 'pending') = (next_poll_at IS NOT NULL)", name="ck_late_returns_next_poll_at"),
    *queue_indexes("late_returns", "next_poll_at", "provider_account"),
    Index("ix_late_returns_late_result_id", "late_result_id"),
)
