"""Our balances with the providers, and our merchants' ids there."""

import sqlalchemy as sa
from alembic import op

revision = "v0007"
down_revision = "v0006"


def upgrade() -> None:
    op.create_table(
        "provider_balances",
        sa.Column("provider_account", sa.String(64), nullable=False),
        sa.Column("wallet", sa.Text(), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("alert_below", sa.BigInteger()),
        sa.PrimaryKeyConstraint("provider_account", "wallet", "currency", name="pk_provider_balances"),
    )
    op.create_table(
        "provider_balance_reads",
        sa.Column("provider_account", sa.String(64), nullable=False),
        sa.Column("next_read_at", sa.BigInteger(), nullable=False),
        sa.Column("read_at", sa.BigInteger()),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("provider_account", name="pk_provider_balance_reads"),
    )
    op.create_table(
        "provider_merchants",
        sa.Column("provider_account", sa.String(64), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("provider_merchant_id", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("provider_account", "merchant_id", name="pk_provider_merchants"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_provider_merchants_merchant_id"),
    )
