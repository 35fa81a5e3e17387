"""Payment links have an external_id, metadata and a return_url; the open incidents of an account can be found."""

import sqlalchemy as sa
from alembic import op

revision = "v0017_admits_v0016"
down_revision = "v0016_admits_v0015"


def upgrade() -> None:
    for name in ("external_id", "metadata", "return_url"):
        op.add_column("payment_links", sa.Column(name, sa.Text()))
    op.add_column("payments", sa.Column("link_external_id", sa.Text()))
    given, still_open = sa.text("external_id IS NOT NULL"), sa.text("closed_at IS NULL")
    op.create_index(
        "uq_payment_links_external_id",
        "payment_links",
        ["merchant_id", "external_id"],
        unique=True,
        postgresql_where=given,
        sqlite_where=given,
    )
    op.create_index(
        "ix_incidents_open_account",
        "incidents",
        ["provider_account", "kind"],
        postgresql_where=still_open,
        sqlite_where=still_open,
    )
