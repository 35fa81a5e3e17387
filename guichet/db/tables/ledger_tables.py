"""The tables of the ledger and of the audit log: postings, wallets, audits, what people did, and both hash chains."""

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
    UniqueConstraint,
    false,
)

from guichet.db.tables.columns import env_column, id_column, merchant_column, one_of, partial_index, table
from guichet.domain.merchants import ENVS
from guichet.domain.posting_rules import WALLET_STATUSES

postings: Final = table(
    "postings",
    id_column(),
    merchant_column(),
    env_column(),
    Column("currency", String(3), nullable=False),
    Column("cause", String(32), nullable=False),
    Column("subject_id", BigInteger, nullable=False),
    Column("leg", String(16), nullable=False),
    Column("source", String(128), nullable=False),
    Column("destination", String(128), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("merchant_id", "cause", "subject_id", "leg", name="uq_postings_cause"),
    one_of("env", ENVS, "postings"),
    CheckConstraint("amount > 0", name="ck_postings_amount"),
    CheckConstraint("source <> destination", name="ck_postings_accounts"),
    Index("ix_postings_statement", "merchant_id", "env", "currency", "created_at", "id"),
)

wallets: Final = table(
    "wallets",
    merchant_column(),
    env_column(),
    Column("currency", String(3), nullable=False),
    Column("status", String(8), nullable=False),
    Column("balance", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    #: `Actif` again, and its suspended entries are not all released yet.
    Column("release_pending", Boolean, nullable=False, server_default=false()),
    PrimaryKeyConstraint("merchant_id", "env", "currency"),
    one_of("env", ENVS, "wallets"),
    one_of("status", WALLET_STATUSES, "wallets"),
    partial_index("ix_wallets_release_pending", "merchant_id", "env", "currency", where="release_pending"),
)

#: What is not in its wallet's balance yet: the movements of one transaction together, whose newest is `subject_id`. A
#: suspended one is a single movement, which waits for a frozen wallet (D24) and does not count.
wallet_entries: Final = table(
    "wallet_entries",
    id_column(),
    merchant_column(),
    env_column(),
    Column("currency", String(3), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("subject_id", BigInteger, nullable=False),
    Column("suspended", Boolean, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    one_of("env", ENVS, "wallet_entries"),
    Index("ix_wallet_entries_wallet", "merchant_id", "env", "currency", "suspended"),
    partial_index("ix_wallet_entries_suspended", "id", where="suspended"),
)

#: What a wallet held before an instant that is more than a day past: no posting is dated before it any more. Kept, so
#: that nobody adds up the same postings twice (ledger/balance_checkpoints.py).
wallet_checkpoints: Final = table(
    "wallet_checkpoints",
    merchant_column(),
    env_column(),
    Column("currency", String(3), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("balance", BigInteger, nullable=False),
    PrimaryKeyConstraint("merchant_id", "env", "currency", "at"),
    one_of("env", ENVS, "wallet_checkpoints"),
)

#: One link of the tamper-evident chain over the postings: the ids of a batch, a hash of each row, and a digest that
#: includes the digest before it (ledger/hash_chain.py).
ledger_hash_chain: Final = table(
    "ledger_hash_chain",
    id_column(),
    Column("first_posting_id", BigInteger, nullable=False),
    Column("last_posting_id", BigInteger, nullable=False),
    Column("posting_ids", Text, nullable=False),
    Column("row_hashes", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("first_posting_id", name="uq_ledger_hash_chain_first_posting_id"),
    CheckConstraint("last_posting_id >= first_posting_id", name="ck_ledger_hash_chain_id_range"),
)

#: One run of the audit: how many rows it read, the last digest of the chain with the posting that it covers last, and
#: the first fault (null: none). The next audit expects the head of a clean one at the same place.
ledger_audits: Final = table(
    "ledger_audits",
    id_column(),
    Column("started_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger, nullable=False),
    Column("head", String(64)),
    Column("postings", BigInteger, nullable=False),
    Column("payments", BigInteger, nullable=False),
    Column("refunds", BigInteger, nullable=False),
    Column("fault", Text),
    Column("head_posting_id", BigInteger),
    Column("hash_chain_links", BigInteger),
)


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
