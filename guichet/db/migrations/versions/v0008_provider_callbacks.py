"""Callbacks wait in a table until they were asked about; "not found" is counted; unmatched callbacks are bounded."""

import sqlalchemy as sa
from alembic import op

revision = "v0008"
down_revision = "v0007"

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_PENDING = sa.text("status = 'pending'")


def upgrade() -> None:
    _polling_columns()
    _provider_callbacks()
    op.create_index(
        "ix_unmatched_callbacks_provider_account", "unmatched_callbacks", ["provider_account", "received_at", "id"]
    )


def _polling_columns() -> None:
    op.add_column("payments", sa.Column("asked_at", sa.BigInteger()))
    op.add_column("payments", sa.Column("initiation_ended_at", sa.BigInteger()))
    op.add_column("refunds", sa.Column("asked_at", sa.BigInteger()))
    for table in ("payments", "refunds"):
        op.add_column(table, sa.Column("not_found_count", sa.Integer(), nullable=False, server_default="0"))
        op.add_column(table, sa.Column("not_found_duration", sa.BigInteger(), nullable=False, server_default="0"))


def _provider_callbacks() -> None:
    op.create_table(
        "provider_callbacks",
        sa.Column("id", _ID, sa.Identity(), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(4), nullable=False),
        sa.Column("subject_type", sa.String(8), nullable=False),
        sa.Column("subject_id", sa.BigInteger(), nullable=False),
        sa.Column("provider_account", sa.String(64), nullable=False),
        sa.Column("provider_reference", sa.Text()),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("received_count", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("due_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_provider_callbacks"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_provider_callbacks_merchant_id"),
        sa.UniqueConstraint("subject_id", "subject_type", name="uq_provider_callbacks_subject"),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_provider_callbacks_env"),
        sa.CheckConstraint("subject_type IN ('payment', 'refund')", name="ck_provider_callbacks_subject_type"),
        sa.CheckConstraint("status IN ('pending', 'asked')", name="ck_provider_callbacks_status"),
        sa.CheckConstraint("(status = 'pending') = (due_at IS NOT NULL)", name="ck_provider_callbacks_due_at"),
        sqlite_autoincrement=True,
    )
    for name, columns in (
        ("ix_provider_callbacks_due_at", ["due_at", "id", "provider_account"]),
        ("ix_provider_callbacks_partition_key", ["provider_account", "due_at", "id"]),
    ):
        op.create_index(name, "provider_callbacks", columns, postgresql_where=_PENDING, sqlite_where=_PENDING)
