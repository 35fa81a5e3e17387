"""Heads of the hash chains: what each audit covered, and what left the machine last."""

from uuid import uuid4

import sqlalchemy as sa
from alembic import op

revision = "v0013"
down_revision = "v0012"


def upgrade() -> None:
    op.add_column("ledger_audits", sa.Column("head_posting_id", sa.BigInteger()))
    op.add_column("ledger_audits", sa.Column("hash_chain_links", sa.BigInteger()))
    published = op.create_table(
        "published_heads",
        sa.Column("singleton", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("database_id", sa.String(36), nullable=False),
        sa.Column("published_at", sa.BigInteger()),
        sa.Column("posting_id", sa.BigInteger()),
        sa.Column("link", sa.BigInteger()),
        sa.Column("digest", sa.String(64)),
        sa.Column("act", sa.BigInteger()),
        sa.Column("act_digest", sa.String(64)),
        sa.PrimaryKeyConstraint("singleton", name="pk_published_heads"),
        sa.CheckConstraint("singleton = 1", name="ck_published_heads_singleton"),
    )
    op.bulk_insert(published, [{"singleton": 1, "database_id": str(uuid4())}])
