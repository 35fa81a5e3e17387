"""Figures of the payments that have a result, by hour of creation, operator, currency and status.

Each change of a payment's status already appends rows to `list_count_changes`. These rows now say as well which
operator, currency, amount and time to validation the payment has, so neither a creation nor a settlement writes another
row. A trigger adds rows to `payment_figures` when they are deleted from `list_count_changes`, which is how a worker
takes them. So the figures do not depend on which release's worker takes a row: one of a release before this, which does
not know the table, feeds it too, in the transaction of its roll-up, while servers are upgraded one after the other and
after going back (D114).

Rows from before this migration have no operator and are not added: their payments are counted here, from the table
itself, with nobody writing to it until the end of the transaction. On PostgreSQL that reads `payments` once: writes to
it wait meanwhile.
"""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "v0021_admits_v0016"
down_revision = "v0020_admits_v0016"

_HOUR: Final = 3_600_000_000
_KEY: Final = "merchant_id, env, hour, operator, currency, status"
_SUMS: Final = ("payment_count", "amount", "validation_time")
#: How a row of `list_count_changes` changes the sums.
_DELTAS: Final = ("delta", "delta * {row}amount", "delta * {row}validation_time")
_EXISTING: Final = f"""
    INSERT INTO payment_figures ({_KEY}, {", ".join(_SUMS)})
    SELECT merchant_id, env, created_at / {_HOUR}, operator, currency, status, COUNT(*), SUM(amount),
        SUM(CASE WHEN status = 'succeeded' THEN updated_at - created_at ELSE 0 END)
    FROM payments WHERE status <> 'pending' GROUP BY 1, 2, 3, 4, 5, 6
"""  # noqa: S608 - constants of this file


def upgrade() -> None:
    if _on_postgresql():
        op.execute("LOCK TABLE payments IN SHARE ROW EXCLUSIVE MODE")
    _figures()
    op.execute(_EXISTING)
    # Last, because reading lists waits for this lock.
    for name, kind in (
        ("operator", sa.String(32)),
        ("currency", sa.String(3)),
        ("amount", sa.BigInteger()),
        ("validation_time", sa.BigInteger()),
    ):
        op.add_column("list_count_changes", sa.Column(name, kind))
    _append_more()
    _add_what_is_taken()
    held = sa.text("status = 'pending' AND held")
    op.create_index(
        "ix_refunds_held", "refunds", ["merchant_id", "env", "currency"], postgresql_where=held, sqlite_where=held
    )


def _on_postgresql() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def _figures() -> None:
    op.create_table(
        "payment_figures",
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(4), nullable=False),
        sa.Column("hour", sa.Integer(), nullable=False),
        sa.Column("operator", sa.String(32), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _SUMS),
        sa.PrimaryKeyConstraint(
            "merchant_id", "env", "hour", "operator", "currency", "status", name="pk_payment_figures"
        ),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_payment_figures_merchant_id"),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_payment_figures_env"),
        sa.CheckConstraint("status IN ('succeeded', 'failed', 'refunded')", name="ck_payment_figures_status"),
    )


def _append_more() -> None:
    """The triggers of `payments` (first migration) with more columns."""
    events = {
        "insert": ("AFTER INSERT", _change("NEW", 1)),
        "delete": ("AFTER DELETE", _change("OLD", -1)),
        "update": (
            "AFTER UPDATE OF status ON payments FOR EACH ROW WHEN (OLD.status <> NEW.status)",
            _change("OLD", -1) + _change("NEW", 1),
        ),
    }
    for name, (event, body) in events.items():
        if _on_postgresql():  # The trigger stays as it is.
            op.execute(
                f"CREATE OR REPLACE FUNCTION count_payments_{name}() RETURNS trigger LANGUAGE plpgsql "
                f"AS $$ BEGIN {body} RETURN NULL; END $$"
            )
        else:
            op.execute(f"DROP TRIGGER count_payments_{name}")
            on = "" if " ON " in event else " ON payments FOR EACH ROW"
            op.execute(f"CREATE TRIGGER count_payments_{name} {event}{on} BEGIN {body} END")


def _change(row: str, delta: int) -> str:
    """`updated_at` of a payment that succeeded is when it did; a refund changes both."""
    schema = "public." if _on_postgresql() else ""
    return (  # Every part is a constant of this file.
        f"INSERT INTO {schema}list_count_changes (merchant_id, env, list_name, hour, status, delta, operator, "  # noqa: S608
        f"currency, amount, validation_time) VALUES ({row}.merchant_id, {row}.env, 'payments', "
        f"{row}.created_at / {_HOUR}, {row}.status, {delta}, {row}.operator, {row}.currency, {row}.amount, "
        f"CASE WHEN {row}.status = 'succeeded' THEN {row}.updated_at - {row}.created_at ELSE 0 END); "
    )


def _add_what_is_taken() -> None:
    added = ", ".join(f"{name} = payment_figures.{name} + excluded.{name}" for name in _SUMS)
    into = f"payment_figures ({_KEY}, {', '.join(_SUMS)})"
    conflict = f"ON CONFLICT ({_KEY}) DO UPDATE SET {added};"
    if _on_postgresql():
        # Once for each statement, in the order of the keys: two workers cannot wait for each other.
        sums = ", ".join(f"SUM({delta.format(row='')})" for delta in _DELTAS)
        op.execute(  # Every part is a constant of this file.
            "CREATE FUNCTION add_payment_figures() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "  # noqa: S608
            f"INSERT INTO public.{into} SELECT {_KEY}, {sums} FROM taken "
            f"WHERE operator IS NOT NULL AND status <> 'pending' GROUP BY {_KEY} ORDER BY {_KEY} {conflict} "
            "RETURN NULL; END $$"
        )
        op.execute(
            "CREATE TRIGGER add_payment_figures AFTER DELETE ON list_count_changes REFERENCING OLD TABLE AS taken "
            "FOR EACH STATEMENT EXECUTE FUNCTION add_payment_figures()"
        )
        return
    key = ", ".join(f"OLD.{name}" for name in _KEY.split(", "))
    deltas = f"OLD.{', OLD.'.join(_DELTAS)}".format(row="OLD.")
    op.execute(  # Every part is a constant of this file.
        "CREATE TRIGGER add_payment_figures AFTER DELETE ON list_count_changes FOR EACH ROW "  # noqa: S608
        "WHEN (OLD.operator IS NOT NULL AND OLD.status <> 'pending') "
        f"BEGIN INSERT INTO {into} VALUES ({key}, {deltas}) {conflict} END"
    )
