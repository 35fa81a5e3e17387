"""What providers do after the end of a payment or refund was told to the merchant."""

import sqlalchemy as sa
from alembic import op

revision = "v0004"
down_revision = "v0003"


def upgrade() -> None:
    op.create_table(
        "late_results",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), primary_key=True, nullable=False
        ),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(4), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("subject_type", sa.String(8), nullable=False),
        sa.Column("subject_id", sa.BigInteger(), nullable=False),
        sa.Column("reference", sa.Uuid(as_uuid=False).with_variant(sa.String(36), "sqlite"), nullable=False),
        sa.Column("provider_account", sa.String(64), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("stage", sa.String(16), nullable=False),
        sa.Column("told_at", sa.BigInteger(), nullable=False),
        sa.Column("asked_count", sa.Integer(), nullable=False),
        sa.Column("amount", sa.BigInteger()),
        sa.Column("found_at", sa.BigInteger()),
        sa.Column("next_poll_at", sa.BigInteger()),
        sa.Column("return_reference", sa.Uuid(as_uuid=False).with_variant(sa.String(36), "sqlite")),
        sa.Column("return_sent_at", sa.BigInteger()),
        sa.Column("provider_reference", sa.Text()),
        sa.Column("provider_data", sa.Text()),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_late_results_env"),
        sa.CheckConstraint("subject_type IN ('payment', 'refund')", name="ck_late_results_subject_type"),
        sa.CheckConstraint("status IN ('pending', 'open', 'closed')", name="ck_late_results_status"),
        sa.CheckConstraint(
            "stage IN ('asking', 'found', 'receivable', 'returning', 'credited', 'returned', 'paid')",
            name="ck_late_results_stage",
        ),
        sa.CheckConstraint("(status = 'pending') = (next_poll_at IS NOT NULL)", name="ck_late_results_next_poll_at"),
        sa.CheckConstraint("(stage = 'asking') = (amount IS NULL)", name="ck_late_results_amount"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_late_results_merchant_id"),
        sa.PrimaryKeyConstraint("id", name="pk_late_results"),
        sa.UniqueConstraint("merchant_id", "subject_type", "subject_id", name="uq_late_results_subject"),
        sqlite_autoincrement=True,
    )
    _partial_index("ix_late_results_next_poll_at", "next_poll_at", "id", "provider_account", where="pending")
    _partial_index("ix_late_results_partition_key", "provider_account", "next_poll_at", "id", where="pending")
    _partial_index("ix_late_results_open", "id", where="open")


def _partial_index(name: str, *columns: str, where: str) -> None:
    condition = sa.text(f"status = '{where}'")
    op.create_index(name, "late_results", list(columns), postgresql_where=condition, sqlite_where=condition)
