"""The tables of the audit log: what people did, in a hash chain, and what was last published of the two chains."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    String,
    Text,
    false,
)

from guichet.db.tables.columns import partial_index, table

#: One act of a person. `number` counts from 1 without a gap; `digest` includes the digest of the row before it.
#: Triggers (made by the migration) refuse every UPDATE and DELETE.
audit_log: Final = table(
    "audit_log",
    Column("number", BigInteger, autoincrement=False, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("os_user", Text, nullable=False),
    Column("action", String(48), nullable=False),
    Column("subject_type", String(32), nullable=False),
    Column("subject", Text, nullable=False),
    Column("merchant_id", BigInteger),
    Column("reason", Text, nullable=False),
    Column("before", Text, nullable=False),
    Column("after", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    PrimaryKeyConstraint("number"),
    Index("ix_audit_log_subject", "subject", "number"),
    Index("ix_audit_log_actor", "actor", "number"),
    Index("ix_audit_log_action", "action", "number"),
    partial_index("ix_audit_log_merchant_id", "merchant_id", "number", where="merchant_id IS NOT NULL"),
)

#: The one row that says where the log ends. Whoever adds a row locks it, so that rows are added one after the other.
audit_log_head: Final = table(
    "audit_log_head",
    Column("singleton", Integer, autoincrement=False, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("digest", String(64), nullable=False),
    PrimaryKeyConstraint("singleton"),
    CheckConstraint("singleton = 1", name="ck_audit_log_head_singleton"),
)

#: One row: the heads of this chain and of the one over the postings, as they last left the machine. `database_id` tells
#: this database from others, whose heads may reach the same place. The rest is null before the first time.
#: `demonstration`: `guichet demo` made merchants and people here, so the production profile does not open it.
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
    Column("demonstration", Boolean, nullable=False, server_default=false()),
    PrimaryKeyConstraint("singleton", name="pk_published_heads"),
    CheckConstraint("singleton = 1", name="ck_published_heads_singleton"),
)
