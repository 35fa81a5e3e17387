"""Money acts that wait for a second person."""

import sqlalchemy as sa
from alembic import op

revision = "v0026_admits_v0016"
down_revision = "v0025_admits_v0016"

_ACTS = (
    "'payment.settle', 'refund.settle', 'refund.confirm_payee', 'late_money.resolve', 'dispute.resolve', "
    "'wallet.reopen'"
)


def upgrade() -> None:
    op.create_table(
        "approval_requests",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), nullable=False),
        sa.Column("act", sa.String(32), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("os_user", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("decided_by", sa.Text()),
        sa.Column("decided_at", sa.BigInteger()),
        sa.Column("decision_reason", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_approval_requests"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_approval_requests_merchant_id"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_approval_requests_user_id"),
        sa.CheckConstraint(f"act IN ({_ACTS})", name="ck_approval_requests_act"),
        sa.CheckConstraint(
            "status IN ('pending', 'approved', 'refused', 'expired')", name="ck_approval_requests_status"
        ),
        sa.CheckConstraint(
            "(status IN ('approved', 'refused')) = (decided_by IS NOT NULL AND decided_at IS NOT NULL)",
            name="ck_approval_requests_decided",
        ),
        sqlite_autoincrement=True,
    )
    pending = sa.text("status = 'pending'")
    op.create_index(
        "uq_approval_requests_subject",
        "approval_requests",
        ["subject"],
        unique=True,
        postgresql_where=pending,
        sqlite_where=pending,
    )
