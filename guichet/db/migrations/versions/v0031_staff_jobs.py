"""The work that the staff ask for in the back office and the worker does."""

import sqlalchemy as sa
from alembic import op

revision = "v0031_admits_v0016"
down_revision = "v0030_admits_v0016"

_KINDS = "'anonymise_customer', 'ledger_margin', 'provider_check', 'provider_deep_check', 'provider_balances'"


def upgrade() -> None:
    op.create_table(
        "staff_jobs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), nullable=False),
        sa.Column("kind", sa.String(24), nullable=False),
        sa.Column("merchant_id", sa.BigInteger()),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("request_hash", sa.String(64), nullable=False),
        sa.Column("parameters", sa.Text()),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger()),
        sa.Column("result", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_staff_jobs"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_staff_jobs_merchant_id"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_staff_jobs_user_id"),
        sa.CheckConstraint(f"kind IN ({_KINDS})", name="ck_staff_jobs_kind"),
        sa.CheckConstraint("status IN ('pending', 'done', 'failed')", name="ck_staff_jobs_status"),
        sa.CheckConstraint(
            "(kind = 'anonymise_customer') = (merchant_id IS NOT NULL)", name="ck_staff_jobs_merchant_id"
        ),
        sa.CheckConstraint("(status = 'pending') = (parameters IS NOT NULL)", name="ck_staff_jobs_parameters"),
        sa.CheckConstraint("(status = 'pending') = (due_at IS NOT NULL)", name="ck_staff_jobs_due_at"),
        sa.CheckConstraint("(status = 'pending') = (finished_at IS NULL)", name="ck_staff_jobs_finished_at"),
        sa.CheckConstraint("(status = 'done') = (result IS NOT NULL)", name="ck_staff_jobs_result"),
        sa.UniqueConstraint("request_hash", name="uq_staff_jobs_request_hash"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_staff_jobs_newest", "staff_jobs", ["kind", "id"])
    _partial_index("ix_staff_jobs_merchant", ["merchant_id", "id"], "merchant_id IS NOT NULL")
    _partial_index("ix_staff_jobs_due_at", ["due_at", "id", "kind"], "status = 'pending'")
    _partial_index("ix_staff_jobs_partition_key", ["kind", "due_at", "id"], "status = 'pending'")


def _partial_index(name: str, columns: list[str], where: str) -> None:
    op.create_index(name, "staff_jobs", columns, postgresql_where=sa.text(where), sqlite_where=sa.text(where))
