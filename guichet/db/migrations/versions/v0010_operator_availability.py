"""How often operators fail for technical reasons, the state that follows; leases of work done once across workers."""

import sqlalchemy as sa
from alembic import op

revision = "v0010"
down_revision = "v0009"


def upgrade() -> None:
    op.create_table(
        "operator_attempts",
        sa.Column("minute", sa.BigInteger(), nullable=False),
        sa.Column("operator", sa.String(32), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("minute", "operator", name="pk_operator_attempts"),
    )
    states = "('up', 'degraded', 'down')"
    op.create_table(
        "operator_availability",
        sa.Column("operator", sa.String(32), nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("measured", sa.String(8), nullable=False),
        sa.Column("stated", sa.String(8)),
        sa.Column("stated_by", sa.String(64)),
        sa.Column("stated_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("operator", name="pk_operator_availability"),
        sa.CheckConstraint(f"state IN {states}", name="ck_operator_availability_state"),
        sa.CheckConstraint(f"measured IN {states}", name="ck_operator_availability_measured"),
        sa.CheckConstraint(f"stated IN {states}", name="ck_operator_availability_stated"),
    )
    op.create_table(
        "worker_leases",
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_worker_leases"),
    )
