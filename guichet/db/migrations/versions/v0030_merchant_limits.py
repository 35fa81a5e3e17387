"""A merchant may have limits of its own: requests a minute, and amounts of live payments, each and in a day.

What a payment counts in `daily_totals` is given back when it fails; `payments.counted_day` says on which day it counts.
Payments from before this migration, and those of merchants without a daily limit, count nowhere.
"""

import sqlalchemy as sa
from alembic import op

revision = "v0030_admits_v0016"
down_revision = "v0029_admits_v0016"


def upgrade() -> None:
    op.create_table(
        "daily_totals",
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("merchant_id", "day", name="pk_daily_totals"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_daily_totals_merchant_id"),
        sa.CheckConstraint("amount >= 0", name="ck_daily_totals_amount"),
    )
    op.add_column("merchants", sa.Column("rate_limit", sa.Integer()))
    op.add_column("merchants", sa.Column("payment_limit", sa.BigInteger()))
    op.add_column("merchants", sa.Column("daily_limit", sa.BigInteger()))
    op.add_column("payments", sa.Column("counted_day", sa.Integer()))
