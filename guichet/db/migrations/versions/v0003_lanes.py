"""Queues are claimed lane by lane: see `db/work_queue.py`."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_PENDING = sa.text("status = 'pending'")
#: Table → what its lanes are.
_LANES = {"payments": ["connection"], "refunds": ["connection"], "deliveries": ["destination", "merchant_id"]}


def upgrade() -> None:
    for table, lane in _LANES.items():
        due, lanes = f"ix_{table}_due", f"ix_{table}_lanes"
        op.drop_index(due, table)
        op.create_index(due, table, ["due_at", "id", *lane], postgresql_where=_PENDING, sqlite_where=_PENDING)
        op.create_index(lanes, table, [*lane, "due_at", "id"], postgresql_where=_PENDING, sqlite_where=_PENDING)
