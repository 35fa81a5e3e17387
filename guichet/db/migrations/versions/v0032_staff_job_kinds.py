"""A job of the staff may compare a provider's statement, or name merchants at Wave.

The table holds the jobs of 30 days.
"""

import sqlalchemy as sa
from alembic import op

revision = "v0032_admits_v0016"
down_revision = "v0031_admits_v0016"

_KINDS = (
    "kind IN ('anonymise_customer', 'ledger_margin', 'provider_check', 'provider_deep_check', 'provider_balances', "
    "'compare_statement', 'wave_merchants')"
)


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint("ck_staff_jobs_kind", "staff_jobs")
        op.create_check_constraint("ck_staff_jobs_kind", "staff_jobs", _KINDS)
    else:
        _make_again()


def _make_again() -> None:
    """SQLite changes no constraint of a table. Ids go on where they were: the audit log names jobs by them."""
    op.rename_table("staff_jobs", "staff_jobs_before")
    for name in ("newest", "merchant", "due_at", "partition_key"):
        op.drop_index(f"ix_staff_jobs_{name}", "staff_jobs_before")
    op.create_table(
        "staff_jobs",
        sa.Column("id", sa.Integer(), nullable=False),
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
        sa.CheckConstraint(_KINDS, name="ck_staff_jobs_kind"),
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
    op.execute("INSERT INTO staff_jobs SELECT * FROM staff_jobs_before")
    op.execute("DELETE FROM sqlite_sequence WHERE name = 'staff_jobs'")
    op.execute("UPDATE sqlite_sequence SET name = 'staff_jobs' WHERE name = 'staff_jobs_before'")
    op.drop_table("staff_jobs_before")
    op.create_index("ix_staff_jobs_newest", "staff_jobs", ["kind", "id"])
    _partial_index("merchant", ["merchant_id", "id"], "merchant_id IS NOT NULL")
    _partial_index("due_at", ["due_at", "id", "kind"], "status = 'pending'")
    _partial_index("partition_key", ["kind", "due_at", "id"], "status = 'pending'")


def _partial_index(name: str, columns: list[str], where: str) -> None:
    op.create_index(f"ix_staff_jobs_{name}", "staff_jobs", columns, sqlite_where=sa.text(where))
