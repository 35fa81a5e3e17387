"""Deliveries whose last attempt nobody recorded are found without reading all that is due."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_EXHAUSTED = sa.text("status = 'pending' AND attempts = 5")


def upgrade() -> None:
    op.create_index(
        "ix_deliveries_exhausted",
        "deliveries",
        ["attempts", "due_at"],
        postgresql_where=_EXHAUSTED,
        sqlite_where=_EXHAUSTED,
    )
