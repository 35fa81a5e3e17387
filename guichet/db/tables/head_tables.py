"""The table of what last left the machine: the heads of the two hash chains."""

from typing import Final

from sqlalchemy import BigInteger, CheckConstraint, Column, Integer, PrimaryKeyConstraint, String

from guichet.db.tables.columns import table

#: One row. `database_id` tells this database from others, whose heads may reach the same place. The rest is what was
#: published last, and null before the first time.
published_heads: Final = table(
    "published_heads",
    Column("singleton", Integer, autoincrement=False, nullable=False),
    Column("database_id", String(36), nullable=False),
    Column("published_at", BigInteger),
    Column("posting_id", BigInteger),
    Column("link", BigInteger),
    Column("digest", String(64)),
    Column("act", BigInteger),
    Column("act_digest", String(64)),
    PrimaryKeyConstraint("singleton", name="pk_published_heads"),
    CheckConstraint("singleton = 1", name="ck_published_heads_singleton"),
)
