"""The tables of people: users, their merchants, second factors, sessions, links in mails, and the mails themselves.

Addresses are stored in lower case. Secrets of cookies, links and recovery codes are hashed; the seed of one-time
codes and the text of a mail, which may hold a link, are encrypted.
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
)

from guichet.db.tables.columns import id_column, one_of, partial_index, queue_indexes, table
from guichet.domain.accounts import LINK_PURPOSES, USER_LANGUAGES, USER_STATUSES
from guichet.domain.mails import MAIL_STATUSES, MAX_MAIL_ATTEMPTS, PAYMENT_MAILS
from guichet.domain.roles import MERCHANT_ROLES, STAFF_ROLES


def _user_column() -> Column[int]:
    return Column("user_id", BigInteger, ForeignKey("users.id"), nullable=False)


users: Final = table(
    "users",
    id_column(),
    Column("email", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("language", String(2), nullable=False),
    Column("status", String(8), nullable=False),
    Column("staff_role", String(16)),
    Column("password_hash", Text),
    Column("totp_secret", Text),
    Column("totp_confirmed", Boolean, nullable=False),
    Column("totp_step", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("last_signed_in_at", BigInteger),
    Column("next_totp_secret", Text),
    Column("staff_since", BigInteger),
    Column("approver_until", BigInteger),
    Column("removed_approver_at", BigInteger),
    UniqueConstraint("email", name="uq_users_email"),
    one_of("status", USER_STATUSES, "users"),
    one_of("language", USER_LANGUAGES, "users"),
    one_of("staff_role", STAFF_ROLES, "users"),
    CheckConstraint("status <> 'active' OR password_hash IS NOT NULL", name="ck_users_password_hash"),
    CheckConstraint("totp_secret IS NOT NULL OR NOT totp_confirmed", name="ck_users_totp_confirmed"),
    partial_index("ix_users_staff", "id", where="staff_role IS NOT NULL"),
    partial_index("ix_users_approver_until", "approver_until", where="approver_until IS NOT NULL"),
)

memberships: Final = table(
    "memberships",
    _user_column(),
    Column("merchant_id", BigInteger, ForeignKey("merchants.id"), nullable=False),
    Column("role", String(16), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("user_id", "merchant_id"),
    one_of("role", MERCHANT_ROLES, "memberships"),
    Index("ix_memberships_merchant_id", "merchant_id", "user_id"),
)

recovery_codes: Final = table(
    "recovery_codes",
    _user_column(),
    Column("hash", String(64), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("used_at", BigInteger),
    PrimaryKeyConstraint("user_id", "hash"),
)

passkeys: Final = table(
    "passkeys",
    id_column(),
    _user_column(),
    Column("credential_id", Text, nullable=False),
    Column("public_key", Text, nullable=False),
    Column("sign_count", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger),
    UniqueConstraint("credential_id", name="uq_passkeys_credential_id"),
    Index("ix_passkeys_user_id", "user_id", "id"),
)

#: Questions to browsers that have been answered, by the hash of their nonce: none is answered twice.
passkey_challenges: Final = table(
    "passkey_challenges",
    id_column(),
    Column("hash", String(64), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("hash", name="uq_passkey_challenges_hash"),
)

user_sessions: Final = table(
    "user_sessions",
    id_column(),
    _user_column(),
    Column("hash", String(64), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_seen_at", BigInteger, nullable=False),
    Column("factor_at", BigInteger),
    Column("address", Text, nullable=False),
    Column("agent", Text, nullable=False),
    UniqueConstraint("hash", name="uq_user_sessions_hash"),
    Index("ix_user_sessions_user_id", "user_id", "id"),
)

#: A link works until it is used, replaced or expired. `merchant_id` and `role`: the place in a team that an invitation
#: offers; null in other links.
mail_links: Final = table(
    "mail_links",
    id_column(),
    _user_column(),
    Column("hash", String(64), nullable=False),
    Column("purpose", String(16), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("used_at", BigInteger),
    Column("merchant_id", BigInteger),
    Column("role", String(16)),
    UniqueConstraint("hash", name="uq_mail_links_hash"),
    one_of("purpose", LINK_PURPOSES, "mail_links"),
    Index("ix_mail_links_user_id", "user_id", "purpose", "id"),
    partial_index("ix_mail_links_offers", "merchant_id", "id", where="merchant_id IS NOT NULL"),
)

#: The queue of mails and their log. `message` is encrypted JSON; it is removed when the mail was
#: sent or given up, but kept in development, where a page shows it.
mails: Final = table(
    "mails",
    id_column(),
    Column("user_id", BigInteger, ForeignKey("users.id")),
    Column("recipient", Text, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("message", Text),
    Column("status", String(8), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("sent_at", BigInteger),
    Column("next_attempt_at", BigInteger),
    Column("error", Text),
    one_of("status", MAIL_STATUSES, "mails"),
    CheckConstraint(f"attempts BETWEEN 0 AND {MAX_MAIL_ATTEMPTS}", name="ck_mails_attempts"),
    CheckConstraint("(status = 'pending') = (next_attempt_at IS NOT NULL)", name="ck_mails_next_attempt_at"),
    CheckConstraint("status <> 'pending' OR message IS NOT NULL", name="ck_mails_message"),
    *queue_indexes("mails", "next_attempt_at", "kind"),
)

#: Who is mailed about a merchant's live payments: a person of its team, or (null) the customers, each with a receipt.
#: `due_at`: of the next mail about a day.
payment_mails: Final = table(
    "payment_mails",
    id_column(),
    Column("merchant_id", BigInteger, ForeignKey("merchants.id"), nullable=False),
    Column("user_id", BigInteger, ForeignKey("users.id")),
    Column("frequency", String(8), nullable=False),
    Column("chosen_at", BigInteger, nullable=False),
    Column("due_at", BigInteger),
    UniqueConstraint("merchant_id", "user_id", name="uq_payment_mails_user_id"),
    one_of("frequency", PAYMENT_MAILS, "payment_mails"),
    CheckConstraint("(frequency = 'daily') = (due_at IS NOT NULL)", name="ck_payment_mails_due_at"),
    partial_index("uq_payment_mails_customers", "merchant_id", where="user_id IS NULL", unique=True),
    partial_index("ix_payment_mails_due_at", "due_at", where="due_at IS NOT NULL"),
)

#: The last posting whose payment was told by mail: one row (`each`), once anybody asked for such mails.
payment_mail_progress: Final = table(
    "payment_mail_progress",
    Column("frequency", String(8), nullable=False),
    Column("through_posting_id", BigInteger, nullable=False),
    PrimaryKeyConstraint("frequency"),
)
