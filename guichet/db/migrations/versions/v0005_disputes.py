"""Disputes about card payments."""

import sqlalchemy as sa
from alembic import op

revision = "v0005"
down_revision = "v0004"


def upgrade() -> None:
    op.create_table(
        "disputes",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(4), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("payment_id", sa.BigInteger(), nullable=False),
        sa.Column("payment_reference", _uuid(), nullable=False),
        sa.Column("reference", _uuid(), nullable=False),
        sa.Column("provider_account", sa.String(64), nullable=False),
        sa.Column("provider_reference", sa.String(255), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("evidence_due_at", sa.BigInteger()),
        sa.Column("closed_at", sa.BigInteger()),
        sa.Column("borne_by", sa.String(8)),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_disputes_env"),
        sa.CheckConstraint("status IN ('open', 'won', 'lost')", name="ck_disputes_status"),
        sa.CheckConstraint("borne_by IN ('merchant', 'service')", name="ck_disputes_borne_by"),
        sa.CheckConstraint("amount > 0", name="ck_disputes_amount"),
        sa.CheckConstraint("(status = 'open') = (closed_at IS NULL)", name="ck_disputes_closed_at"),
        sa.CheckConstraint("borne_by IS NULL OR status = 'lost'", name="ck_disputes_lost"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_disputes_merchant_id"),
        sa.ForeignKeyConstraint(["payment_id"], ["payments.id"], name="fk_disputes_payment_id"),
        sa.PrimaryKeyConstraint("id", name="pk_disputes"),
        sa.UniqueConstraint("provider_account", "provider_reference", name="uq_disputes_provider_reference"),
        sa.UniqueConstraint("reference", name="uq_disputes_reference"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_disputes_payment_id", "disputes", ["payment_id"])


def _uuid() -> sa.types.TypeEngine[str]:
    return sa.Uuid(as_uuid=False).with_variant(sa.String(36), "sqlite")
