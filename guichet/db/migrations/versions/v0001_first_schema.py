"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "audits",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=False),
        sa.Column("head", sa.String(length=64), nullable=True),
        sa.Column("postings", sa.BigInteger(), nullable=False),
        sa.Column("payments", sa.BigInteger(), nullable=False),
        sa.Column("refunds", sa.BigInteger(), nullable=False),
        sa.Column("fault", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audits")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "count_entries",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(length=4), nullable=False),
        sa.Column("list", sa.String(length=16), nullable=False),
        sa.Column("hour", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("delta", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_count_entries")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_count_entries_list", "count_entries", ["merchant_id", "env", "list"], unique=False)
    op.create_table(
        "ledger_seals",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("first_id", sa.BigInteger(), nullable=False),
        sa.Column("last_id", sa.BigInteger(), nullable=False),
        sa.Column("ids", sa.Text(), nullable=False),
        sa.Column("marks", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("last_id >= first_id", name="ck_ledger_seals_range"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_seals")),
        sa.UniqueConstraint("first_id", name="uq_ledger_seals_first_id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "merchants",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("status IN ('active', 'pending', 'suspended')", name="ck_merchants_status"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_merchants")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "stray_callbacks",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("connection", sa.String(length=64), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("reason", sa.String(length=32), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stray_callbacks")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_stray_callbacks_received_at", "stray_callbacks", ["received_at"], unique=False)
    op.create_table(
        "api_keys",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(length=4), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("preview", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_api_keys_env"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_api_keys_merchant_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("hash", name="uq_api_keys_hash"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_api_keys_merchant_id", "api_keys", ["merchant_id", "id"], unique=False)
    op.create_table(
        "counts",
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(length=4), nullable=False),
        sa.Column("list", sa.String(length=16), nullable=False),
        sa.Column("level", sa.String(length=4), nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("level IN ('hour', 'day', 'all')", name="ck_counts_level"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_counts_merchant_id")),
        sa.PrimaryKeyConstraint("merchant_id", "env", "list", "level", "bucket", "status", name="pk_counts"),
        sqlite_autoincrement=False,
    )
    op.create_table(
        "deliveries",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(length=4), nullable=False),
        sa.Column("reference", sa.Uuid(as_uuid=False).with_variant(sa.String(length=36), "sqlite"), nullable=False),
        sa.Column("payment_id", sa.BigInteger(), nullable=True),
        sa.Column("event", sa.String(length=32), nullable=False),
        sa.Column("target", sa.String(length=8), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("destination", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=8), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("response_code", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("delivered_at", sa.BigInteger(), nullable=True),
        sa.Column("answered_at", sa.BigInteger(), nullable=True),
        sa.Column("due_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("(status = 'pending') = (due_at IS NOT NULL)", name="ck_deliveries_due"),
        sa.CheckConstraint("(status = 'success') = (delivered_at IS NOT NULL)", name="ck_deliveries_delivered_at"),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_deliveries_env"),
        sa.CheckConstraint("status IN ('pending', 'success', 'failed')", name="ck_deliveries_status"),
        sa.CheckConstraint("target IN ('account', 'callback')", name="ck_deliveries_target"),
        sa.CheckConstraint("attempts BETWEEN 0 AND 5", name="ck_deliveries_attempts"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_deliveries_merchant_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("merchant_id", "env", "reference", name="uq_deliveries_reference"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_deliveries_due",
        "deliveries",
        ["due_at", "id"],
        unique=False,
        postgresql_where=sa.text("status = 'pending'"),
        sqlite_where=sa.text("status = 'pending'"),
    )
    op.create_index("ix_deliveries_newest", "deliveries", ["merchant_id", "env", "created_at", "id"], unique=False)
    op.create_index(
        "ix_deliveries_order",
        "deliveries",
        ["payment_id", "id"],
        unique=False,
        postgresql_where=sa.text("status = 'pending'"),
        sqlite_where=sa.text("status = 'pending'"),
    )
    op.create_table(
        "incidents",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(length=4), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.String(length=8), nullable=False),
        sa.Column("reference", sa.Uuid(as_uuid=False).with_variant(sa.String(length=36), "sqlite"), nullable=False),
        sa.Column("connection", sa.String(length=64), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("seen", sa.Integer(), nullable=False),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_incidents_env"),
        sa.CheckConstraint("subject IN ('payment', 'refund')", name="ck_incidents_subject"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_incidents_merchant_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_incidents")),
        sa.UniqueConstraint("merchant_id", "kind", "reference", name="uq_incidents_reference"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_incidents_open",
        "incidents",
        ["id"],
        unique=False,
        postgresql_where=sa.text("closed_at IS NULL"),
        sqlite_where=sa.text("closed_at IS NULL"),
    )
    op.create_table(
        "mode_overrides",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("merchant_id", sa.BigInteger(), nullable=True),
        sa.Column("operator", sa.String(length=32), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=True),
        sa.Column("fee_percent", sa.BigInteger(), nullable=True),
        sa.Column("fee_fixed", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("fee_fixed >= 0", name="ck_mode_overrides_fee_fixed"),
        sa.CheckConstraint("fee_percent >= 0", name="ck_mode_overrides_fee_percent"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_mode_overrides_merchant_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_mode_overrides")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_mode_overrides_everybody",
        "mode_overrides",
        ["operator"],
        unique=True,
        postgresql_where=sa.text("merchant_id IS NULL"),
        sqlite_where=sa.text("merchant_id IS NULL"),
    )
    op.create_index(
        "uq_mode_overrides_merchant",
        "mode_overrides",
        ["merchant_id", "operator"],
        unique=True,
        postgresql_where=sa.text("merchant_id IS NOT NULL"),
        sqlite_where=sa.text("merchant_id IS NOT NULL"),
    )
    op.create_table(
        "payment_links",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("token", sa.String(length=64), nullable=False),
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("max_uses", sa.BigInteger(), nullable=True),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.Column("completed", sa.BigInteger(), nullable=False),
        sa.Column("starts_at", sa.BigInteger(), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("type IN ('permanent', 'limité')", name="ck_payment_links_type"),
        sa.CheckConstraint("amount > 0", name="ck_payment_links_amount"),
        sa.CheckConstraint(
            "completed >= 0 AND completed <= reserved AND reserved <= COALESCE(max_uses, reserved)",
            name="ck_payment_links_uses",
        ),
        sa.CheckConstraint("max_uses >= 1", name="ck_payment_links_max_uses"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_payment_links_merchant_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_payment_links")),
        sa.UniqueConstraint("token", name="uq_payment_links_token"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_payment_links_merchant_id", "payment_links", ["merchant_id", "id"], unique=False)
    op.create_table(
        "postings",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(length=4), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("cause", sa.String(length=32), nullable=False),
        sa.Column("subject_id", sa.BigInteger(), nullable=False),
        sa.Column("leg", sa.String(length=16), nullable=False),
        sa.Column("source", sa.String(length=48), nullable=False),
        sa.Column("destination", sa.String(length=48), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_postings_env"),
        sa.CheckConstraint("amount > 0", name="ck_postings_amount"),
        sa.CheckConstraint("source <> destination", name="ck_postings_accounts"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_postings_merchant_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_postings")),
        sa.UniqueConstraint("merchant_id", "cause", "subject_id", "leg", name="uq_postings_cause"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_postings_statement", "postings", ["merchant_id", "env", "currency", "created_at", "id"], unique=False
    )
    op.create_table(
        "wallet_entries",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(length=4), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("subject_id", sa.BigInteger(), nullable=False),
        sa.Column("suspended", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_wallet_entries_env"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_wallet_entries_merchant_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_wallet_entries")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_wallet_entries_suspended",
        "wallet_entries",
        ["id"],
        unique=False,
        postgresql_where=sa.text("suspended"),
        sqlite_where=sa.text("suspended"),
    )
    op.create_index(
        "ix_wallet_entries_wallet", "wallet_entries", ["merchant_id", "env", "currency", "suspended"], unique=False
    )
    op.create_table(
        "wallets",
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(length=4), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("status", sa.String(length=8), nullable=False),
        sa.Column("balance", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_wallets_env"),
        sa.CheckConstraint("status IN ('Actif', 'Gelé', 'Fermé')", name="ck_wallets_status"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_wallets_merchant_id")),
        sa.PrimaryKeyConstraint("merchant_id", "env", "currency", name=op.f("pk_wallets")),
        sqlite_autoincrement=False,
    )
    op.create_table(
        "webhook_endpoints",
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(length=4), nullable=False),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_webhook_endpoints_env"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_webhook_endpoints_merchant_id")),
        sa.PrimaryKeyConstraint("merchant_id", "env", name=op.f("pk_webhook_endpoints")),
        sqlite_autoincrement=False,
    )
    op.create_table(
        "payments",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(length=4), nullable=False),
        sa.Column("reference", sa.Uuid(as_uuid=False).with_variant(sa.String(length=36), "sqlite"), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("fee_amount", sa.BigInteger(), nullable=False),
        sa.Column("total_amount", sa.BigInteger(), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("operator", sa.String(length=32), nullable=False),
        sa.Column("phone_number", sa.String(length=15), nullable=True),
        sa.Column("firstname", sa.Text(), nullable=True),
        sa.Column("lastname", sa.Text(), nullable=True),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("country", sa.Text(), nullable=True),
        sa.Column("return_url", sa.Text(), nullable=True),
        sa.Column("callback_url", sa.Text(), nullable=True),
        sa.Column("metadata", sa.Text(), nullable=True),
        sa.Column("link_id", sa.BigInteger(), nullable=True),
        sa.Column("checkout_token", sa.String(length=64), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("connection", sa.String(length=64), nullable=True),
        sa.Column("provider_ref", sa.Text(), nullable=True),
        sa.Column("provider_memo", sa.Text(), nullable=True),
        sa.Column("redirect_url", sa.Text(), nullable=True),
        sa.Column("failure", sa.String(length=32), nullable=True),
        sa.Column("due_at", sa.BigInteger(), nullable=True),
        sa.Column("asked", sa.Integer(), nullable=False),
        sa.Column("leased_until", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("(status = 'pending') = (due_at IS NOT NULL)", name="ck_payments_due"),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_payments_env"),
        sa.CheckConstraint("status IN ('pending', 'succeeded', 'failed', 'refunded')", name="ck_payments_status"),
        sa.CheckConstraint("amount > 0 AND fee_amount >= 0", name="ck_payments_amount"),
        sa.CheckConstraint("total_amount = amount + fee_amount", name="ck_payments_total"),
        sa.ForeignKeyConstraint(["link_id"], ["payment_links.id"], name=op.f("fk_payments_link_id")),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_payments_merchant_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_payments")),
        sa.UniqueConstraint("merchant_id", "env", "external_id", name="uq_payments_external_id"),
        sa.UniqueConstraint("reference", "merchant_id", "env", name="uq_payments_reference"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_payments_due",
        "payments",
        ["due_at"],
        unique=False,
        postgresql_where=sa.text("status = 'pending'"),
        sqlite_where=sa.text("status = 'pending'"),
    )
    op.create_index("ix_payments_newest", "payments", ["merchant_id", "env", "created_at", "id"], unique=False)
    op.create_index(
        "ix_payments_provider_ref",
        "payments",
        ["connection", "provider_ref"],
        unique=False,
        postgresql_where=sa.text("provider_ref IS NOT NULL"),
        sqlite_where=sa.text("provider_ref IS NOT NULL"),
    )
    op.create_index(
        "ix_payments_status", "payments", ["merchant_id", "env", "status", "created_at", "id"], unique=False
    )
    op.create_index(
        "uq_payments_checkout_token",
        "payments",
        ["checkout_token"],
        unique=True,
        postgresql_where=sa.text("checkout_token IS NOT NULL"),
        sqlite_where=sa.text("checkout_token IS NOT NULL"),
    )
    op.create_table(
        "refunds",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("env", sa.String(length=4), nullable=False),
        sa.Column("reference", sa.Uuid(as_uuid=False).with_variant(sa.String(length=36), "sqlite"), nullable=False),
        sa.Column("payment_id", sa.BigInteger(), nullable=False),
        sa.Column(
            "payment_reference", sa.Uuid(as_uuid=False).with_variant(sa.String(length=36), "sqlite"), nullable=False
        ),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("processed_at", sa.BigInteger(), nullable=True),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("connection", sa.String(length=64), nullable=True),
        sa.Column("provider_ref", sa.Text(), nullable=True),
        sa.Column("provider_memo", sa.Text(), nullable=True),
        sa.Column("failure", sa.String(length=32), nullable=True),
        sa.Column("sent_at", sa.BigInteger(), nullable=True),
        sa.Column("due_at", sa.BigInteger(), nullable=True),
        sa.Column("asked", sa.Integer(), nullable=False),
        sa.Column("leased_until", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("(status = 'pending') = (due_at IS NOT NULL)", name="ck_refunds_due"),
        sa.CheckConstraint("(status = 'pending') = (processed_at IS NULL)", name="ck_refunds_processed_at"),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_refunds_env"),
        sa.CheckConstraint("status IN ('pending', 'succeeded', 'failed')", name="ck_refunds_status"),
        sa.CheckConstraint("amount > 0", name="ck_refunds_amount"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_refunds_merchant_id")),
        sa.ForeignKeyConstraint(["payment_id"], ["payments.id"], name=op.f("fk_refunds_payment_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_refunds")),
        sa.UniqueConstraint("merchant_id", "payment_id", name="uq_refunds_payment_id"),
        sa.UniqueConstraint("reference", "merchant_id", "env", name="uq_refunds_reference"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_refunds_due",
        "refunds",
        ["due_at"],
        unique=False,
        postgresql_where=sa.text("status = 'pending'"),
        sqlite_where=sa.text("status = 'pending'"),
    )
    op.create_index("ix_refunds_newest", "refunds", ["merchant_id", "env", "created_at", "id"], unique=False)
    op.create_index(
        "ix_refunds_provider_ref",
        "refunds",
        ["connection", "provider_ref"],
        unique=False,
        postgresql_where=sa.text("provider_ref IS NOT NULL"),
        sqlite_where=sa.text("provider_ref IS NOT NULL"),
    )
