"""An invitation to a team is an offer until the person accepts it. Since when somebody of the staff has their role.

Whoever is in the staff already counts as being in it since their account was made.
"""

import sqlalchemy as sa
from alembic import op

revision = "v0029_admits_v0016"
down_revision = "v0028_admits_v0016"


def upgrade() -> None:
    op.add_column("mail_links", sa.Column("merchant_id", sa.BigInteger()))
    op.add_column("mail_links", sa.Column("role", sa.String(16)))
    offers = sa.text("merchant_id IS NOT NULL")
    op.create_index(
        "ix_mail_links_offers", "mail_links", ["merchant_id", "id"], postgresql_where=offers, sqlite_where=offers
    )
    op.add_column("users", sa.Column("staff_since", sa.BigInteger()))
    op.execute("UPDATE users SET staff_since = created_at WHERE staff_role IS NOT NULL")
