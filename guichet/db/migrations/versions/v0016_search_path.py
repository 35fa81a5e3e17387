"""The triggers that count rows name the schema of their table: `search_path` is that of whoever writes (D112)."""

import sqlalchemy as sa
from alembic import op

revision = "v0016_admits_v0015"
down_revision = "v0015"

_INSERT = "INSERT INTO list_count_changes "
_DEFINITIONS = sa.text(
    "SELECT pg_get_functiondef(oid) FROM pg_proc "
    "WHERE pronamespace = 'public'::regnamespace AND strpos(prosrc, :insert) > 0"
)


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    for definition in connection.scalars(_DEFINITIONS, {"insert": _INSERT}).all():
        connection.exec_driver_sql(definition.replace(_INSERT, "INSERT INTO public.list_count_changes "))
