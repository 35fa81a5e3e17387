"""Reservations of payment links lapse; the prompts to one telephone, and those of one link, can be counted."""

import sqlalchemy as sa
from alembic import op

revision = "v0014"
down_revision = "v0013"

#: What is pending holds its use for the default time, which has passed for most of it.
_RESERVATIONS = """
    UPDATE payments SET link_reserved_until = created_at + 900000000
    WHERE status = 'pending' AND link_id IS NOT NULL
"""
_PROMPTS = sa.text("link_id IS NOT NULL AND phone_number IS NOT NULL")
_RESERVED = sa.text("status = 'pending' AND link_reserved_until IS NOT NULL")


def upgrade() -> None:
    op.add_column("payment_links", sa.Column("late_uses", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("payments", sa.Column("link_reserved_until", sa.BigInteger()))
    op.execute(_RESERVATIONS)
    for name, columns, where in (
        ("ix_payments_link_reserved_until", ["link_id", "link_reserved_until"], _RESERVED),
        ("ix_payments_link_prompts", ["link_id", "created_at", "status", "failure_reason"], _PROMPTS),
        ("ix_payments_phone_prompts", ["phone_number", "created_at", "status", "failure_reason"], _PROMPTS),
    ):
        op.create_index(name, "payments", columns, postgresql_where=where, sqlite_where=where)
