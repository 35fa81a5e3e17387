"""The row that `/readyz` writes to know that a write works."""

import sqlalchemy as sa
from alembic import op

revision = "v0012"
down_revision = "v0011"


def upgrade() -> None:
    op.create_table(
        "write_probe",
        sa.Column("name", sa.String(16), nullable=False),
        sa.Column("written_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_write_probe"),
    )
