"""The tables, with named constraints. Column order of `payments`, `refunds`, `payment_links`, `deliveries` and
`webhook_endpoints` is the field order of their class in `domain/`, so a row unpacks into it (held by a test).

Money is BIGINT hundredths, time BIGINT microseconds since the epoch (docs/architecture.md, "Units").
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.schema import SchemaItem

from guichet.domain import merchants as merchant_rules
from guichet.domain import payment_links as links
from guichet.domain import payments as rules
from guichet.domain import posting_rules as ledger
from guichet.domain.events import DELIVERY_STATUSES, DELIVERY_TARGETS, MAX_ATTEMPTS

metadata: Final = MetaData(
    naming_convention={"pk": "pk_%(table_name)s", "fk": "fk_%(table_name)s_%(column_0_name)s"},
)

#: An id numbered by the database itself (D28); INTEGER on SQLite, where only that is an alias of the rowid.
_ID: Final = BigInteger().with_variant(Integer(), "sqlite")
#: Asked for and answered as text by both drivers.
_UUID: Final = Uuid(as_uuid=False).with_variant(String(36), "sqlite")


def _id() -> Column[int]:
    return Column("id", _ID, Identity(), primary_key=True)


def _merchant() -> Column[int]:
    return Column("merchant_id", BigInteger, ForeignKey("merchants.id"), nullable=False)


def _env() -> Column[str]:
    return Column("env", String(4), nullable=False)


def _one_of(column: str, values: tuple[str, ...], table: str) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"ck_{table}_{column}")


def _queue(table: str, due: str, *partition_key: str) -> tuple[Index, Index]:
    """The indexes that `work_queue.WorkQueue` reads: pending rows by their due column, and by partition key."""
    by_time, by_key = f"ix_{table}_{due}", f"ix_{table}_partition_key"
    pending = text("status = 'pending'")
    return (
        Index(by_time, due, "id", *partition_key, postgresql_where=pending, sqlite_where=pending),
        Index(by_key, *partition_key, due, "id", postgresql_where=pending, sqlite_where=pending),
    )


def _table(name: str, *items: SchemaItem) -> Table:
    # AUTOINCREMENT: SQLite never hands out a number again, not even the one of a row rolled back at the top.
    return Table(
        name, metadata, *items, sqlite_autoincrement=any(isinstance(i, Column) and i.name == "id" for i in items)
    )


merchants: Final = _table(
    "merchants",
    _id(),
    Column("name", Text, nullable=False),
    Column("status", String(16), nullable=False),
    Column("currency", String(3), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    _one_of("status", merchant_rules.MERCHANT_STATUSES, "merchants"),
)

api_keys: Final = _table(
    "api_keys",
    _id(),
    _merchant(),
    _env(),
    Column("hash", String(64), nullable=False),
    Column("preview", String(16), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
    UniqueConstraint("hash", name="uq_api_keys_hash"),
    _one_of("env", merchant_rules.ENVS, "api_keys"),
    Index("ix_api_keys_merchant_id", "merchant_id", "id"),
)

webhook_endpoints: Final = _table(
    "webhook_endpoints",
    _merchant(),
    _env(),
    Column("url", Text),
    Column("secret", Text, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("merchant_id", "env"),
    _one_of("env", merchant_rules.ENVS, "webhook_endpoints"),
)

payment_mode_overrides: Final = _table(
    "payment_mode_overrides",
    _id(),
    Column("merchant_id", BigInteger, ForeignKey("merchants.id")),
    Column("operator", String(32), nullable=False),
    Column("active", Boolean),
    Column("fee_percent", BigInteger),
    Column("fee_fixed", BigInteger),
    CheckConstraint("fee_percent >= 0", name="ck_payment_mode_overrides_fee_percent"),
    CheckConstraint("fee_fixed >= 0", name="ck_payment_mode_overrides_fee_fixed"),
    Index(
        "uq_payment_mode_overrides_all_merchants",
        "operator",
        unique=True,
        postgresql_where=text("merchant_id IS NULL"),
        sqlite_where=text("merchant_id IS NULL"),
    ),
    Index(
        "uq_payment_mode_overrides_merchant_id",
        "merchant_id",
        "operator",
        unique=True,
        postgresql_where=text("merchant_id IS NOT NULL"),
        sqlite_where=text("merchant_id IS NOT NULL"),
    ),
)

payment_links: Final = _table(
    "payment_links",
    _id(),
    _merchant(),
    Column("token", String(64), nullable=False),
    Column("type", String(16), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("currency", String(3), nullable=False),
    Column("description", Text, nullable=False),
    Column("max_uses", BigInteger),
    Column("reserved_uses", BigInteger, nullable=False),
    Column("completed_uses", BigInteger, nullable=False),
    Column("starts_at", BigInteger),
    Column("expires_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("token", name="uq_payment_links_token"),
    _one_of("type", links.LINK_TYPES, "payment_links"),
    CheckConstraint("amount > 0", name="ck_payment_links_amount"),
    CheckConstraint("max_uses >= 1", name="ck_payment_links_max_uses"),
    CheckConstraint(
        "completed_uses >= 0 AND completed_uses <= reserved_uses "
        "AND reserved_uses <= COALESCE(max_uses, reserved_uses)",
        name="ck_payment_links_uses",
    ),
    Index("ix_payment_links_merchant_id", "merchant_id", "id"),
)

payments: Final = _table(
    "payments",
    _id(),
    _merchant(),
    _env(),
    Column("reference", _UUID, nullable=False),
    Column("external_id", Text),
    Column("status", String(16), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("fee_amount", BigInteger, nullable=False),
    Column("total_amount", BigInteger, nullable=False),
    Column("currency", String(3), nullable=False),
    Column("description", Text, nullable=False),
    Column("operator", String(32), nullable=False),
    Column("phone_number", String(15)),
    Column("firstname", Text),
    Column("lastname", Text),
    Column("email", Text),
    Column("address", Text),
    Column("country", Text),
    Column("return_url", Text),
    Column("callback_url", Text),
    Column("metadata", Text),
    Column("link_id", BigInteger, ForeignKey("payment_links.id")),
    Column("checkout_token", String(64)),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("provider_account", String(64)),
    Column("provider_reference", Text),
    Column("provider_data", Text),
    Column("redirect_url", Text),
    Column("failure_reason", String(32)),
    Column("next_poll_at", BigInteger),
    Column("poll_count", Integer, nullable=False),
    Column("lease_expires_at", BigInteger),
    UniqueConstraint("reference", "merchant_id", "env", name="uq_payments_reference"),
    UniqueConstraint("merchant_id", "env", "external_id", name="uq_payments_external_id"),
    _one_of("env", merchant_rules.ENVS, "payments"),
    _one_of("status", rules.PAYMENT_STATUSES, "payments"),
    CheckConstraint("amount > 0 AND fee_amount >= 0", name="ck_payments_amount"),
    CheckConstraint("total_amount = amount + fee_amount", name="ck_payments_total"),
    CheckConstraint("(status = 'pending') = (next_poll_at IS NOT NULL)", name="ck_payments_next_poll_at"),
    Index("ix_payments_newest", "merchant_id", "env", "created_at", "id"),
    Index("ix_payments_status", "merchant_id", "env", "status", "created_at", "id"),
    *_queue("payments", "next_poll_at", "provider_account"),
    Index(
        "uq_payments_checkout_token",
        "checkout_token",
        unique=True,
        postgresql_where=text("checkout_token IS NOT NULL"),
        sqlite_where=text("checkout_token IS NOT NULL"),
    ),
    Index(
        "ix_payments_provider_reference",
        "provider_account",
        "provider_reference",
        postgresql_where=text("provider_reference IS NOT NULL"),
        sqlite_where=text("provider_reference IS NOT NULL"),
    ),
)

refunds: Final = _table(
    "refunds",
    _id(),
    _merchant(),
    _env(),
    Column("reference", _UUID, nullable=False),
    Column("payment_id", BigInteger, ForeignKey("payments.id"), nullable=False),
    Column("payment_reference", _UUID, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("currency", String(3), nullable=False),
    Column("status", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("processed_at", BigInteger),
    Column("held", Boolean, nullable=False),
    Column("provider_account", String(64)),
    Column("provider_reference", Text),
    Column("provider_data", Text),
    Column("failure_reason", String(32)),
    Column("sent_at", BigInteger),
    Column("next_poll_at", BigInteger),
    Column("poll_count", Integer, nullable=False),
    Column("lease_expires_at", BigInteger),
    UniqueConstraint("merchant_id", "payment_id", name="uq_refunds_payment_id"),
    UniqueConstraint("reference", "merchant_id", "env", name="uq_refunds_reference"),
    _one_of("env", merchant_rules.ENVS, "refunds"),
    _one_of("status", rules.REFUND_STATUSES, "refunds"),
    CheckConstraint("amount > 0", name="ck_refunds_amount"),
    CheckConstraint("(status = 'pending') = (processed_at IS NULL)", name="ck_refunds_processed_at"),
    CheckConstraint("(status = 'pending') = (next_poll_at IS NOT NULL)", name="ck_refunds_next_poll_at"),
    Index("ix_refunds_newest", "merchant_id", "env", "created_at", "id"),
    Index(
        "ix_refunds_provider_reference",
        "provider_account",
        "provider_reference",
        postgresql_where=text("provider_reference IS NOT NULL"),
        sqlite_where=text("provider_reference IS NOT NULL"),
    ),
    *_queue("refunds", "next_poll_at", "provider_account"),
)

webhook_deliveries: Final = _table(
    "webhook_deliveries",
    _id(),
    _merchant(),
    _env(),
    Column("reference", _UUID, nullable=False),
    Column("payment_id", BigInteger),
    Column("event", String(32), nullable=False),
    Column("target", String(8), nullable=False),
    Column("url", Text, nullable=False),
    Column("destination", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("status", String(8), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("response_code", Integer),
    Column("created_at", BigInteger, nullable=False),
    Column("delivered_at", BigInteger),
    Column("last_attempt_at", BigInteger),
    Column("next_attempt_at", BigInteger),
    UniqueConstraint("merchant_id", "env", "reference", name="uq_webhook_deliveries_reference"),
    _one_of("env", merchant_rules.ENVS, "webhook_deliveries"),
    _one_of("status", DELIVERY_STATUSES, "webhook_deliveries"),
    _one_of("target", DELIVERY_TARGETS, "webhook_deliveries"),
    CheckConstraint(f"attempts BETWEEN 0 AND {MAX_ATTEMPTS}", name="ck_webhook_deliveries_attempts"),
    CheckConstraint("(status = 'success') = (delivered_at IS NOT NULL)", name="ck_webhook_deliveries_delivered_at"),
    CheckConstraint(
        "(status = 'pending') = (next_attempt_at IS NOT NULL)", name="ck_webhook_deliveries_next_attempt_at"
    ),
    Index("ix_webhook_deliveries_newest", "merchant_id", "env", "created_at", "id"),
    *_queue("webhook_deliveries", "next_attempt_at", "destination", "merchant_id"),
    Index(
        "ix_webhook_deliveries_exhausted",
        "attempts",
        "next_attempt_at",
        postgresql_where=text(f"status = 'pending' AND attempts = {MAX_ATTEMPTS}"),
        sqlite_where=text(f"status = 'pending' AND attempts = {MAX_ATTEMPTS}"),
    ),
    Index(
        "ix_webhook_deliveries_payment_id",
        "payment_id",
        "id",
        postgresql_where=text("status = 'pending'"),
        sqlite_where=text("status = 'pending'"),
    ),
)

postings: Final = _table(
    "postings",
    _id(),
    _merchant(),
    _env(),
    Column("currency", String(3), nullable=False),
    Column("cause", String(32), nullable=False),
    Column("subject_id", BigInteger, nullable=False),
    Column("leg", String(16), nullable=False),
    Column("source", String(48), nullable=False),
    Column("destination", String(48), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("merchant_id", "cause", "subject_id", "leg", name="uq_postings_cause"),
    _one_of("env", merchant_rules.ENVS, "postings"),
    CheckConstraint("amount > 0", name="ck_postings_amount"),
    CheckConstraint("source <> destination", name="ck_postings_accounts"),
    Index("ix_postings_statement", "merchant_id", "env", "currency", "created_at", "id"),
)

wallets: Final = _table(
    "wallets",
    _merchant(),
    _env(),
    Column("currency", String(3), nullable=False),
    Column("status", String(8), nullable=False),
    Column("balance", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("merchant_id", "env", "currency"),
    _one_of("env", merchant_rules.ENVS, "wallets"),
    _one_of("status", ledger.WALLET_STATUSES, "wallets"),
)

#: A movement not yet folded into its wallet. `suspended` ones wait for a frozen wallet (D24) and do not count.
wallet_entries: Final = _table(
    "wallet_entries",
    _id(),
    _merchant(),
    _env(),
    Column("currency", String(3), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("subject_id", BigInteger, nullable=False),
    Column("suspended", Boolean, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    _one_of("env", merchant_rules.ENVS, "wallet_entries"),
    Index("ix_wallet_entries_wallet", "merchant_id", "env", "currency", "suspended"),
    Index(
        "ix_wallet_entries_suspended",
        "id",
        postgresql_where=text("suspended"),
        sqlite_where=text("suspended"),
    ),
)

#: What a person must look at: an operator that contradicts us, a payment nobody can settle. Open until `closed_at`.
incidents: Final = _table(
    "incidents",
    _id(),
    _merchant(),
    _env(),
    Column("kind", String(32), nullable=False),
    Column("subject_type", String(8), nullable=False),
    Column("reference", _UUID, nullable=False),
    Column("provider_account", String(64)),
    Column("detail", Text, nullable=False),
    Column("occurrences", Integer, nullable=False),
    Column("opened_at", BigInteger, nullable=False),
    Column("last_seen_at", BigInteger, nullable=False),
    Column("closed_at", BigInteger),
    UniqueConstraint("merchant_id", "kind", "reference", name="uq_incidents_reference"),
    _one_of("env", merchant_rules.ENVS, "incidents"),
    _one_of("subject_type", rules.SUBJECT_TYPES, "incidents"),
    Index(
        "ix_incidents_open", "id", postgresql_where=text("closed_at IS NULL"), sqlite_where=text("closed_at IS NULL")
    ),
)

#: Notifications of operators that match nothing of ours: kept for a person until they are old, never believed.
unmatched_callbacks: Final = _table(
    "unmatched_callbacks",
    _id(),
    Column("provider_account", String(64), nullable=False),
    Column("path", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("reason", String(32), nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Index("ix_unmatched_callbacks_received_at", "received_at"),
)

#: A tamper-evident chain over the postings, batch by batch: which ids, a mark of each row, and a digest that includes
#: the digest before it (ledger/hash_chain.py).
ledger_hash_chain: Final = _table(
    "ledger_hash_chain",
    _id(),
    Column("first_posting_id", BigInteger, nullable=False),
    Column("last_posting_id", BigInteger, nullable=False),
    Column("posting_ids", Text, nullable=False),
    Column("row_hashes", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("first_posting_id", name="uq_ledger_hash_chain_first_posting_id"),
    CheckConstraint("last_posting_id >= first_posting_id", name="ck_ledger_hash_chain_id_range"),
)

#: Every run of the audit: what it read, the head of the chain as it found it, and the first fault (None: clean).
ledger_audits: Final = _table(
    "ledger_audits",
    _id(),
    Column("started_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger, nullable=False),
    Column("head", String(64)),
    Column("postings", BigInteger, nullable=False),
    Column("payments", BigInteger, nullable=False),
    Column("refunds", BigInteger, nullable=False),
    Column("fault", Text),
)

#: How many rows the long lists hold, by hour and by day of creation, so that a total and a page far down cost the same
#: however many rows there are. Triggers (made by the first migration) append what changed to `list_count_changes`;
#: the worker adds it up in `list_counts`. `status` is empty for lists that are not filtered by it.
list_counts: Final = _table(
    "list_counts",
    _merchant(),
    _env(),
    Column("list_name", String(32), nullable=False),
    Column("level", String(4), nullable=False),
    Column("bucket", Integer, nullable=False),
    Column("status", String(16), nullable=False),
    Column("row_count", BigInteger, nullable=False),
    PrimaryKeyConstraint("merchant_id", "env", "list_name", "level", "bucket", "status", name="pk_list_counts"),
    _one_of("level", ("hour", "day", "all"), "list_counts"),
)

list_count_changes: Final = _table(
    "list_count_changes",
    _id(),
    Column("merchant_id", BigInteger, nullable=False),
    _env(),
    Column("list_name", String(32), nullable=False),
    Column("hour", Integer, nullable=False),
    Column("status", String(16), nullable=False),
    Column("delta", Integer, nullable=False),
    Index("ix_list_count_changes_list_name", "merchant_id", "env", "list_name"),
)
