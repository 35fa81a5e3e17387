"""Triggers that append to `count_entries` whenever a long list gains, loses or re-labels a row.

Triggers and not code: a creation stays one statement and one round trip, and a row changed by hand is counted too.
Rows that are there already are counted once, here.
"""

from alembic import op

revision = "0002"
down_revision = "0001"

_ENTRY = "INSERT INTO count_entries (merchant_id, env, list, hour, status, delta) "
_HOUR = 3_600_000_000
#: Table → the SQL of the label its rows are counted under; {row} is NEW or OLD.
_LISTS = {"payments": "{row}.status", "refunds": "''", "deliveries": "''"}


def upgrade() -> None:
    postgresql = op.get_bind().dialect.name == "postgresql"
    for table, label in _LISTS.items():
        gains = [("AFTER INSERT", "", _append(table, label, "NEW", 1))]
        gains.append(("AFTER DELETE", "", _append(table, label, "OLD", -1)))
        if "status" in label:
            both = _append(table, label, "OLD", -1) + _append(table, label, "NEW", 1)
            gains.append(("AFTER UPDATE OF status", "OLD.status <> NEW.status", both))
        for moment, condition, body in gains:
            name = f"count_{table}_{moment.split()[1].lower()}"
            when = f"WHEN ({condition}) " if condition else ""
            if postgresql:
                op.execute(
                    f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NULL; END $$"
                )
                op.execute(f"CREATE TRIGGER {name} {moment} ON {table} FOR EACH ROW {when}EXECUTE FUNCTION {name}()")
            else:
                op.execute(f"CREATE TRIGGER {name} {moment} ON {table} FOR EACH ROW {when}BEGIN {body} END")
        counted = label.format(row=table)
        existing = f"SELECT merchant_id, env, '{table}', created_at / {_HOUR}, {counted}, COUNT(*) FROM {table} "  # noqa: S608
        op.execute(_ENTRY + existing + "GROUP BY 1, 2, 4, 5")


def _append(table: str, label: str, row: str, delta: int) -> str:
    return (
        f"{_ENTRY}VALUES ({row}.merchant_id, {row}.env, '{table}', {row}.created_at / {_HOUR}, "
        f"{label.format(row=row)}, {delta}); "
    )
