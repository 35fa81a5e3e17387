"""Payments remember that a repeated request was answered while their initiation ran (D20)."""

import sqlalchemy as sa
from alembic import op

revision = "v0015"
down_revision = "v0014"


def upgrade() -> None:
    op.add_column("payments", sa.Column("answered_pending", sa.Boolean(), nullable=False, server_default=sa.false()))
