"""The first schema: tables, constraints, indexes, and the triggers that count the rows of the long lists.

Frozen: it does not import `db/tables`, which a later revision may change.
"""

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision = "v0001"
down_revision = None


def upgrade() -> None:
    _table(
        "ledger_audits",
        _id(),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=False),
        sa.Column("head", sa.String(64)),
        sa.Column("postings", sa.BigInteger(), nullable=False),
        sa.Column("payments", sa.BigInteger(), nullable=False),
        sa.Column("refunds", sa.BigInteger(), nullable=False),
        sa.Column("fault", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_ledger_audits"),
    )
    _table(
        "list_count_changes",
        _id(),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(4), nullable=False),
        sa.Column("list_name", sa.String(32), nullable=False),
        sa.Column("hour", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("delta", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_list_count_changes"),
    )
    _index("ix_list_count_changes_list_name", "list_count_changes", ["merchant_id", "env", "list_name"])
    _table(
        "ledger_hash_chain",
        _id(),
        sa.Column("first_posting_id", sa.BigInteger(), nullable=False),
        sa.Column("last_posting_id", sa.BigInteger(), nullable=False),
        sa.Column("posting_ids", sa.Text(), nullable=False),
        sa.Column("row_hashes", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("last_posting_id >= first_posting_id", name="ck_ledger_hash_chain_id_range"),
        sa.PrimaryKeyConstraint("id", name="pk_ledger_hash_chain"),
        sa.UniqueConstraint("first_posting_id", name="uq_ledger_hash_chain_first_posting_id"),
    )
    _table(
        "merchants",
        _id(),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("status IN ('active', 'pending', 'suspended')", name="ck_merchants_status"),
        sa.PrimaryKeyConstraint("id", name="pk_merchants"),
    )
    _table(
        "unmatched_callbacks",
        _id(),
        sa.Column("provider_account", sa.String(64), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("reason", sa.String(32), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_unmatched_callbacks"),
    )
    _index("ix_unmatched_callbacks_received_at", "unmatched_callbacks", ["received_at"])
    _table(
        "api_keys",
        _id(),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(4), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("preview", sa.String(16), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("revoked_at", sa.BigInteger()),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_api_keys_env"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_api_keys_merchant_id"),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("hash", name="uq_api_keys_hash"),
    )
    _index("ix_api_keys_merchant_id", "api_keys", ["merchant_id", "id"])
    _table(
        "list_counts",
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(4), nullable=False),
        sa.Column("list_name", sa.String(32), nullable=False),
        sa.Column("level", sa.String(4), nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("row_count", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("level IN ('hour', 'day', 'all')", name="ck_list_counts_level"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_list_counts_merchant_id"),
        sa.PrimaryKeyConstraint("merchant_id", "env", "list_name", "level", "bucket", "status", name="pk_list_counts"),
    )
    _table(
        "webhook_deliveries",
        _id(),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(4), nullable=False),
        _uuid("reference"),
        sa.Column("payment_id", sa.BigInteger()),
        sa.Column("event", sa.String(32), nullable=False),
        sa.Column("target", sa.String(8), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("destination", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("response_code", sa.Integer()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("delivered_at", sa.BigInteger()),
        sa.Column("last_attempt_at", sa.BigInteger()),
        sa.Column("next_attempt_at", sa.BigInteger()),
        sa.CheckConstraint(
            "(status = 'pending') = (next_attempt_at IS NOT NULL)", name="ck_webhook_deliveries_next_attempt_at"
        ),
        sa.CheckConstraint(
            "(status = 'success') = (delivered_at IS NOT NULL)", name="ck_webhook_deliveries_delivered_at"
        ),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_webhook_deliveries_env"),
        sa.CheckConstraint("status IN ('pending', 'success', 'failed')", name="ck_webhook_deliveries_status"),
        sa.CheckConstraint("target IN ('account', 'callback')", name="ck_webhook_deliveries_target"),
        sa.CheckConstraint("attempts BETWEEN 0 AND 5", name="ck_webhook_deliveries_attempts"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_webhook_deliveries_merchant_id"),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_deliveries"),
        sa.UniqueConstraint("merchant_id", "env", "reference", name="uq_webhook_deliveries_reference"),
    )
    _index(
        "ix_webhook_deliveries_next_attempt_at",
        "webhook_deliveries",
        ["next_attempt_at", "id", "destination", "merchant_id"],
        where="status = 'pending'",
    )
    _index(
        "ix_webhook_deliveries_partition_key",
        "webhook_deliveries",
        ["destination", "merchant_id", "next_attempt_at", "id"],
        where="status = 'pending'",
    )
    _index("ix_webhook_deliveries_newest", "webhook_deliveries", ["merchant_id", "env", "created_at", "id"])
    _index("ix_webhook_deliveries_payment_id", "webhook_deliveries", ["payment_id", "id"], where="status = 'pending'")
    _index(
        "ix_webhook_deliveries_exhausted",
        "webhook_deliveries",
        ["attempts", "next_attempt_at"],
        where="status = 'pending' AND attempts = 5",
    )
    _table(
        "incidents",
        _id(),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(4), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("subject_type", sa.String(8), nullable=False),
        _uuid("reference"),
        sa.Column("provider_account", sa.String(64)),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("occurrences", sa.Integer(), nullable=False),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("closed_at", sa.BigInteger()),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_incidents_env"),
        sa.CheckConstraint("subject_type IN ('payment', 'refund')", name="ck_incidents_subject_type"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_incidents_merchant_id"),
        sa.PrimaryKeyConstraint("id", name="pk_incidents"),
        sa.UniqueConstraint("merchant_id", "kind", "reference", name="uq_incidents_reference"),
    )
    _index("ix_incidents_open", "incidents", ["id"], where="closed_at IS NULL")
    _table(
        "payment_mode_overrides",
        _id(),
        sa.Column("merchant_id", sa.BigInteger()),
        sa.Column("operator", sa.String(32), nullable=False),
        sa.Column("active", sa.Boolean()),
        sa.Column("fee_percent", sa.BigInteger()),
        sa.Column("fee_fixed", sa.BigInteger()),
        sa.CheckConstraint("fee_fixed >= 0", name="ck_payment_mode_overrides_fee_fixed"),
        sa.CheckConstraint("fee_percent >= 0", name="ck_payment_mode_overrides_fee_percent"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_payment_mode_overrides_merchant_id"),
        sa.PrimaryKeyConstraint("id", name="pk_payment_mode_overrides"),
    )
    _index(
        "uq_payment_mode_overrides_all_merchants",
        "payment_mode_overrides",
        ["operator"],
        where="merchant_id IS NULL",
        unique=True,
    )
    _index(
        "uq_payment_mode_overrides_merchant_id",
        "payment_mode_overrides",
        ["merchant_id", "operator"],
        where="merchant_id IS NOT NULL",
        unique=True,
    )
    _table(
        "payment_links",
        _id(),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("max_uses", sa.BigInteger()),
        sa.Column("reserved_uses", sa.BigInteger(), nullable=False),
        sa.Column("completed_uses", sa.BigInteger(), nullable=False),
        sa.Column("starts_at", sa.BigInteger()),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("type IN ('permanent', 'limité')", name="ck_payment_links_type"),
        sa.CheckConstraint("amount > 0", name="ck_payment_links_amount"),
        sa.CheckConstraint(
            "completed_uses >= 0 AND completed_uses <= reserved_uses "
            "AND reserved_uses <= COALESCE(max_uses, reserved_uses)",
            name="ck_payment_links_uses",
        ),
        sa.CheckConstraint("max_uses >= 1", name="ck_payment_links_max_uses"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_payment_links_merchant_id"),
        sa.PrimaryKeyConstraint("id", name="pk_payment_links"),
        sa.UniqueConstraint("token", name="uq_payment_links_token"),
    )
    _index("ix_payment_links_merchant_id", "payment_links", ["merchant_id", "id"])
    _table(
        "postings",
        _id(),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(4), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("cause", sa.String(32), nullable=False),
        sa.Column("subject_id", sa.BigInteger(), nullable=False),
        sa.Column("leg", sa.String(16), nullable=False),
        sa.Column("source", sa.String(48), nullable=False),
        sa.Column("destination", sa.String(48), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_postings_env"),
        sa.CheckConstraint("amount > 0", name="ck_postings_amount"),
        sa.CheckConstraint("source <> destination", name="ck_postings_accounts"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_postings_merchant_id"),
        sa.PrimaryKeyConstraint("id", name="pk_postings"),
        sa.UniqueConstraint("merchant_id", "cause", "subject_id", "leg", name="uq_postings_cause"),
    )
    _index("ix_postings_statement", "postings", ["merchant_id", "env", "currency", "created_at", "id"])
    _table(
        "wallet_entries",
        _id(),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(4), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("subject_id", sa.BigInteger(), nullable=False),
        sa.Column("suspended", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_wallet_entries_env"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_wallet_entries_merchant_id"),
        sa.PrimaryKeyConstraint("id", name="pk_wallet_entries"),
    )
    _index("ix_wallet_entries_suspended", "wallet_entries", ["id"], where="suspended")
    _index("ix_wallet_entries_wallet", "wallet_entries", ["merchant_id", "env", "currency", "suspended"])
    _table(
        "wallets",
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(4), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("balance", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_wallets_env"),
        sa.CheckConstraint("status IN ('Actif', 'Gelé', 'Fermé')", name="ck_wallets_status"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_wallets_merchant_id"),
        sa.PrimaryKeyConstraint("merchant_id", "env", "currency", name="pk_wallets"),
    )
    _table(
        "webhook_endpoints",
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(4), nullable=False),
        sa.Column("url", sa.Text()),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_webhook_endpoints_env"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_webhook_endpoints_merchant_id"),
        sa.PrimaryKeyConstraint("merchant_id", "env", name="pk_webhook_endpoints"),
    )
    _table(
        "payments",
        _id(),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(4), nullable=False),
        _uuid("reference"),
        sa.Column("external_id", sa.Text()),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("fee_amount", sa.BigInteger(), nullable=False),
        sa.Column("total_amount", sa.BigInteger(), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("operator", sa.String(32), nullable=False),
        sa.Column("phone_number", sa.String(15)),
        sa.Column("firstname", sa.Text()),
        sa.Column("lastname", sa.Text()),
        sa.Column("email", sa.Text()),
        sa.Column("address", sa.Text()),
        sa.Column("country", sa.Text()),
        sa.Column("return_url", sa.Text()),
        sa.Column("callback_url", sa.Text()),
        sa.Column("metadata", sa.Text()),
        sa.Column("link_id", sa.BigInteger()),
        sa.Column("checkout_token", sa.String(64)),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("provider_account", sa.String(64)),
        sa.Column("provider_reference", sa.Text()),
        sa.Column("provider_data", sa.Text()),
        sa.Column("redirect_url", sa.Text()),
        sa.Column("failure_reason", sa.String(32)),
        sa.Column("next_poll_at", sa.BigInteger()),
        sa.Column("poll_count", sa.Integer(), nullable=False),
        sa.Column("lease_expires_at", sa.BigInteger()),
        sa.CheckConstraint("(status = 'pending') = (next_poll_at IS NOT NULL)", name="ck_payments_next_poll_at"),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_payments_env"),
        sa.CheckConstraint("status IN ('pending', 'succeeded', 'failed', 'refunded')", name="ck_payments_status"),
        sa.CheckConstraint("amount > 0 AND fee_amount >= 0", name="ck_payments_amount"),
        sa.CheckConstraint("total_amount = amount + fee_amount", name="ck_payments_total"),
        sa.ForeignKeyConstraint(["link_id"], ["payment_links.id"], name="fk_payments_link_id"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_payments_merchant_id"),
        sa.PrimaryKeyConstraint("id", name="pk_payments"),
        sa.UniqueConstraint("merchant_id", "env", "external_id", name="uq_payments_external_id"),
        sa.UniqueConstraint("reference", "merchant_id", "env", name="uq_payments_reference"),
    )
    _index(
        "ix_payments_next_poll_at", "payments", ["next_poll_at", "id", "provider_account"], where="status = 'pending'"
    )
    _index(
        "ix_payments_partition_key", "payments", ["provider_account", "next_poll_at", "id"], where="status = 'pending'"
    )
    _index("ix_payments_newest", "payments", ["merchant_id", "env", "created_at", "id"])
    _index(
        "ix_payments_provider_reference",
        "payments",
        ["provider_account", "provider_reference"],
        where="provider_reference IS NOT NULL",
    )
    _index("ix_payments_status", "payments", ["merchant_id", "env", "status", "created_at", "id"])
    _index(
        "uq_payments_checkout_token", "payments", ["checkout_token"], where="checkout_token IS NOT NULL", unique=True
    )
    _table(
        "refunds",
        _id(),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(4), nullable=False),
        _uuid("reference"),
        sa.Column("payment_id", sa.BigInteger(), nullable=False),
        _uuid("payment_reference"),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("processed_at", sa.BigInteger()),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("provider_account", sa.String(64)),
        sa.Column("provider_reference", sa.Text()),
        sa.Column("provider_data", sa.Text()),
        sa.Column("failure_reason", sa.String(32)),
        sa.Column("sent_at", sa.BigInteger()),
        sa.Column("next_poll_at", sa.BigInteger()),
        sa.Column("poll_count", sa.Integer(), nullable=False),
        sa.Column("lease_expires_at", sa.BigInteger()),
        sa.CheckConstraint("(status = 'pending') = (next_poll_at IS NOT NULL)", name="ck_refunds_next_poll_at"),
        sa.CheckConstraint("(status = 'pending') = (processed_at IS NULL)", name="ck_refunds_processed_at"),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_refunds_env"),
        sa.CheckConstraint("status IN ('pending', 'succeeded', 'failed')", name="ck_refunds_status"),
        sa.CheckConstraint("amount > 0", name="ck_refunds_amount"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_refunds_merchant_id"),
        sa.ForeignKeyConstraint(["payment_id"], ["payments.id"], name="fk_refunds_payment_id"),
        sa.PrimaryKeyConstraint("id", name="pk_refunds"),
        sa.UniqueConstraint("merchant_id", "payment_id", name="uq_refunds_payment_id"),
        sa.UniqueConstraint("reference", "merchant_id", "env", name="uq_refunds_reference"),
    )
    _index("ix_refunds_next_poll_at", "refunds", ["next_poll_at", "id", "provider_account"], where="status = 'pending'")
    _index(
        "ix_refunds_partition_key", "refunds", ["provider_account", "next_poll_at", "id"], where="status = 'pending'"
    )
    _index("ix_refunds_newest", "refunds", ["merchant_id", "env", "created_at", "id"])
    _index(
        "ix_refunds_provider_reference",
        "refunds",
        ["provider_account", "provider_reference"],
        where="provider_reference IS NOT NULL",
    )
    _count_rows()


def _id() -> sa.Column[Any]:
    """A number that the database gives; INTEGER on SQLite, where only that is an alias of the rowid."""
    return sa.Column(
        "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
    )


def _uuid(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Uuid(as_uuid=False).with_variant(sa.String(36), "sqlite"), nullable=False)


def _table(name: str, *items: Any) -> None:
    # AUTOINCREMENT: SQLite never uses a number again, not even that of a last row that was rolled back.
    numbered = any(isinstance(item, sa.Column) and item.name == "id" for item in items)
    op.create_table(name, *items, sqlite_autoincrement=numbered)


def _index(name: str, table: str, columns: Sequence[str], *, where: str | None = None, unique: bool = False) -> None:
    condition = None if where is None else sa.text(where)
    op.create_index(name, table, columns, unique=unique, postgresql_where=condition, sqlite_where=condition)


_HOUR: Final = 3_600_000_000
#: Table → the SQL expression of the status its rows are counted under; {row} is NEW or OLD. '' : not by status.
_COUNTED: Final = {"payments": "{row}.status", "refunds": "''", "webhook_deliveries": "''"}


def _count_rows() -> None:
    """Triggers that append to `list_count_changes` whenever a long list gains or loses a row, or a row changes its
    status. Triggers and not code: creating a payment stays one statement, and a row changed by hand is counted too.
    """
    for table, status in _COUNTED.items():
        _trigger(table, "AFTER INSERT", "", _change(table, status, "NEW", 1))
        _trigger(table, "AFTER DELETE", "", _change(table, status, "OLD", -1))
        if "status" in status:
            both = _change(table, status, "OLD", -1) + _change(table, status, "NEW", 1)
            _trigger(table, "AFTER UPDATE OF status", "WHEN (OLD.status <> NEW.status) ", both)


def _trigger(table: str, event: str, condition: str, body: str) -> None:
    name = f"count_{table}_{event.split()[1].lower()}"
    created = f"CREATE TRIGGER {name} {event} ON {table} FOR EACH ROW {condition}"
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NULL; END $$")
        op.execute(f"{created}EXECUTE FUNCTION {name}()")
    else:
        op.execute(f"{created}BEGIN {body} END")


def _change(table: str, status: str, row: str, delta: int) -> str:
    return (  # Every part is a constant of this file.
        "INSERT INTO list_count_changes (merchant_id, env, list_name, hour, status, delta) "  # noqa: S608
        f"VALUES ({row}.merchant_id, {row}.env, '{table}', {row}.created_at / {_HOUR}, "
        f"{status.format(row=row)}, {delta}); "
    )
