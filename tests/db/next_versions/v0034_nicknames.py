"""What a next release might add: tests upgrade to it and go back (D114, D144)."""

import sqlalchemy as sa
from alembic import op

revision = "v0034_admits_v0033"
down_revision = "v0033"


def upgrade() -> None:
    op.create_table(
        "nicknames",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("nickname", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_nicknames"),
    )
    op.add_column("merchants", sa.Column("nickname_id", sa.Integer()))
    op.add_column("payments", sa.Column("nicknamed", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index("ix_merchants_nickname_id", "merchants", ["nickname_id"], unique=True)
