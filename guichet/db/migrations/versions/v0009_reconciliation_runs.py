"""The daily comparison of each provider account with the ledger."""

import sqlalchemy as sa
from alembic import op

revision = "v0009"
down_revision = "v0008"


def upgrade() -> None:
    op.create_table(
        "reconciliation_runs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), primary_key=True),
        sa.Column("provider_account", sa.String(64), nullable=False),
        sa.Column("day", sa.BigInteger(), nullable=False),
        sa.Column("due_at", sa.BigInteger()),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("finished_at", sa.BigInteger()),
        sa.Column("lines", sa.BigInteger(), nullable=False),
        sa.Column("matched", sa.BigInteger(), nullable=False),
        sa.Column("differences", sa.BigInteger(), nullable=False),
        sa.Column("found", sa.Text(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.UniqueConstraint("provider_account", "day", name="uq_reconciliation_runs_day"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_reconciliation_runs_day", "reconciliation_runs", ["day"])
    due = sa.text("due_at IS NOT NULL")
    op.create_index(
        "ix_reconciliation_runs_due",
        "reconciliation_runs",
        ["due_at", "id"],
        postgresql_where=due,
        sqlite_where=due,
    )
