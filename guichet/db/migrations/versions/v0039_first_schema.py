"""The first schema: tables, constraints, indexes, and the triggers that count rows and keep the audit log.

Frozen: it does not import `db/tables`, which a later revision may change. Columns stand in the order of `db/tables`.
Of two indexes that cost the same PostgreSQL uses the one that was made later, so their order matters here.
"""

from typing import Any, Final
from uuid import uuid4

import sqlalchemy as sa
from alembic import op

revision = "v0039"
down_revision = None

_UUID: Final = sa.Uuid(as_uuid=False).with_variant(sa.String(36), "sqlite")
#: Ordered by its bytes, so that what begins with a text is a range of an index.
_BYTES: Final = sa.Text(collation="C").with_variant(sa.Text(), "sqlite")
_HOUR: Final = 3_600_000_000


def upgrade() -> None:
    _merchants()
    _people()
    _payment_links()
    _payments()
    _ledger()
    _treasury()
    _webhooks()
    _providers()
    _lists()
    _staff()
    _workers()
    _count_rows()
    _add_figures()
    _keep_audit_log()


def _merchants() -> None:
    _table(
        "merchants",
        _id(),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("time_zone", sa.String(64)),
        sa.Column("rate_limit", sa.Integer()),
        sa.Column("payment_limit", sa.BigInteger()),
        sa.Column("daily_limit", sa.BigInteger()),
        sa.Column("is_house", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.PrimaryKeyConstraint("id", name="pk_merchants"),
        _one_of("merchants", "status", "active", "pending", "suspended"),
    )
    _index("ix_merchants_pending", "merchants", "id", where="status = 'pending'")
    _index("uq_merchants_house", "merchants", "is_house", where="is_house", unique=True)
    _table(
        "api_keys",
        _id(),
        _merchant("api_keys"),
        _env(),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("preview", sa.String(16), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("revoked_at", sa.BigInteger()),
        sa.Column("last_used_at", sa.BigInteger()),
        sa.Column("scopes", sa.Integer(), nullable=False, server_default="-1"),
        sa.Column("networks", sa.Text()),
        sa.Column("secret_read_at", sa.BigInteger()),
        sa.Column("owners_mailed_at", sa.BigInteger()),
        sa.Column("name", sa.String(60)),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.CheckConstraint("scopes = -1 OR scopes > 0", name="ck_api_keys_scopes"),
        sa.CheckConstraint("env = 'live' OR networks IS NULL", name="ck_api_keys_networks"),
        sa.UniqueConstraint("hash", name="uq_api_keys_hash"),
        _one_of("api_keys", "env", "test", "live"),
    )
    _index("ix_api_keys_merchant_id", "api_keys", "merchant_id", "id")
    _table(
        "key_acts",
        _id(),
        _merchant("key_acts"),
        sa.Column("key_id", sa.BigInteger(), sa.ForeignKey("api_keys.id", name="fk_key_acts_key_id"), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("after_number", sa.BigInteger(), nullable=False),
        sa.Column("action", sa.String(48), nullable=False),
        sa.Column("detail", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_key_acts"),
    )
    _index("ix_key_acts_place", "key_acts", "merchant_id", "after_number", "id")
    _table(
        "idempotency_keys",
        _id(),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        _env(),
        sa.Column("route", sa.String(48), nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("resource", sa.String(36), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_idempotency_keys"),
        sa.UniqueConstraint("merchant_id", "env", "route", "key", name="uq_idempotency_keys_key"),
        _one_of("idempotency_keys", "env", "test", "live"),
    )
    _table(
        "webhook_endpoints",
        _merchant("webhook_endpoints"),
        _env(),
        sa.Column("url", sa.Text()),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("old_secret", sa.Text()),
        sa.Column("old_secret_until", sa.BigInteger()),
        sa.PrimaryKeyConstraint("merchant_id", "env", name="pk_webhook_endpoints"),
        _one_of("webhook_endpoints", "env", "test", "live"),
    )
    _table(
        "payment_mode_overrides",
        _id(),
        sa.Column(
            "merchant_id", sa.BigInteger(), sa.ForeignKey("merchants.id", name="fk_payment_mode_overrides_merchant_id")
        ),
        sa.Column("operator", sa.String(32), nullable=False),
        sa.Column("active", sa.Boolean()),
        sa.Column("fee_percent", sa.BigInteger()),
        sa.Column("fee_fixed", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_payment_mode_overrides"),
        sa.CheckConstraint("fee_percent >= 0", name="ck_payment_mode_overrides_fee_percent"),
        sa.CheckConstraint("fee_fixed >= 0", name="ck_payment_mode_overrides_fee_fixed"),
    )
    _index(
        "uq_payment_mode_overrides_all_merchants",
        "payment_mode_overrides",
        "operator",
        where="merchant_id IS NULL",
        unique=True,
    )
    _index(
        "uq_payment_mode_overrides_merchant_id",
        "payment_mode_overrides",
        "merchant_id",
        "operator",
        where="merchant_id IS NOT NULL",
        unique=True,
    )
    _table(
        "api_requests",
        _id(),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        _env(),
        sa.Column("key_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("method", sa.String(8), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("duration", sa.BigInteger(), nullable=False),
        sa.Column("error_code", sa.String(32)),
        sa.PrimaryKeyConstraint("id", name="pk_api_requests"),
        _one_of("api_requests", "env", "test", "live"),
    )
    _index("ix_api_requests_newest", "api_requests", "merchant_id", "env", "id")
    _table(
        "merchant_notes",
        _id(),
        _merchant("merchant_notes"),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_merchant_notes"),
    )
    _index("ix_merchant_notes_merchant_id", "merchant_notes", "merchant_id", "id")
    _table(
        "merchant_documents",
        _id(),
        _merchant("merchant_documents"),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("media_type", sa.String(32), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("uploaded_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_merchant_documents"),
        sa.UniqueConstraint("merchant_id", "sha256", name="uq_merchant_documents_sha256"),
        _one_of("merchant_documents", "media_type", "application/pdf", "image/jpeg", "image/png"),
        sa.CheckConstraint("size BETWEEN 1 AND 5242880", name="ck_merchant_documents_size"),
    )
    _table(
        "merchant_document_chunks",
        sa.Column(
            "document_id",
            sa.BigInteger(),
            sa.ForeignKey("merchant_documents.id", name="fk_merchant_document_chunks_document_id"),
            nullable=False,
        ),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("document_id", "number", name="pk_merchant_document_chunks"),
    )


def _people() -> None:
    _table(
        "users",
        _id(),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("language", sa.String(2), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("staff_role", sa.String(16)),
        sa.Column("password_hash", sa.Text()),
        sa.Column("totp_secret", sa.Text()),
        sa.Column("totp_confirmed", sa.Boolean(), nullable=False),
        sa.Column("totp_step", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("last_signed_in_at", sa.BigInteger()),
        sa.Column("next_totp_secret", sa.Text()),
        sa.Column("staff_since", sa.BigInteger()),
        sa.Column("approver_until", sa.BigInteger()),
        sa.Column("removed_approver_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("email", name="uq_users_email"),
        _one_of("users", "status", "invited", "active", "disabled"),
        _one_of("users", "language", "fr", "en"),
        _one_of("users", "staff_role", "admin", "support", "finance", "auditor"),
        sa.CheckConstraint("status <> 'active' OR password_hash IS NOT NULL", name="ck_users_password_hash"),
        sa.CheckConstraint("totp_secret IS NOT NULL OR NOT totp_confirmed", name="ck_users_totp_confirmed"),
    )
    _index("ix_users_staff", "users", "id", where="staff_role IS NOT NULL")
    _index("ix_users_approver_until", "users", "approver_until", where="approver_until IS NOT NULL")
    _table(
        "memberships",
        sa.Column("user_id", sa.BigInteger(), sa.ForeignKey("users.id", name="fk_memberships_user_id"), nullable=False),
        _merchant("memberships"),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "merchant_id", name="pk_memberships"),
        _one_of("memberships", "role", "owner", "finance", "cashier", "developer", "reader"),
    )
    _index("ix_memberships_merchant_id", "memberships", "merchant_id", "user_id")
    _table(
        "recovery_codes",
        sa.Column(
            "user_id", sa.BigInteger(), sa.ForeignKey("users.id", name="fk_recovery_codes_user_id"), nullable=False
        ),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("user_id", "hash", name="pk_recovery_codes"),
    )
    _table(
        "passkeys",
        _id(),
        sa.Column("user_id", sa.BigInteger(), sa.ForeignKey("users.id", name="fk_passkeys_user_id"), nullable=False),
        sa.Column("credential_id", sa.Text(), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("sign_count", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_passkeys"),
        sa.UniqueConstraint("credential_id", name="uq_passkeys_credential_id"),
    )
    _index("ix_passkeys_user_id", "passkeys", "user_id", "id")
    _table(
        "passkey_challenges",
        _id(),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_passkey_challenges"),
        sa.UniqueConstraint("hash", name="uq_passkey_challenges_hash"),
    )
    _table(
        "user_sessions",
        _id(),
        sa.Column(
            "user_id", sa.BigInteger(), sa.ForeignKey("users.id", name="fk_user_sessions_user_id"), nullable=False
        ),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("factor_at", sa.BigInteger()),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_user_sessions"),
        sa.UniqueConstraint("hash", name="uq_user_sessions_hash"),
    )
    _index("ix_user_sessions_user_id", "user_sessions", "user_id", "id")
    _table(
        "mail_links",
        _id(),
        sa.Column("user_id", sa.BigInteger(), sa.ForeignKey("users.id", name="fk_mail_links_user_id"), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("purpose", sa.String(16), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger()),
        sa.Column("merchant_id", sa.BigInteger()),
        sa.Column("role", sa.String(16)),
        sa.PrimaryKeyConstraint("id", name="pk_mail_links"),
        sa.UniqueConstraint("hash", name="uq_mail_links_hash"),
        _one_of("mail_links", "purpose", "invitation", "password"),
    )
    _index("ix_mail_links_user_id", "mail_links", "user_id", "purpose", "id")
    _index("ix_mail_links_offers", "mail_links", "merchant_id", "id", where="merchant_id IS NOT NULL")
    _table(
        "mails",
        _id(),
        sa.Column("user_id", sa.BigInteger(), sa.ForeignKey("users.id", name="fk_mails_user_id")),
        sa.Column("recipient", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("message", sa.Text()),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("sent_at", sa.BigInteger()),
        sa.Column("next_attempt_at", sa.BigInteger()),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_mails"),
        _one_of("mails", "status", "pending", "sent", "failed"),
        sa.CheckConstraint("attempts BETWEEN 0 AND 5", name="ck_mails_attempts"),
        sa.CheckConstraint("(status = 'pending') = (next_attempt_at IS NOT NULL)", name="ck_mails_next_attempt_at"),
        sa.CheckConstraint("status <> 'pending' OR message IS NOT NULL", name="ck_mails_message"),
    )
    _index("ix_mails_next_attempt_at", "mails", "next_attempt_at", "id", "kind", where="status = 'pending'")
    _table(
        "payment_mails",
        _id(),
        _merchant("payment_mails"),
        sa.Column("user_id", sa.BigInteger(), sa.ForeignKey("users.id", name="fk_payment_mails_user_id")),
        sa.Column("frequency", sa.String(8), nullable=False),
        sa.Column("chosen_at", sa.BigInteger(), nullable=False),
        sa.Column("due_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_payment_mails"),
        sa.UniqueConstraint("merchant_id", "user_id", name="uq_payment_mails_user_id"),
        _one_of("payment_mails", "frequency", "each", "daily"),
        sa.CheckConstraint("(frequency = 'daily') = (due_at IS NOT NULL)", name="ck_payment_mails_due_at"),
    )
    _index("uq_payment_mails_customers", "payment_mails", "merchant_id", where="user_id IS NULL", unique=True)
    _index("ix_payment_mails_due_at", "payment_mails", "due_at", where="due_at IS NOT NULL")
    _table(
        "payment_mail_progress",
        sa.Column("frequency", sa.String(8), nullable=False),
        sa.Column("through_posting_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("frequency", name="pk_payment_mail_progress"),
    )
    _index("ix_mails_partition_key", "mails", "kind", "next_attempt_at", "id", where="status = 'pending'")


def _payment_links() -> None:
    _table(
        "payment_links",
        _id(),
        _merchant("payment_links"),
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
        sa.Column("late_uses", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("external_id", _BYTES),
        sa.Column("metadata", sa.Text()),
        sa.Column("return_url", sa.Text()),
        sa.Column("cancelled_at", sa.BigInteger()),
        sa.Column("test", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("cash_desk", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("cashier_id", sa.BigInteger(), sa.ForeignKey("users.id", name="fk_payment_links_cashier_id")),
        sa.Column("session_reference", _UUID),
        sa.Column("session_status", sa.String(9)),
        sa.Column("payment_reference", _UUID),
        sa.Column("cancel_url", sa.Text()),
        sa.Column("operators", sa.Text()),
        sa.Column("customer", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_payment_links"),
        sa.UniqueConstraint("token", name="uq_payment_links_token"),
        _one_of("payment_links", "type", "permanent", "limité"),
        _one_of("payment_links", "session_status", "open", "completed", "expired"),
        sa.CheckConstraint("(session_reference IS NULL) = (session_status IS NULL)", name="ck_payment_links_session"),
        sa.CheckConstraint(
            "(payment_reference IS NOT NULL) = (COALESCE(session_status, '') = 'completed')",
            name="ck_payment_links_payment_reference",
        ),
        sa.CheckConstraint("amount > 0", name="ck_payment_links_amount"),
        sa.CheckConstraint("max_uses >= 1", name="ck_payment_links_max_uses"),
        sa.CheckConstraint(
            "completed_uses >= 0 AND completed_uses <= reserved_uses "
            "AND reserved_uses <= COALESCE(max_uses, reserved_uses)",
            name="ck_payment_links_uses",
        ),
    )
    _index(
        "uq_payment_links_external_id",
        "payment_links",
        "merchant_id",
        "external_id",
        where="external_id IS NOT NULL AND NOT test AND session_reference IS NULL",
        unique=True,
    )
    _index(
        "uq_payment_links_test_external_id",
        "payment_links",
        "external_id",
        "merchant_id",
        where="external_id IS NOT NULL AND test AND session_reference IS NULL",
        unique=True,
    )
    _index(
        "uq_payment_links_session_external_id",
        "payment_links",
        "merchant_id",
        "test",
        "external_id",
        where="external_id IS NOT NULL AND session_reference IS NOT NULL",
        unique=True,
    )
    _index(
        "uq_payment_links_session_reference",
        "payment_links",
        "session_reference",
        where="session_reference IS NOT NULL",
        unique=True,
    )
    _index("ix_payment_links_open_sessions", "payment_links", "expires_at", "id", where="session_status = 'open'")
    plain = "session_reference IS NULL"
    _index("ix_payment_links_newest", "payment_links", "merchant_id", "test", "id", where=plain)
    _index("ix_payment_links_kind", "payment_links", "merchant_id", "test", "cash_desk", "id", where=plain)
    _index(
        "ix_payment_links_sales", "payment_links", "merchant_id", "test", "created_at", where="cashier_id IS NOT NULL"
    )
    _index(
        "ix_payment_links_cashier",
        "payment_links",
        "cashier_id",
        "merchant_id",
        "test",
        "id",
        where="cashier_id IS NOT NULL AND cash_desk",
    )


def _payments() -> None:
    _table(
        "daily_totals",
        _merchant("daily_totals"),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("merchant_id", "day", name="pk_daily_totals"),
        sa.CheckConstraint("amount >= 0", name="ck_daily_totals_amount"),
    )
    _table(
        "payments",
        _id(),
        _merchant("payments"),
        _env(),
        sa.Column("reference", _UUID, nullable=False),
        sa.Column("external_id", _BYTES),
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
        sa.Column("link_id", sa.BigInteger(), sa.ForeignKey("payment_links.id", name="fk_payments_link_id")),
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
        sa.Column("account_fingerprint", sa.String(32)),
        sa.Column("payer_number", sa.String(15)),
        sa.Column("asked_at", sa.BigInteger()),
        sa.Column("initiation_ended_at", sa.BigInteger()),
        sa.Column("not_found_count", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("not_found_duration", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("link_reserved_until", sa.BigInteger()),
        sa.Column("answered_pending", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("link_external_id", sa.Text()),
        sa.Column("counted_day", sa.Integer()),
        sa.Column("refused_at_initiation", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("attempt_of", sa.BigInteger(), sa.ForeignKey("payments.id", name="fk_payments_attempt_of")),
        sa.Column("session_reference", _UUID),
        sa.PrimaryKeyConstraint("id", name="pk_payments"),
        sa.UniqueConstraint("merchant_id", "env", "external_id", name="uq_payments_external_id"),
        sa.UniqueConstraint("reference", "merchant_id", "env", name="uq_payments_reference"),
        _one_of("payments", "env", "test", "live"),
        _one_of("payments", "status", "pending", "succeeded", "failed", "refunded"),
        sa.CheckConstraint("amount > 0 AND fee_amount >= 0", name="ck_payments_amount"),
        sa.CheckConstraint("total_amount = amount + fee_amount", name="ck_payments_total"),
        sa.CheckConstraint("(status = 'pending') = (next_poll_at IS NOT NULL)", name="ck_payments_next_poll_at"),
    )
    _index("ix_payments_next_poll_at", "payments", "next_poll_at", "id", "provider_account", where="status = 'pending'")
    _index(
        "ix_payments_partition_key", "payments", "provider_account", "next_poll_at", "id", where="status = 'pending'"
    )
    _index("ix_payments_newest", "payments", "merchant_id", "env", "created_at", "id")
    _index(
        "ix_payments_provider_reference",
        "payments",
        "provider_account",
        "provider_reference",
        where="provider_reference IS NOT NULL",
    )
    _index("ix_payments_status", "payments", "merchant_id", "env", "status", "created_at", "id")
    _index("uq_payments_checkout_token", "payments", "checkout_token", where="checkout_token IS NOT NULL", unique=True)
    _index(
        "ix_payments_link_reserved_until",
        "payments",
        "link_id",
        "link_reserved_until",
        where="status = 'pending' AND link_reserved_until IS NOT NULL",
    )
    _index("ix_payments_attempt_of", "payments", "attempt_of", where="attempt_of IS NOT NULL")
    _index(
        "ix_payments_link_prompts",
        "payments",
        "link_id",
        "created_at",
        "status",
        "failure_reason",
        where="link_id IS NOT NULL AND phone_number IS NOT NULL",
    )
    _index(
        "ix_payments_phone_prompts",
        "payments",
        "phone_number",
        "created_at",
        "status",
        "failure_reason",
        where="link_id IS NOT NULL AND phone_number IS NOT NULL",
    )
    _index(
        "ix_payments_phone_number",
        "payments",
        "phone_number",
        "merchant_id",
        "env",
        "id",
        where="phone_number IS NOT NULL",
    )
    _index("ix_payments_link", "payments", "link_id", "id", where="link_id IS NOT NULL")
    _table(
        "refunds",
        _id(),
        _merchant("refunds"),
        _env(),
        sa.Column("reference", _UUID, nullable=False),
        sa.Column(
            "payment_id", sa.BigInteger(), sa.ForeignKey("payments.id", name="fk_refunds_payment_id"), nullable=False
        ),
        sa.Column("payment_reference", _UUID, nullable=False),
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
        sa.Column("account_fingerprint", sa.String(32)),
        sa.Column("request_number", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("float_empty_accounts", sa.Text()),
        sa.Column("payee_number", sa.String(15)),
        sa.Column("asked_at", sa.BigInteger()),
        sa.Column("not_found_count", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("not_found_duration", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("ambiguous_code", sa.String(64)),
        sa.Column("automatic", sa.String(16)),
        sa.PrimaryKeyConstraint("id", name="pk_refunds"),
        sa.UniqueConstraint("merchant_id", "payment_id", name="uq_refunds_payment_id"),
        sa.UniqueConstraint("reference", "merchant_id", "env", name="uq_refunds_reference"),
        _one_of("refunds", "env", "test", "live"),
        _one_of("refunds", "status", "pending", "succeeded", "failed"),
        _one_of("refunds", "automatic", "link_paid", "sale_cancelled", "attempt_paid"),
        sa.CheckConstraint("amount > 0", name="ck_refunds_amount"),
        sa.CheckConstraint("(status = 'pending') = (processed_at IS NULL)", name="ck_refunds_processed_at"),
        sa.CheckConstraint("(status = 'pending') = (next_poll_at IS NOT NULL)", name="ck_refunds_next_poll_at"),
    )
    _index("ix_refunds_next_poll_at", "refunds", "next_poll_at", "id", "provider_account", where="status = 'pending'")
    _index("ix_refunds_partition_key", "refunds", "provider_account", "next_poll_at", "id", where="status = 'pending'")
    _index("ix_refunds_newest", "refunds", "merchant_id", "env", "created_at", "id")
    _index("ix_refunds_status", "refunds", "merchant_id", "env", "status", "created_at", "id")
    _index(
        "ix_refunds_provider_reference",
        "refunds",
        "provider_account",
        "provider_reference",
        where="provider_reference IS NOT NULL",
    )
    _index("ix_refunds_float_empty", "refunds", "id", where="float_empty_accounts IS NOT NULL")
    _index("ix_refunds_held", "refunds", "merchant_id", "env", "currency", where="status = 'pending' AND held")
    _table(
        "refund_proposals",
        sa.Column(
            "payment_id",
            sa.BigInteger(),
            sa.ForeignKey("payments.id", name="fk_refund_proposals_payment_id"),
            nullable=False,
        ),
        _merchant("refund_proposals"),
        _env(),
        sa.Column(
            "key_id", sa.BigInteger(), sa.ForeignKey("api_keys.id", name="fk_refund_proposals_key_id"), nullable=False
        ),
        sa.Column("status", sa.String(9), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("payment_id", name="pk_refund_proposals"),
        _one_of("refund_proposals", "env", "test", "live"),
        _one_of("refund_proposals", "status", "open", "confirmed", "declined"),
    )
    _index("ix_refund_proposals_open", "refund_proposals", "merchant_id", "env", "expires_at", where="status = 'open'")
    _table(
        "disputes",
        _id(),
        _merchant("disputes"),
        _env(),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("payment_id", sa.BigInteger(), sa.ForeignKey("payments.id", name="fk_disputes_payment_id")),
        sa.Column("payment_reference", _UUID),
        sa.Column("reference", _UUID, nullable=False),
        sa.Column("provider_account", sa.String(64), nullable=False),
        sa.Column("provider_reference", sa.String(255), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("evidence_due_at", sa.BigInteger()),
        sa.Column("closed_at", sa.BigInteger()),
        sa.Column("borne_by", sa.String(8)),
        sa.Column("taken", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_disputes"),
        sa.UniqueConstraint("provider_account", "provider_reference", name="uq_disputes_provider_reference"),
        sa.UniqueConstraint("reference", name="uq_disputes_reference"),
        _one_of("disputes", "env", "test", "live"),
        _one_of("disputes", "status", "open", "won", "lost", "prevented"),
        _one_of("disputes", "borne_by", "merchant", "service", "nobody"),
        sa.CheckConstraint("amount > 0", name="ck_disputes_amount"),
        sa.CheckConstraint("(status = 'open') = (closed_at IS NULL)", name="ck_disputes_closed_at"),
        sa.CheckConstraint("(payment_id IS NULL) = (payment_reference IS NULL)", name="ck_disputes_payment"),
        sa.CheckConstraint("borne_by IS NULL OR status = 'lost'", name="ck_disputes_lost"),
    )
    _index("ix_disputes_payment_id", "disputes", "payment_id")
    _index("ix_disputes_newest", "disputes", "merchant_id", "env", "opened_at", "id")
    _index("ix_disputes_open", "disputes", "merchant_id", "env", where="status = 'open'")
    _table(
        "late_results",
        _id(),
        _merchant("late_results"),
        _env(),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("subject_type", sa.String(8), nullable=False),
        sa.Column("subject_id", sa.BigInteger(), nullable=False),
        sa.Column("reference", _UUID, nullable=False),
        sa.Column("provider_account", sa.String(64), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("stage", sa.String(16), nullable=False),
        sa.Column("told_at", sa.BigInteger(), nullable=False),
        sa.Column("refused_by_provider", sa.Boolean(), nullable=False),
        sa.Column("asked_count", sa.Integer(), nullable=False),
        sa.Column("amount", sa.BigInteger()),
        sa.Column("found_at", sa.BigInteger()),
        sa.Column("next_poll_at", sa.BigInteger()),
        sa.Column("return_reference", _UUID),
        sa.PrimaryKeyConstraint("id", name="pk_late_results"),
        sa.UniqueConstraint("merchant_id", "subject_type", "subject_id", name="uq_late_results_subject"),
        _one_of("late_results", "env", "test", "live"),
        _one_of("late_results", "subject_type", "payment", "refund"),
        _one_of("late_results", "status", "pending", "open", "closed"),
        _one_of("late_results", "stage", "asking", "found", "receivable", "returning", "credited", "returned", "paid"),
        sa.CheckConstraint("(stage = 'asking') = (next_poll_at IS NOT NULL)", name="ck_late_results_next_poll_at"),
        sa.CheckConstraint("(stage = 'asking') = (amount IS NULL)", name="ck_late_results_amount"),
    )
    _index(
        "ix_late_results_next_poll_at",
        "late_results",
        "next_poll_at",
        "id",
        "provider_account",
        where="status = 'pending'",
    )
    _index(
        "ix_late_results_partition_key",
        "late_results",
        "provider_account",
        "next_poll_at",
        "id",
        where="status = 'pending'",
    )
    _index("ix_late_results_open", "late_results", "id", where="status = 'open'")
    _table(
        "late_returns",
        _id(),
        _merchant("late_returns"),
        _env(),
        sa.Column(
            "late_result_id",
            sa.BigInteger(),
            sa.ForeignKey("late_results.id", name="fk_late_returns_late_result_id"),
            nullable=False,
        ),
        sa.Column("reference", _UUID, nullable=False),
        sa.Column("provider_account", sa.String(64), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("requested_at", sa.BigInteger(), nullable=False),
        sa.Column("sent_at", sa.BigInteger()),
        sa.Column("next_poll_at", sa.BigInteger()),
        sa.Column("provider_reference", sa.Text()),
        sa.Column("provider_data", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_late_returns"),
        sa.UniqueConstraint("reference", name="uq_late_returns_reference"),
        _one_of("late_returns", "env", "test", "live"),
        _one_of("late_returns", "status", "pending", "succeeded", "failed"),
        sa.CheckConstraint("(status = 'pending') = (next_poll_at IS NOT NULL)", name="ck_late_returns_next_poll_at"),
    )
    _index(
        "ix_late_returns_next_poll_at",
        "late_returns",
        "next_poll_at",
        "id",
        "provider_account",
        where="status = 'pending'",
    )
    _index(
        "ix_late_returns_partition_key",
        "late_returns",
        "provider_account",
        "next_poll_at",
        "id",
        where="status = 'pending'",
    )
    _index("ix_late_returns_late_result_id", "late_returns", "late_result_id")
    _table(
        "provider_callbacks",
        _id(),
        _merchant("provider_callbacks"),
        _env(),
        sa.Column("subject_type", sa.String(8), nullable=False),
        sa.Column("subject_id", sa.BigInteger(), nullable=False),
        sa.Column("provider_account", sa.String(64), nullable=False),
        sa.Column("provider_reference", sa.Text()),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("received_count", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("due_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_provider_callbacks"),
        sa.UniqueConstraint("subject_id", "subject_type", name="uq_provider_callbacks_subject"),
        _one_of("provider_callbacks", "env", "test", "live"),
        _one_of("provider_callbacks", "subject_type", "payment", "refund"),
        _one_of("provider_callbacks", "status", "pending", "asked"),
        sa.CheckConstraint("(status = 'pending') = (due_at IS NOT NULL)", name="ck_provider_callbacks_due_at"),
    )
    _index(
        "ix_provider_callbacks_due_at",
        "provider_callbacks",
        "due_at",
        "id",
        "provider_account",
        where="status = 'pending'",
    )
    _index(
        "ix_provider_callbacks_partition_key",
        "provider_callbacks",
        "provider_account",
        "due_at",
        "id",
        where="status = 'pending'",
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
    _index("ix_unmatched_callbacks_received_at", "unmatched_callbacks", "received_at")
    _index("ix_unmatched_callbacks_provider_account", "unmatched_callbacks", "provider_account", "received_at", "id")


def _ledger() -> None:
    _table(
        "wallets",
        _merchant("wallets"),
        _env(),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("balance", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("release_pending", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.PrimaryKeyConstraint("merchant_id", "env", "currency", name="pk_wallets"),
        _one_of("wallets", "env", "test", "live"),
        _one_of("wallets", "status", "Actif", "Gelé", "Fermé"),
    )
    _index("ix_wallets_release_pending", "wallets", "merchant_id", "env", "currency", where="release_pending")
    _table(
        "wallet_entries",
        _id(),
        _merchant("wallet_entries"),
        _env(),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("subject_id", sa.BigInteger(), nullable=False),
        sa.Column("suspended", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_wallet_entries"),
        _one_of("wallet_entries", "env", "test", "live"),
    )
    _index("ix_wallet_entries_suspended", "wallet_entries", "id", where="suspended")
    _index("ix_wallet_entries_wallet", "wallet_entries", "merchant_id", "env", "currency", "suspended")
    _table(
        "wallet_checkpoints",
        _merchant("wallet_checkpoints"),
        _env(),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("balance", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("merchant_id", "env", "currency", "at", name="pk_wallet_checkpoints"),
        _one_of("wallet_checkpoints", "env", "test", "live"),
    )
    _table(
        "postings",
        _id(),
        _merchant("postings"),
        _env(),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("cause", sa.String(32), nullable=False),
        sa.Column("subject_id", sa.BigInteger(), nullable=False),
        sa.Column("leg", sa.String(16), nullable=False),
        sa.Column("source", sa.String(128), nullable=False),
        sa.Column("destination", sa.String(128), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_postings"),
        sa.UniqueConstraint("merchant_id", "cause", "subject_id", "leg", name="uq_postings_cause"),
        _one_of("postings", "env", "test", "live"),
        sa.CheckConstraint("amount > 0", name="ck_postings_amount"),
        sa.CheckConstraint("source <> destination", name="ck_postings_accounts"),
    )
    _index("ix_postings_statement", "postings", "merchant_id", "env", "currency", "created_at", "id")
    _table(
        "ledger_hash_chain",
        _id(),
        sa.Column("first_posting_id", sa.BigInteger(), nullable=False),
        sa.Column("last_posting_id", sa.BigInteger(), nullable=False),
        sa.Column("posting_ids", sa.Text(), nullable=False),
        sa.Column("row_hashes", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ledger_hash_chain"),
        sa.UniqueConstraint("first_posting_id", name="uq_ledger_hash_chain_first_posting_id"),
        sa.CheckConstraint("last_posting_id >= first_posting_id", name="ck_ledger_hash_chain_id_range"),
    )
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
        sa.Column("head_posting_id", sa.BigInteger()),
        sa.Column("hash_chain_links", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_ledger_audits"),
    )


def _treasury() -> None:
    _table(
        "treasury_movements",
        _id(),
        _merchant("treasury_movements"),
        sa.Column("reference", _UUID, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.String(128), nullable=False),
        sa.Column("destination", sa.String(128), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_treasury_movements"),
        sa.UniqueConstraint("reference", name="uq_treasury_movements_reference"),
        _one_of("treasury_movements", "kind", "opening", "top_up", "withdrawal", "transfer", "fee", "conversion"),
        _one_of("treasury_movements", "status", "announced", "posted", "cancelled"),
        sa.CheckConstraint("amount > 0", name="ck_treasury_movements_amount"),
        sa.CheckConstraint("(status = 'announced') = (ended_at IS NULL)", name="ck_treasury_movements_ended_at"),
    )
    _index("ix_treasury_movements_announced", "treasury_movements", "id", where="status = 'announced'")
    _table(
        "treasury_rollups",
        sa.Column("through_posting_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("sums", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("through_posting_id", name="pk_treasury_rollups"),
    )
    _table(
        "treasury_readings",
        _id(),
        sa.Column("place", sa.String(128), nullable=False),
        sa.Column("source", sa.String(16), nullable=False),
        sa.Column("stated", sa.BigInteger(), nullable=False),
        sa.Column("ledger", sa.BigInteger(), nullable=False),
        sa.Column("low", sa.BigInteger(), nullable=False),
        sa.Column("high", sa.BigInteger(), nullable=False),
        sa.Column("difference", sa.BigInteger(), nullable=False),
        sa.Column("moved", sa.BigInteger(), nullable=False),
        sa.Column("read_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_treasury_readings"),
        _one_of("treasury_readings", "source", "provider", "statement"),
    )
    _index("ix_treasury_readings_place", "treasury_readings", "place", "read_at")


def _webhooks() -> None:
    transaction = "CAST(CAST(pg_current_xact_id() AS text) AS bigint)" if _on_postgresql() else "0"
    _table(
        "events",
        _id(),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        _env(),
        sa.Column("reference", _UUID, nullable=False),
        sa.Column("payment_id", sa.BigInteger()),
        sa.Column("event", sa.String(32), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("transaction_id", sa.BigInteger(), nullable=False, server_default=sa.text(transaction)),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sa.UniqueConstraint("merchant_id", "env", "reference", name="uq_events_reference"),
        _one_of("events", "env", "test", "live"),
    )
    _index("ix_events_place", "events", "merchant_id", "env", "transaction_id", "id")
    _index("ix_events_payment_id", "events", "payment_id", where="payment_id IS NOT NULL")
    _table(
        "webhook_deliveries",
        _id(),
        _merchant("webhook_deliveries"),
        _env(),
        sa.Column("reference", _UUID, nullable=False),
        sa.Column("payment_id", sa.BigInteger()),
        sa.Column("event", sa.String(32), nullable=False),
        sa.Column("target", sa.String(8), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("destination", sa.Text(), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("response_code", sa.Integer()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("delivered_at", sa.BigInteger()),
        sa.Column("last_attempt_at", sa.BigInteger()),
        sa.Column("next_attempt_at", sa.BigInteger()),
        sa.Column("error", sa.String(24)),
        sa.Column("history", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_deliveries"),
        _one_of("webhook_deliveries", "env", "test", "live"),
        _one_of("webhook_deliveries", "status", "pending", "success", "failed"),
        _one_of("webhook_deliveries", "target", "account", "callback"),
        sa.CheckConstraint("attempts BETWEEN 0 AND 5", name="ck_webhook_deliveries_attempts"),
        sa.CheckConstraint(
            "(status = 'success') = (delivered_at IS NOT NULL)", name="ck_webhook_deliveries_delivered_at"
        ),
        sa.CheckConstraint(
            "(status = 'pending') = (next_attempt_at IS NOT NULL)", name="ck_webhook_deliveries_next_attempt_at"
        ),
    )
    _index("ix_webhook_deliveries_newest", "webhook_deliveries", "merchant_id", "env", "created_at", "id")
    _index(
        "ix_webhook_deliveries_exhausted",
        "webhook_deliveries",
        "attempts",
        "next_attempt_at",
        where="status = 'pending' AND attempts = 5",
    )
    _index(
        "ix_webhook_deliveries_next_attempt_at",
        "webhook_deliveries",
        "next_attempt_at",
        "id",
        where="status = 'pending'",
    )
    _index(
        "ix_webhook_deliveries_first_attempts",
        "webhook_deliveries",
        "merchant_id",
        "next_attempt_at",
        "id",
        where="status = 'pending' AND attempts = 0",
    )
    _index(
        "ix_webhook_deliveries_retries",
        "webhook_deliveries",
        "merchant_id",
        "next_attempt_at",
        "id",
        where="status = 'pending' AND attempts > 0",
    )
    _index("ix_webhook_deliveries_payment_id", "webhook_deliveries", "payment_id", "id")
    _index(
        "ix_webhook_deliveries_event", "webhook_deliveries", "merchant_id", "env", "event", "status", "created_at", "id"
    )


def _providers() -> None:
    _table(
        "provider_balances",
        sa.Column("provider_account", sa.String(64), nullable=False),
        sa.Column("wallet", sa.Text(), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("alert_below", sa.BigInteger()),
        sa.PrimaryKeyConstraint("provider_account", "wallet", "currency", name="pk_provider_balances"),
    )
    _table(
        "provider_balance_reads",
        sa.Column("provider_account", sa.String(64), nullable=False),
        sa.Column("next_read_at", sa.BigInteger(), nullable=False),
        sa.Column("read_at", sa.BigInteger()),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("provider_account", name="pk_provider_balance_reads"),
    )
    _table(
        "provider_identities",
        sa.Column("provider_account", sa.String(64), nullable=False),
        sa.Column("fingerprint", sa.String(32), nullable=False),
        sa.Column("identity", sa.Text()),
        sa.Column("stated", sa.Text(), nullable=False),
        sa.Column("read_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("provider_account", "fingerprint", name="pk_provider_identities"),
    )
    _table(
        "provider_merchants",
        sa.Column("provider_account", sa.String(64), nullable=False),
        _merchant("provider_merchants"),
        sa.Column("provider_merchant_id", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("provider_account", "merchant_id", name="pk_provider_merchants"),
    )
    _table(
        "reconciliation_runs",
        _id(),
        sa.Column("provider_account", sa.String(64), nullable=False),
        sa.Column("day", sa.BigInteger(), nullable=False),
        sa.Column("due_at", sa.BigInteger()),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("finished_at", sa.BigInteger()),
        sa.Column("lines", sa.BigInteger(), nullable=False),
        sa.Column("matched", sa.BigInteger(), nullable=False),
        sa.Column("differences", sa.BigInteger(), nullable=False),
        sa.Column("found", sa.Text(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_reconciliation_runs"),
        sa.UniqueConstraint("provider_account", "day", name="uq_reconciliation_runs_day"),
    )
    _index("ix_reconciliation_runs_day", "reconciliation_runs", "day")
    _index("ix_reconciliation_runs_due", "reconciliation_runs", "due_at", "id", where="due_at IS NOT NULL")
    _table(
        "operator_attempts",
        sa.Column("minute", sa.BigInteger(), nullable=False),
        sa.Column("operator", sa.String(32), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("minute", "operator", name="pk_operator_attempts"),
    )
    _table(
        "operator_availability",
        sa.Column("operator", sa.String(32), nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("measured", sa.String(8), nullable=False),
        sa.Column("stated", sa.String(8)),
        sa.Column("stated_by", sa.String(64)),
        sa.Column("stated_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("operator", name="pk_operator_availability"),
        _one_of("operator_availability", "state", "up", "degraded", "down"),
        _one_of("operator_availability", "measured", "up", "degraded", "down"),
        _one_of("operator_availability", "stated", "up", "degraded", "down"),
    )


def _lists() -> None:
    _table(
        "customer_names",
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        _env(),
        sa.Column("name", _BYTES, nullable=False),
        sa.Column("payment_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("merchant_id", "env", "name", "payment_id", name="pk_customer_names"),
        is_index=True,
    )
    _table(
        "customer_names_head",
        sa.Column("name", sa.String(16), nullable=False),
        sa.Column("payment_id", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_customer_names_head"),
    )
    _table(
        "list_counts",
        _merchant("list_counts"),
        _env(),
        sa.Column("list_name", sa.String(48), nullable=False),
        sa.Column("level", sa.String(4), nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("row_count", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("merchant_id", "env", "list_name", "level", "bucket", "status", name="pk_list_counts"),
        _one_of("list_counts", "level", "hour", "day", "all"),
        is_index=True,
    )
    _table(
        "list_count_changes",
        _id(),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        _env(),
        sa.Column("list_name", sa.String(48), nullable=False),
        sa.Column("hour", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False, server_default=""),
        sa.Column("operator", sa.String(32), nullable=False, server_default=""),
        sa.Column("currency", sa.String(3), nullable=False, server_default=""),
        sa.Column("delta", sa.Integer(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("validation_time", sa.BigInteger(), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("id", name="pk_list_count_changes"),
        reused_ids=True,
    )
    if _on_postgresql():
        _index("ix_list_count_changes_list_name", "list_count_changes", "merchant_id", "env", "list_name")
    else:
        _index("uq_list_count_changes", "list_count_changes", *_CHANGE_KEY, unique=True)
    _table(
        "payment_figures",
        _merchant("payment_figures"),
        _env(),
        sa.Column("hour", sa.Integer(), nullable=False),
        sa.Column("operator", sa.String(32), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("payment_count", sa.BigInteger(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("validation_time", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            "merchant_id", "env", "hour", "operator", "currency", "status", name="pk_payment_figures"
        ),
        _one_of("payment_figures", "env", "test", "live"),
        _one_of("payment_figures", "status", "succeeded", "failed", "refunded"),
        is_index=True,
    )
    _table(
        "exports",
        _id(),
        _merchant("exports"),
        _env(),
        sa.Column("user_id", sa.BigInteger(), sa.ForeignKey("users.id", name="fk_exports_user_id"), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("format", sa.String(8), nullable=False),
        sa.Column("currency", sa.String(3)),
        sa.Column("language", sa.String(2), nullable=False),
        sa.Column("time_zone", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("reached_at", sa.BigInteger()),
        sa.Column("row_count", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("filters", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_exports"),
        _one_of("exports", "env", "test", "live"),
        _one_of("exports", "kind", "payments", "refunds", "movements"),
        _one_of("exports", "format", "csv", "xlsx"),
        _one_of("exports", "language", "fr", "en"),
        _one_of("exports", "status", "direct", "pending", "ready", "failed"),
        sa.CheckConstraint("since <= until", name="ck_exports_period"),
        sa.CheckConstraint("(kind = 'movements') = (currency IS NOT NULL)", name="ck_exports_currency"),
        sa.CheckConstraint("(status = 'pending') = (due_at IS NOT NULL)", name="ck_exports_due_at"),
    )
    _index("ix_exports_newest", "exports", "merchant_id", "env", "id")
    _index("ix_exports_prepared", "exports", "merchant_id", "expires_at", where="status IN ('pending', 'ready')")
    _index("ix_exports_due_at", "exports", "due_at", "id", "merchant_id", where="status = 'pending'")
    _index("ix_exports_partition_key", "exports", "merchant_id", "due_at", "id", where="status = 'pending'")
    _table(
        "export_chunks",
        _id(),
        sa.Column(
            "export_id", sa.BigInteger(), sa.ForeignKey("exports.id", name="fk_export_chunks_export_id"), nullable=False
        ),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_export_chunks"),
        sa.UniqueConstraint("export_id", "number", name="uq_export_chunks_number"),
    )


def _staff() -> None:
    _table(
        "incidents",
        _id(),
        _merchant("incidents"),
        _env(),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("subject_type", sa.String(8), nullable=False),
        sa.Column("reference", _UUID, nullable=False),
        sa.Column("provider_account", sa.String(64)),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("occurrences", sa.Integer(), nullable=False),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("closed_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_incidents"),
        sa.UniqueConstraint("merchant_id", "kind", "reference", name="uq_incidents_reference"),
        _one_of("incidents", "env", "test", "live"),
        _one_of("incidents", "subject_type", "payment", "refund", "dispute", "account"),
    )
    _index("ix_incidents_open", "incidents", "id", where="closed_at IS NULL")
    _index("ix_incidents_open_account", "incidents", "provider_account", "kind", where="closed_at IS NULL")
    _table(
        "approval_requests",
        _id(),
        sa.Column("act", sa.String(32), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        _merchant("approval_requests"),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column(
            "user_id", sa.BigInteger(), sa.ForeignKey("users.id", name="fk_approval_requests_user_id"), nullable=False
        ),
        sa.Column("os_user", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("decided_by", sa.Text()),
        sa.Column("decided_at", sa.BigInteger()),
        sa.Column("decision_reason", sa.Text()),
        sa.Column("effective_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_approval_requests"),
        _one_of(
            "approval_requests",
            "act",
            "payment.settle",
            "refund.settle",
            "refund.confirm_payee",
            "late_money.resolve",
            "dispute.resolve",
            "wallet.reopen",
            "account.confirm",
            "treasury.record",
            "staff.add",
            "staff.restore",
            "team.give_role",
        ),
        _one_of("approval_requests", "status", "pending", "approved", "refused", "expired"),
        sa.CheckConstraint(
            "(status IN ('approved', 'refused')) = (decided_by IS NOT NULL AND decided_at IS NOT NULL)",
            name="ck_approval_requests_decided",
        ),
    )
    _index("uq_approval_requests_subject", "approval_requests", "subject", where="status = 'pending'", unique=True)
    _table(
        "staff_jobs",
        _id(),
        sa.Column("kind", sa.String(24), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), sa.ForeignKey("merchants.id", name="fk_staff_jobs_merchant_id")),
        sa.Column("user_id", sa.BigInteger(), sa.ForeignKey("users.id", name="fk_staff_jobs_user_id"), nullable=False),
        sa.Column("request_hash", sa.String(64), nullable=False),
        sa.Column("parameters", sa.Text()),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger()),
        sa.Column("result", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_staff_jobs"),
        sa.UniqueConstraint("request_hash", name="uq_staff_jobs_request_hash"),
        _one_of(
            "staff_jobs",
            "kind",
            "anonymise_customer",
            "ledger_margin",
            "provider_check",
            "provider_deep_check",
            "provider_balances",
            "compare_statement",
            "wave_merchants",
        ),
        _one_of("staff_jobs", "status", "pending", "done", "failed"),
        sa.CheckConstraint(
            "(kind = 'anonymise_customer') = (merchant_id IS NOT NULL)", name="ck_staff_jobs_merchant_id"
        ),
        sa.CheckConstraint("(status = 'pending') = (parameters IS NOT NULL)", name="ck_staff_jobs_parameters"),
        sa.CheckConstraint("(status = 'pending') = (due_at IS NOT NULL)", name="ck_staff_jobs_due_at"),
        sa.CheckConstraint("(status = 'pending') = (finished_at IS NULL)", name="ck_staff_jobs_finished_at"),
        sa.CheckConstraint("(status = 'done') = (result IS NOT NULL)", name="ck_staff_jobs_result"),
    )
    _index("ix_staff_jobs_newest", "staff_jobs", "kind", "id")
    _index("ix_staff_jobs_merchant", "staff_jobs", "merchant_id", "id", where="merchant_id IS NOT NULL")
    _index("ix_staff_jobs_due_at", "staff_jobs", "due_at", "id", "kind", where="status = 'pending'")
    _index("ix_staff_jobs_partition_key", "staff_jobs", "kind", "due_at", "id", where="status = 'pending'")
    _table(
        "audit_log",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("os_user", sa.Text(), nullable=False),
        sa.Column("action", sa.String(48), nullable=False),
        sa.Column("subject_type", sa.String(32), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("merchant_id", sa.BigInteger()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("before", sa.Text(), nullable=False),
        sa.Column("after", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit_log"),
    )
    _index("ix_audit_log_subject", "audit_log", "subject", "number")
    _index("ix_audit_log_merchant_id", "audit_log", "merchant_id", "number", where="merchant_id IS NOT NULL")
    _index("ix_audit_log_actor", "audit_log", "actor", "number")
    _index("ix_audit_log_action", "audit_log", "action", "number")
    head = _table(
        "audit_log_head",
        sa.Column("singleton", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("singleton", name="pk_audit_log_head"),
        sa.CheckConstraint("singleton = 1", name="ck_audit_log_head_singleton"),
    )
    op.bulk_insert(head, [{"singleton": 1, "number": 0, "digest": "0" * 64}])
    published = _table(
        "published_heads",
        sa.Column("singleton", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("database_id", sa.String(36), nullable=False),
        sa.Column("published_at", sa.BigInteger()),
        sa.Column("posting_id", sa.BigInteger()),
        sa.Column("link", sa.BigInteger()),
        sa.Column("digest", sa.String(64)),
        sa.Column("act", sa.BigInteger()),
        sa.Column("act_digest", sa.String(64)),
        sa.Column("demonstration", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.PrimaryKeyConstraint("singleton", name="pk_published_heads"),
        sa.CheckConstraint("singleton = 1", name="ck_published_heads_singleton"),
    )
    op.bulk_insert(published, [{"singleton": 1, "database_id": str(uuid4())}])


def _workers() -> None:
    _table(
        "worker_leases",
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.Column("result", sa.Text()),
        sa.PrimaryKeyConstraint("name", name="pk_worker_leases"),
    )
    _table(
        "write_probe",
        sa.Column("name", sa.String(16), nullable=False),
        sa.Column("written_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_write_probe"),
    )


def _on_postgresql() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def _table(name: str, *items: Any, reused_ids: bool = False, is_index: bool = False) -> sa.Table:
    # AUTOINCREMENT: SQLite never uses a number again, not even that of a last row that was rolled back.
    numbered = any(isinstance(item, sa.Column) and item.name == "id" for item in items)
    options = {"sqlite_autoincrement": numbered and not reused_ids, "sqlite_with_rowid": not is_index}
    return op.create_table(name, *items, **options)


def _id() -> sa.Column[int]:
    """A number that the database gives; INTEGER on SQLite, where only that is an alias of the rowid."""
    return sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), nullable=False)


def _one_of(table: str, column: str, *values: str) -> sa.CheckConstraint:
    """Written with OR: for IN with three values or more SQLite makes a temporary index each time it checks a row."""
    return sa.CheckConstraint(" OR ".join(f"{column} = '{value}'" for value in values), name=f"ck_{table}_{column}")


def _env() -> sa.Column[str]:
    return sa.Column("env", sa.String(4), nullable=False)


def _merchant(table: str) -> sa.Column[int]:
    reference = sa.ForeignKey("merchants.id", name=f"fk_{table}_merchant_id")
    return sa.Column("merchant_id", sa.BigInteger(), reference, nullable=False)


def _index(name: str, table: str, *columns: str, where: str | None = None, unique: bool = False) -> None:
    condition = None if where is None else sa.text(where)
    op.create_index(name, table, list(columns), unique=unique, postgresql_where=condition, sqlite_where=condition)


#: The status in which a payment, a refund or a delivery begins. It has no counts of its own: it is all of a list less
#: the others.
_FIRST_STATUS: Final = "pending"
#: (table, name of the list). {row} is NEW or OLD.
_COUNTED: Final[tuple[tuple[str, str], ...]] = (
    ("payments", "'payments'"),
    ("refunds", "'refunds'"),
    ("webhook_deliveries", "'deliveries/' || {row}.event"),
)
#: What a payment that has a result says besides, for the figures. `updated_at` of a payment that succeeded is when it
#: did; a refund changes both.
_FIGURES: Final = {
    "operator": "{row}.operator",
    "currency": "{row}.currency",
    "amount": "{delta} * {row}.amount",
    "validation_time": "CASE WHEN {row}.status = 'succeeded' THEN {delta} * ({row}.updated_at - {row}.created_at) "
    "ELSE 0 END",
}
_CHANGE_KEY: Final = ("merchant_id", "env", "list_name", "hour", "status", "operator", "currency")
_CHANGE_SUMS: Final = ("delta", "amount", "validation_time")


def _count_rows() -> None:
    """Triggers that note in `list_count_changes` whenever a long list gains or loses a row, and a row has another
    status. Triggers and not code: creating a payment stays one statement, and a row changed by hand is counted too.
    """
    for table, list_name in _COUNTED:
        gained, lost = (_change(list_name, row, delta) for row, delta in (("NEW", 1), ("OLD", -1)))
        if _on_postgresql():  # Once for all rows of a statement. An UPDATE of one row costs more like that: not there.
            inserted = f"AFTER INSERT ON {table} REFERENCING NEW TABLE AS gained FOR EACH STATEMENT"
            _trigger(f"count_{table}_insert", inserted, _change_of_many(list_name, "gained"))
        else:
            _trigger(f"count_{table}_insert", f"AFTER INSERT ON {table} FOR EACH ROW", gained)
        _trigger(f"count_{table}_delete", f"AFTER DELETE ON {table} FOR EACH ROW", lost)
        figures = _FIGURES if table == "payments" else {}
        gained, lost = (
            _change(list_name, row, delta, status="{row}.status", **figures) for row, delta in (("NEW", 1), ("OLD", -1))
        )
        had, has = (f"{row}.status <> '{_FIRST_STATUS}'" for row in ("OLD", "NEW"))
        changed = f"AFTER UPDATE OF status ON {table} FOR EACH ROW WHEN (OLD.status <> NEW.status AND"
        _trigger(f"count_{table}_insert_status", f"AFTER INSERT ON {table} FOR EACH ROW WHEN ({has})", gained)
        _trigger(f"count_{table}_delete_status", f"AFTER DELETE ON {table} FOR EACH ROW WHEN ({had})", lost)
        _trigger(f"count_{table}_new_status", f"{changed} {has})", gained)
        _trigger(f"count_{table}_old_status", f"{changed} {had})", lost)


def _counted_under(list_name: str) -> dict[str, str]:
    return {
        "merchant_id": "{row}.merchant_id",
        "env": "{row}.env",
        "list_name": list_name,
        "hour": f"{{row}}.created_at / {_HOUR}",
    }


def _change_of_many(list_name: str, rows: str) -> str:
    columns = _counted_under(list_name)
    values = ", ".join(columns.values()).format(row=rows)
    into = f"INSERT INTO {_schema()}list_count_changes ({', '.join(columns)}, delta)"
    return f"{into} SELECT {values}, COUNT(*) FROM {rows} GROUP BY 1, 2, 3, 4; "  # noqa: S608


def _change(list_name: str, row: str, delta: int, **others: str) -> str:
    columns = {**_counted_under(list_name), "delta": "{delta}", **others}
    values = ", ".join(columns.values()).format(row=row, delta=delta)
    into = f"INSERT INTO {_schema()}list_count_changes ({', '.join(columns)}) VALUES ({values})"  # noqa: S608
    if _on_postgresql():
        return f"{into}; "
    # One writer, so no row is waited for: what is alike is added up at once, and there is little to roll up.
    added = ", ".join(f"{name} = {name} + excluded.{name}" for name in _CHANGE_SUMS)
    return f"{into} ON CONFLICT ({', '.join(_CHANGE_KEY)}) DO UPDATE SET {added}; "


def _schema() -> str:
    """Bodies of triggers name the schema of their table: `search_path` is that of whoever writes."""
    return "public." if _on_postgresql() else ""


def _trigger(name: str, event: str, body: str) -> None:
    if _on_postgresql():
        op.execute(f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NULL; END $$")
        op.execute(f"CREATE TRIGGER {name} {event} EXECUTE FUNCTION {name}()")
    else:
        op.execute(f"CREATE TRIGGER {name} {event} BEGIN {body} END")


def _add_figures() -> None:
    """A trigger that adds rows to `payment_figures` when they are deleted from `list_count_changes`, which is how a
    worker takes them: neither a creation nor a settlement writes another row, and a worker of another release feeds
    the figures too."""
    key = ("merchant_id", "env", "hour", "operator", "currency", "status")
    sums = ("payment_count", "amount", "validation_time")
    added = ", ".join(f"{name} = payment_figures.{name} + excluded.{name}" for name in sums)
    into = f"INSERT INTO {_schema()}payment_figures ({', '.join((*key, *sums))})"
    conflict = f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {added};"
    if _on_postgresql():
        # Once for each statement, in the order of the keys: two workers cannot wait for each other.
        keys, totals = ", ".join(key), ", ".join(f"SUM({name})" for name in _CHANGE_SUMS)
        _trigger(
            "add_payment_figures",
            "AFTER DELETE ON list_count_changes REFERENCING OLD TABLE AS taken FOR EACH STATEMENT",
            f"{into} SELECT {keys}, {totals} FROM taken "  # noqa: S608
            f"WHERE operator <> '' GROUP BY {keys} ORDER BY {keys} {conflict}",
        )
        return
    values = ", ".join(f"OLD.{name}" for name in (*key, *_CHANGE_SUMS))
    _trigger(
        "add_payment_figures",
        "AFTER DELETE ON list_count_changes FOR EACH ROW WHEN (OLD.operator <> '')",
        f"{into} VALUES ({values}) {conflict}",
    )


def _keep_audit_log() -> None:
    """Triggers that refuse every change of the audit log but a new row."""
    refusal = "the audit log is append-only"
    if _on_postgresql():
        op.execute(
            "CREATE FUNCTION refuse_audit_log_change() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{refusal}' USING ERRCODE = 'restrict_violation', "
            "CONSTRAINT = 'audit_log_is_append_only'; END $$"
        )
        op.execute(
            "CREATE TRIGGER refuse_audit_log_change BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_log_change()"
        )
    else:
        for event in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER refuse_audit_log_{event.lower()} BEFORE {event} ON audit_log "
                f"BEGIN SELECT RAISE(ABORT, '{refusal}'); END"
            )
