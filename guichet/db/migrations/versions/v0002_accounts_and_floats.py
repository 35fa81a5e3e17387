"""What must be remembered of a provider account: which one it really was, and that our balance with it was empty."""

import sqlalchemy as sa
from alembic import op

revision = "v0002"
down_revision = "v0001"


def upgrade() -> None:
    op.add_column("payments", sa.Column("account_fingerprint", sa.String(16)))
    op.add_column("refunds", sa.Column("account_fingerprint", sa.String(16)))
    op.add_column("refunds", sa.Column("request_number", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("refunds", sa.Column("float_empty_accounts", sa.Text()))
    waiting = sa.text("float_empty_accounts IS NOT NULL")
    op.create_index(
        "ix_refunds_float_empty",
        "refunds",
        ["id"],
        postgresql_where=waiting,
        sqlite_where=waiting,
    )
