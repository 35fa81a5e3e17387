"""The tables of payment links, payments and the callbacks about them.

Columns stand in the order of the fields of their class in `domain/`, so that a row unpacks into it (held by a test).
"""

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
    case,
    false,
)

from guichet.db.tables.columns import (
    BYTES,
    UUID,
    env_column,
    id_column,
    merchant_column,
    one_of,
    partial_index,
    queue_indexes,
    table,
)
from guichet.domain.merchants import ENVS
from guichet.domain.payment_links import LINK_TYPES, SESSION_STATUSES
from guichet.domain.payments import PAYMENT_STATUSES, SUBJECT_TYPES

#: The payments through links that asked a telephone to confirm (`links/prompt_limits.py`).
LINK_PROMPTS: Final = "link_id IS NOT NULL AND phone_number IS NOT NULL"
#: The links of an environment that have an external_id. One index for each: one over both would be a rule that older
#: code does not know. Their columns stand in another order, since SQLite names a violated index by its columns.
LIVE_EXTERNAL_ID: Final = "external_id IS NOT NULL AND NOT test AND session_reference IS NULL"
TEST_EXTERNAL_ID: Final = "external_id IS NOT NULL AND test AND session_reference IS NULL"
#: The external_ids of checkout sessions, which are links of another kind (docs/decisions.md, "Checkout sessions").
SESSION_EXTERNAL_ID: Final = "external_id IS NOT NULL AND session_reference IS NOT NULL"
#: What a merchant and its staff know as links.
PLAIN_LINKS: Final = "session_reference IS NULL"
#: The sales of the cash desk whose cashier is known.
CASHIER_KNOWN: Final = "cashier_id IS NOT NULL"
#: The same sales for the list of one cashier. In other words, so that no database takes its index for that of a day.
OF_CASHIER: Final = "cashier_id IS NOT NULL AND cash_desk"

payment_links: Final = table(
    "payment_links",
    id_column(),
    merchant_column(),
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
    Column("late_uses", BigInteger, nullable=False, server_default="0"),
    Column("external_id", BYTES),
    Column("metadata", Text),
    Column("return_url", Text),
    Column("cancelled_at", BigInteger),
    Column("test", Boolean, nullable=False, server_default=false()),
    Column("cash_desk", Boolean, nullable=False, server_default=false()),
    Column("cashier_id", BigInteger, ForeignKey("users.id")),
    Column("session_reference", UUID),
    Column("session_status", String(9)),
    Column("payment_reference", UUID),
    Column("cancel_url", Text),
    Column("operators", Text),
    Column("customer", Text),
    UniqueConstraint("token", name="uq_payment_links_token"),
    one_of("type", LINK_TYPES, "payment_links"),
    one_of("session_status", SESSION_STATUSES, "payment_links"),
    CheckConstraint("(session_reference IS NULL) = (session_status IS NULL)", name="ck_payment_links_session"),
    CheckConstraint(
        "(payment_reference IS NOT NULL) = (COALESCE(session_status, '') = 'completed')",
        name="ck_payment_links_payment_reference",
    ),
    CheckConstraint("amount > 0", name="ck_payment_links_amount"),
    CheckConstraint("max_uses >= 1", name="ck_payment_links_max_uses"),
    CheckConstraint(
        "completed_uses >= 0 AND completed_uses <= reserved_uses "
        "AND reserved_uses <= COALESCE(max_uses, reserved_uses)",
        name="ck_payment_links_uses",
    ),
    partial_index("ix_payment_links_newest", "merchant_id", "test", "id", where=PLAIN_LINKS),
    partial_index("ix_payment_links_kind", "merchant_id", "test", "cash_desk", "id", where=PLAIN_LINKS),
    partial_index("ix_payment_links_sales", "merchant_id", "test", "created_at", where=CASHIER_KNOWN),
    partial_index("ix_payment_links_cashier", "cashier_id", "merchant_id", "test", "id", where=OF_CASHIER),
    partial_index("uq_payment_links_external_id", "merchant_id", "external_id", unique=True, where=LIVE_EXTERNAL_ID),
    partial_index(
        "uq_payment_links_test_external_id", "external_id", "merchant_id", unique=True, where=TEST_EXTERNAL_ID
    ),
    partial_index(
        "uq_payment_links_session_external_id",
        "merchant_id",
        "test",
        "external_id",
        unique=True,
        where=SESSION_EXTERNAL_ID,
    ),
    partial_index(
        "uq_payment_links_session_reference", "session_reference", unique=True, where="session_reference IS NOT NULL"
    ),
    partial_index("ix_payment_links_open_sessions", "expires_at", "id", where="session_status = 'open'"),
)

#: What a merchant with a daily limit has collected on one of its days, waiting payments included, in hundredths
#: (`merchants/limits.py`). `day`: a `date.toordinal()`.
daily_totals: Final = table(
    "daily_totals",
    merchant_column(),
    Column("day", Integer, nullable=False),
    Column("amount", BigInteger, nullable=False),
    PrimaryKeyConstraint("merchant_id", "day"),
    CheckConstraint("amount >= 0", name="ck_daily_totals_amount"),
)

payments: Final = table(
    "payments",
    id_column(),
    merchant_column(),
    env_column(),
    Column("reference", UUID, nullable=False),
    Column("external_id", BYTES),
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
    Column("account_fingerprint", String(32)),
    Column("payer_number", String(15)),
    Column("asked_at", BigInteger),
    Column("initiation_ended_at", BigInteger),
    Column("not_found_count", Integer, nullable=False, server_default="0"),
    Column("not_found_duration", BigInteger, nullable=False, server_default="0"),
    Column("link_reserved_until", BigInteger),
    Column("answered_pending", Boolean, nullable=False, server_default=false()),
    Column("link_external_id", Text),
    Column("counted_day", Integer),
    Column("refused_at_initiation", Boolean, nullable=False, server_default=false()),
    Column("attempt_of", BigInteger, ForeignKey("payments.id")),
    Column("session_reference", UUID),
    UniqueConstraint("reference", "merchant_id", "env", name="uq_payments_reference"),
    UniqueConstraint("merchant_id", "env", "external_id", name="uq_payments_external_id"),
    one_of("env", ENVS, "payments"),
    one_of("status", PAYMENT_STATUSES, "payments"),
    CheckConstraint("amount > 0 AND fee_amount >= 0", name="ck_payments_amount"),
    CheckConstraint("total_amount = amount + fee_amount", name="ck_payments_total"),
    CheckConstraint("(status = 'pending') = (next_poll_at IS NOT NULL)", name="ck_payments_next_poll_at"),
    Index("ix_payments_newest", "merchant_id", "env", "created_at", "id"),
    Index("ix_payments_status", "merchant_id", "env", "status", "created_at", "id"),
    *queue_indexes("payments", "next_poll_at", "provider_account"),
    partial_index(
        "uq_payments_checkout_token",
        "checkout_token",
        unique=True,
        where="checkout_token IS NOT NULL",
    ),
    partial_index(
        "ix_payments_provider_reference",
        "provider_account",
        "provider_reference",
        where="provider_reference IS NOT NULL",
    ),
    partial_index(
        "ix_payments_link_reserved_until",
        "link_id",
        "link_reserved_until",
        where="status = 'pending' AND link_reserved_until IS NOT NULL",
    ),
    partial_index("ix_payments_link", "link_id", "id", where="link_id IS NOT NULL"),
    partial_index("ix_payments_attempt_of", "attempt_of", where="attempt_of IS NOT NULL"),
    partial_index(
        "ix_payments_phone_number", "phone_number", "merchant_id", "env", "id", where="phone_number IS NOT NULL"
    ),
    partial_index("ix_payments_link_prompts", "link_id", "created_at", "status", "failure_reason", where=LINK_PROMPTS),
    partial_index(
        "ix_payments_phone_prompts", "phone_number", "created_at", "status", "failure_reason", where=LINK_PROMPTS
    ),
)

#: The merchant's name for what was sold: the payment's own, or that of its checkout session.
ORDER_NUMBER: Final = case(
    (payments.c.session_reference.is_not(None), payments.c.link_external_id), else_=payments.c.external_id
)

#: By what the console finds the payments of a customer's name (`history/customer_names.py`): the words of the name,
#: from each of them on. Filled by the worker, so that no payment pays for it while it is created.
customer_names: Final = table(
    "customer_names",
    Column("merchant_id", BigInteger, nullable=False),
    env_column(),
    Column("name", BYTES, nullable=False),
    Column("payment_id", BigInteger, nullable=False),
    PrimaryKeyConstraint("merchant_id", "env", "name", "payment_id", name="pk_customer_names"),
    is_index=True,
)

#: One row: the last payment whose name is there, and when it was created.
customer_names_head: Final = table(
    "customer_names_head",
    Column("name", String(16), nullable=False),
    Column("payment_id", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("name", name="pk_customer_names_head"),
)

#: The callbacks about one payment or refund: one row, however many come. `pending`: the provider must still be asked
#: about the last one, which named `provider_reference`.
provider_callbacks: Final = table(
    "provider_callbacks",
    id_column(),
    merchant_column(),
    env_column(),
    Column("subject_type", String(8), nullable=False),
    Column("subject_id", BigInteger, nullable=False),
    Column("provider_account", String(64), nullable=False),
    Column("provider_reference", Text),
    Column("received_at", BigInteger, nullable=False),
    Column("received_count", Integer, nullable=False),
    Column("status", String(8), nullable=False),
    Column("due_at", BigInteger),
    UniqueConstraint("subject_id", "subject_type", name="uq_provider_callbacks_subject"),
    one_of("env", ENVS, "provider_callbacks"),
    one_of("subject_type", SUBJECT_TYPES, "provider_callbacks"),
    one_of("status", ("pending", "asked"), "provider_callbacks"),
    CheckConstraint("(status = 'pending') = (due_at IS NOT NULL)", name="ck_provider_callbacks_due_at"),
    *queue_indexes("provider_callbacks", "due_at", "provider_account"),
)
