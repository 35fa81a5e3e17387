"""Payments are found by telephone number and by the customer's name.

The names are compared by their bytes with the letters A to Z small (`db/sql_functions.py`, `folded_name`).
"""

import sqlalchemy as sa
from alembic import op

revision = "v0027_admits_v0016"
down_revision = "v0026_admits_v0016"

_NAMED = "firstname IS NOT NULL OR lastname IS NOT NULL"


def upgrade() -> None:
    op.create_index(
        "ix_payments_phone_number",
        "payments",
        ["phone_number", "merchant_id", "env", "id"],
        postgresql_where=sa.text("phone_number IS NOT NULL"),
        sqlite_where=sa.text("phone_number IS NOT NULL"),
    )
    for name, parts in (("first_name", ("firstname", "lastname")), ("last_name", ("lastname", "firstname"))):
        first, last = (f"coalesce({part}, '')" for part in parts)
        full = f"{first} || ' ' || {last}"
        by_bytes = f'({full}) COLLATE "C"' if op.get_bind().dialect.name == "postgresql" else full
        op.execute(f"CREATE INDEX ix_payments_{name} ON payments (merchant_id, env, lower({by_bytes})) WHERE {_NAMED}")
