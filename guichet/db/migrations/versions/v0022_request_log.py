"""The log of API requests, when a key was used last, what receivers of webhooks answered, a merchant's audit log."""

import sqlalchemy as sa
from alembic import op

revision = "v0022_admits_v0016"
down_revision = "v0021_admits_v0016"


def upgrade() -> None:
    op.create_table(
        "api_requests",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(4), nullable=False),
        sa.Column("key_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("method", sa.String(8), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("duration", sa.BigInteger(), nullable=False),
        sa.Column("error_code", sa.String(32)),
        sa.PrimaryKeyConstraint("id", name="pk_api_requests"),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_api_requests_env"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_api_requests_newest", "api_requests", ["merchant_id", "env", "id"])
    op.add_column("api_keys", sa.Column("last_used_at", sa.BigInteger()))
    op.add_column("webhook_deliveries", sa.Column("history", sa.Text()))
    of_merchants = sa.text("merchant_id IS NOT NULL")
    op.create_index(
        "ix_audit_log_merchant_id",
        "audit_log",
        ["merchant_id", "number"],
        postgresql_where=of_merchants,
        sqlite_where=of_merchants,
    )
