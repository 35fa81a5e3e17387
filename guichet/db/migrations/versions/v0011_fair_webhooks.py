"""The queue of webhooks by merchant, first attempts before retries."""

import sqlalchemy as sa
from alembic import op

revision = "v0011"
down_revision = "v0010"


def upgrade() -> None:
    for name in ("next_attempt_at", "partition_key"):
        op.drop_index(f"ix_webhook_deliveries_{name}", "webhook_deliveries")
    for name, columns, where in (
        ("next_attempt_at", ["next_attempt_at", "id"], "status = 'pending'"),
        ("first_attempts", ["merchant_id", "next_attempt_at", "id"], "status = 'pending' AND attempts = 0"),
        ("retries", ["merchant_id", "next_attempt_at", "id"], "status = 'pending' AND attempts > 0"),
    ):
        op.create_index(
            f"ix_webhook_deliveries_{name}",
            "webhook_deliveries",
            columns,
            postgresql_where=sa.text(where),
            sqlite_where=sa.text(where),
        )
