"""The tables of refunds, of the refunds that programs propose, of disputes about card payments, of late results (what
providers did after the end of a payment or refund had been told) and of the requests that give late money back.

Columns stand in the order of the fields of their class in `domain/`, so that a row unpacks into it (held by a test).
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
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
from guichet.domain.disputes import BEARERS, DISPUTE_STATUSES
from guichet.domain.late_results import LATE_STAGES, LATE_STATUSES, RETURN_STATUSES
from guichet.domain.merchants import ENVS
from guichet.domain.payments import AUTOMATIC_REASONS, REFUND_STATUSES, SUBJECT_TYPES
from guichet.domain.refund_proposals import STORED_PROPOSAL_STATUSES

refunds: Final = table(
    "refunds",
    id_column(),
    merchant_column(),
    env_column(),
    Column("reference", UUID, nullable=False),
    Column("payment_id", BigInteger, ForeignKey("payments.id"), nullable=False),
    Column("payment_reference", UUID, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("currency", String(3), nullable=False),
    Column("status", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("processed_at", BigInteger),
    Column("held", Boolean, nullable=False),
    Column("provider_account", String(64)),
    Column("provider_reference", Text),
    Column("provider_data", Text),
    Column("failure_reason", String(32)),
    Column("sent_at", BigInteger),
    Column("next_poll_at", BigInteger),
    Column("poll_count", Integer, nullable=False),
    Column("lease_expires_at", BigInteger),
    Column("account_fingerprint", String(32)),
    Column("request_number", Integer, nullable=False, server_default="0"),
    Column("float_empty_accounts", Text),
    Column("payee_number", String(15)),
    Column("asked_at", BigInteger),
    Column("not_found_count", Integer, nullable=False, server_default="0"),
    Column("not_found_duration", BigInteger, nullable=False, server_default="0"),
    Column("ambiguous_code", String(64)),
    Column("automatic", String(16)),
    UniqueConstraint("merchant_id", "payment_id", name="uq_refunds_payment_id"),
    UniqueConstraint("reference", "merchant_id", "env", name="uq_refunds_reference"),
    one_of("env", ENVS, "refunds"),
    one_of("status", REFUND_STATUSES, "refunds"),
    one_of("automatic", AUTOMATIC_REASONS, "refunds"),
    CheckConstraint("amount > 0", name="ck_refunds_amount"),
    CheckConstraint("(status = 'pending') = (processed_at IS NULL)", name="ck_refunds_processed_at"),
    CheckConstraint("(status = 'pending') = (next_poll_at IS NOT NULL)", name="ck_refunds_next_poll_at"),
    Index("ix_refunds_newest", "merchant_id", "env", "created_at", "id"),
    Index("ix_refunds_status", "merchant_id", "env", "status", "created_at", "id"),
    partial_index(
        "ix_refunds_provider_reference",
        "provider_account",
        "provider_reference",
        where="provider_reference IS NOT NULL",
    ),
    *queue_indexes("refunds", "next_poll_at", "provider_account"),
    partial_index("ix_refunds_held", "merchant_id", "env", "currency", where="status = 'pending' AND held"),
    partial_index("ix_refunds_float_empty", "id", where="float_empty_accounts IS NOT NULL"),
)

#: The refund of a payment that a program proposed and a person decides (`refunds/proposals.py`). One row a payment: the
#: last proposal. `key_id`: of the key that the program has.
refund_proposals: Final = table(
    "refund_proposals",
    Column("payment_id", BigInteger, ForeignKey("payments.id"), nullable=False),
    merchant_column(),
    env_column(),
    Column("key_id", BigInteger, ForeignKey("api_keys.id"), nullable=False),
    Column("status", String(9), nullable=False),
    Column("reason", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("payment_id"),
    one_of("env", ENVS, "refund_proposals"),
    one_of("status", STORED_PROPOSAL_STATUSES, "refund_proposals"),
    partial_index("ix_refund_proposals_open", "merchant_id", "env", "expires_at", where="status = 'open'"),
)

#: One without a payment matched none of ours: it is the house merchant's.
disputes: Final = table(
    "disputes",
    id_column(),
    merchant_column(),
    env_column(),
    Column("currency", String(3), nullable=False),
    Column("payment_id", BigInteger, ForeignKey("payments.id")),
    Column("payment_reference", UUID),
    Column("reference", UUID, nullable=False),
    Column("provider_account", String(64), nullable=False),
    Column("provider_reference", String(255), nullable=False),
    Column("status", String(16), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("opened_at", BigInteger, nullable=False),
    Column("evidence_due_at", BigInteger),
    Column("closed_at", BigInteger),
    Column("borne_by", String(8)),
    Column("taken", Boolean, nullable=False),
    UniqueConstraint("provider_account", "provider_reference", name="uq_disputes_provider_reference"),
    UniqueConstraint("reference", name="uq_disputes_reference"),
    one_of("env", ENVS, "disputes"),
    one_of("status", DISPUTE_STATUSES, "disputes"),
    one_of("borne_by", BEARERS, "disputes"),
    CheckConstraint("amount > 0", name="ck_disputes_amount"),
    CheckConstraint("(status = 'open') = (closed_at IS NULL)", name="ck_disputes_closed_at"),
    CheckConstraint("(payment_id IS NULL) = (payment_reference IS NULL)", name="ck_disputes_payment"),
    CheckConstraint("borne_by IS NULL OR status = 'lost'", name="ck_disputes_lost"),
    Index("ix_disputes_payment_id", "payment_id"),
    Index("ix_disputes_newest", "merchant_id", "env", "opened_at", "id"),
    #: Those that a merchant can still answer.
    partial_index("ix_disputes_open", "merchant_id", "env", where="status = 'open'"),
)


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
