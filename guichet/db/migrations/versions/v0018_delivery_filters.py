"""Webhook deliveries by event, by status and by payment, with why the last attempt failed.

Deliveries of each event and status are counted under a name of their own, beside the count of all: what the triggers
append from now on, and what is there already. Nobody can write a delivery between the two: creating a trigger locks the
table until the end of the transaction.
"""

import sqlalchemy as sa
from alembic import op

revision = "v0018_admits_v0016"
down_revision = "v0017_admits_v0016"

_HOUR = 3_600_000_000
_TABLE = "webhook_deliveries"
_COUNTS = "merchant_id, env, list_name, level, bucket, status, row_count"
_HOURS = f"""
    INSERT INTO list_counts ({_COUNTS})
    SELECT merchant_id, env, 'deliveries/' || event, 'hour', created_at / {_HOUR}, status, COUNT(*)
    FROM {_TABLE} GROUP BY merchant_id, env, event, status, created_at / {_HOUR}
"""  # noqa: S608 - constants of this file
#: Of the hours that were just counted.
_COARSER = f"""
    INSERT INTO list_counts ({_COUNTS})
    SELECT merchant_id, env, list_name, '{{level}}', {{bucket}}, status, SUM(row_count)
    FROM list_counts WHERE level = 'hour' AND list_name LIKE 'deliveries/%'
    GROUP BY merchant_id, env, list_name, status{{by}}
"""  # noqa: S608 - constants of this file


def upgrade() -> None:
    op.add_column(_TABLE, sa.Column("error", sa.String(24)))
    _count_combinations()
    op.drop_index("ix_webhook_deliveries_payment_id", _TABLE)
    op.create_index("ix_webhook_deliveries_payment_id", _TABLE, ["payment_id", "id"])
    op.create_index(
        "ix_webhook_deliveries_event", _TABLE, ["merchant_id", "env", "event", "status", "created_at", "id"]
    )
    op.execute(_HOURS)
    op.execute(_COARSER.format(level="day", bucket="bucket / 24", by=", bucket / 24"))
    op.execute(_COARSER.format(level="all", bucket="0", by=""))


def _count_combinations() -> None:
    _trigger("INSERT", "", _change("NEW", 1))
    _trigger("DELETE", "", _change("OLD", -1))
    _trigger("UPDATE OF status", "WHEN (OLD.status <> NEW.status) ", _change("OLD", -1) + _change("NEW", 1))


def _trigger(event: str, condition: str, body: str) -> None:
    name = f"count_combinations_{event.split(maxsplit=1)[0].lower()}"
    created = f"CREATE TRIGGER {name} AFTER {event} ON {_TABLE} FOR EACH ROW {condition}"
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NULL; END $$")
        op.execute(f"{created}EXECUTE FUNCTION {name}()")
    else:
        op.execute(f"{created}BEGIN {body} END")


def _change(row: str, delta: int) -> str:
    schema = "public." if op.get_bind().dialect.name == "postgresql" else ""
    return (  # Every part is a constant of this file.
        f"INSERT INTO {schema}list_count_changes (merchant_id, env, list_name, hour, status, delta) "  # noqa: S608
        f"VALUES ({row}.merchant_id, {row}.env, 'deliveries/' || {row}.event, {row}.created_at / {_HOUR}, "
        f"{row}.status, {delta}); "
    )
