"""Payment links may be of the test environment or of the cash desk; the payments of a link can be listed.

A process of the version before would take a payment through a test link for a live one. Nobody has a test link before a
process of this version has made it in the console.
"""

import sqlalchemy as sa
from alembic import op

revision = "v0028_admits_v0016"
down_revision = "v0027_admits_v0016"

_LINKS = "payment_links"


def upgrade() -> None:
    for name in ("test", "cash_desk"):
        op.add_column(_LINKS, sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false()))
    op.drop_index("uq_payment_links_external_id", _LINKS)
    _unique_index("uq_payment_links_external_id", ["merchant_id", "external_id"], "NOT test")
    _unique_index("uq_payment_links_test_external_id", ["external_id", "merchant_id"], "test")
    op.drop_index("ix_payment_links_merchant_id", _LINKS)
    op.create_index("ix_payment_links_newest", _LINKS, ["merchant_id", "test", "id"])
    op.create_index("ix_payment_links_kind", _LINKS, ["merchant_id", "test", "cash_desk", "id"])
    op.create_index(
        "ix_payments_link",
        "payments",
        ["link_id", "id"],
        postgresql_where=sa.text("link_id IS NOT NULL"),
        sqlite_where=sa.text("link_id IS NOT NULL"),
    )


def _unique_index(name: str, columns: list[str], environment: str) -> None:
    of = sa.text(f"external_id IS NOT NULL AND {environment}")
    op.create_index(name, _LINKS, columns, unique=True, postgresql_where=of, sqlite_where=of)
