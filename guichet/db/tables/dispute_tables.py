"""The table of disputes about card payments. One without a payment matched none of ours: it is the house merchant's."""

from typing import Final

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, ForeignKey, Index, String, Text, UniqueConstraint

from guichet.db.tables.columns import UUID, env_column, id_column, merchant_column, one_of, partial_index, table
from guichet.domain.disputes import BEARERS, DISPUTE_STATUSES
from guichet.domain.merchants import ENVS

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
