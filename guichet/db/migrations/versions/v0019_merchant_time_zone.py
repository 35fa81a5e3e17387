"""The time zone of a merchant whose dates are not in the installation's."""

import sqlalchemy as sa
from alembic import op

revision = "v0019_admits_v0016"
down_revision = "v0018_admits_v0016"


def upgrade() -> None:
    op.add_column("merchants", sa.Column("time_zone", sa.String(64)))
