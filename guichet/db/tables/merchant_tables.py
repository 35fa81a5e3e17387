"""The tables of merchants: accounts, keys, webhook endpoints, what the staff changed in the catalogue, what the staff
keep in a merchant's file, and the exports that its team asked for."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    String,
    Text,
    UniqueConstraint,
    false,
)

from guichet.db.tables.columns import (
    env_column,
    id_column,
    merchant_column,
    one_of,
    partial_index,
    queue_indexes,
    table,
)
from guichet.domain.accounts import USER_LANGUAGES
from guichet.domain.documents import DOCUMENT_TYPES, MAX_DOCUMENT
from guichet.domain.exports import EXPORT_FORMATS, EXPORT_KINDS, EXPORT_STATUSES
from guichet.domain.merchants import ENVS, MERCHANT_STATUSES

merchants: Final = table(
    "merchants",
    id_column(),
    Column("name", Text, nullable=False),
    Column("status", String(16), nullable=False),
    Column("currency", String(3), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("time_zone", String(64)),
    Column("rate_limit", Integer),
    Column("payment_limit", BigInteger),
    Column("daily_limit", BigInteger),
    Column("is_house", Boolean, nullable=False, server_default=false()),
    one_of("status", MERCHANT_STATUSES, "merchants"),
    partial_index("ix_merchants_pending", "id", where="status = 'pending'"),
    partial_index("uq_merchants_house", "is_house", where="is_house", unique=True),
)

api_keys: Final = table(
    "api_keys",
    id_column(),
    merchant_column(),
    env_column(),
    Column("hash", String(64), nullable=False),
    Column("preview", String(16), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
    Column("last_used_at", BigInteger),
    Column("scopes", Integer, nullable=False, server_default="-1"),
    Column("networks", Text),
    Column("secret_read_at", BigInteger),
    Column("owners_mailed_at", BigInteger),
    Column("name", String(60)),
    CheckConstraint("scopes = -1 OR scopes > 0", name="ck_api_keys_scopes"),
    CheckConstraint("env = 'live' OR networks IS NULL", name="ck_api_keys_networks"),
    UniqueConstraint("hash", name="uq_api_keys_hash"),
    one_of("env", ENVS, "api_keys"),
    Index("ix_api_keys_merchant_id", "merchant_id", "id"),
)

#: What a live key did, for the team's activity (`merchants/key_acts.py`). `after_number`: of the last entry of the
#: audit log at that time, which is where the row stands among the entries.
key_acts: Final = table(
    "key_acts",
    id_column(),
    merchant_column(),
    Column("key_id", BigInteger, ForeignKey("api_keys.id"), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("after_number", BigInteger, nullable=False),
    Column("action", String(48), nullable=False),
    Column("detail", Text),
    Index("ix_key_acts_place", "merchant_id", "after_number", "id"),
)

#: One request of a merchant's key, kept for a week (`merchants/request_log.py`). Without foreign keys: it is written in
#: large batches, and neither merchants nor keys are ever deleted. `duration` is in microseconds.
api_requests: Final = table(
    "api_requests",
    id_column(),
    Column("merchant_id", BigInteger, nullable=False),
    env_column(),
    Column("key_id", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("method", String(8), nullable=False),
    Column("path", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("duration", BigInteger, nullable=False),
    Column("error_code", String(32)),
    one_of("env", ENVS, "api_requests"),
    Index("ix_api_requests_newest", "merchant_id", "env", "id"),
)

#: The `Idempotency-Key` of a request that created something (`merchants/idempotency.py`). Without foreign keys, as
#: above.
idempotency_keys: Final = table(
    "idempotency_keys",
    id_column(),
    Column("merchant_id", BigInteger, nullable=False),
    env_column(),
    Column("route", String(48), nullable=False),
    Column("key", String(255), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("resource", String(36), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("merchant_id", "env", "route", "key", name="uq_idempotency_keys_key"),
    one_of("env", ENVS, "idempotency_keys"),
)

webhook_endpoints: Final = table(
    "webhook_endpoints",
    merchant_column(),
    env_column(),
    Column("url", Text),
    Column("secret", Text, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("old_secret", Text),
    Column("old_secret_until", BigInteger),
    PrimaryKeyConstraint("merchant_id", "env"),
    one_of("env", ENVS, "webhook_endpoints"),
)

payment_mode_overrides: Final = table(
    "payment_mode_overrides",
    id_column(),
    Column("merchant_id", BigInteger, ForeignKey("merchants.id")),
    Column("operator", String(32), nullable=False),
    Column("active", Boolean),
    Column("fee_percent", BigInteger),
    Column("fee_fixed", BigInteger),
    CheckConstraint("fee_percent >= 0", name="ck_payment_mode_overrides_fee_percent"),
    CheckConstraint("fee_fixed >= 0", name="ck_payment_mode_overrides_fee_fixed"),
    partial_index(
        "uq_payment_mode_overrides_all_merchants",
        "operator",
        unique=True,
        where="merchant_id IS NULL",
    ),
    partial_index(
        "uq_payment_mode_overrides_merchant_id",
        "merchant_id",
        "operator",
        unique=True,
        where="merchant_id IS NOT NULL",
    ),
)

#: What the staff wrote about a merchant. Rows are never changed.
merchant_notes: Final = table(
    "merchant_notes",
    id_column(),
    merchant_column(),
    Column("author", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_merchant_notes_merchant_id", "merchant_id", "id"),
)

merchant_documents: Final = table(
    "merchant_documents",
    id_column(),
    merchant_column(),
    Column("name", Text, nullable=False),
    Column("media_type", String(32), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("uploaded_by", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("merchant_id", "sha256", name="uq_merchant_documents_sha256"),
    one_of("media_type", DOCUMENT_TYPES, "merchant_documents"),
    CheckConstraint(f"size BETWEEN 1 AND {MAX_DOCUMENT}", name="ck_merchant_documents_size"),
)

#: The content of a document in order, each part encrypted for itself, so that neither side holds two copies of it.
merchant_document_chunks: Final = table(
    "merchant_document_chunks",
    Column("document_id", BigInteger, ForeignKey("merchant_documents.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("content", Text, nullable=False),
    PrimaryKeyConstraint("document_id", "number"),
)


#: `since` and `until` are inclusive. A `direct` export is written while it is downloaded; a `pending` one waits for the
#: worker, whose file can be downloaded until `expires_at`. `reached_at`: up to where in the period rows are written.
#: `filters`: what the list of payments was narrowed to (`domain/exports.py`).
exports: Final = table(
    "exports",
    id_column(),
    merchant_column(),
    env_column(),
    Column("user_id", BigInteger, ForeignKey("users.id"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("format", String(8), nullable=False),
    Column("currency", String(3)),
    Column("language", String(2), nullable=False),
    Column("time_zone", Text, nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("until", BigInteger, nullable=False),
    Column("status", String(8), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("reached_at", BigInteger),
    Column("row_count", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("filters", Text),
    one_of("env", ENVS, "exports"),
    one_of("kind", EXPORT_KINDS, "exports"),
    one_of("format", EXPORT_FORMATS, "exports"),
    one_of("language", USER_LANGUAGES, "exports"),
    one_of("status", EXPORT_STATUSES, "exports"),
    CheckConstraint("since <= until", name="ck_exports_period"),
    CheckConstraint("(kind = 'movements') = (currency IS NOT NULL)", name="ck_exports_currency"),
    CheckConstraint("(status = 'pending') = (due_at IS NOT NULL)", name="ck_exports_due_at"),
    Index("ix_exports_newest", "merchant_id", "env", "id"),
    partial_index("ix_exports_prepared", "merchant_id", "expires_at", where="status IN ('pending', 'ready')"),
    *queue_indexes("exports", "due_at", "merchant_id"),
)

#: A piece of a prepared file, encrypted; pruned a day after it was written.
export_chunks: Final = table(
    "export_chunks",
    id_column(),
    Column("export_id", BigInteger, ForeignKey("exports.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("content", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("export_id", "number", name="uq_export_chunks_number"),
)
