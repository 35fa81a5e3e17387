"""People: users, their merchants, second factors, sessions, links in mails, and the queue of mails."""

import sqlalchemy as sa
from alembic import op

revision = "v0020_admits_v0016"
down_revision = "v0019_admits_v0016"


def upgrade() -> None:
    _users()
    _memberships()
    _recovery_codes()
    _sessions()
    _mail_links()
    _mails()


def _users() -> None:
    op.create_table(
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
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("email", name="uq_users_email"),
        sa.CheckConstraint("status IN ('invited', 'active', 'disabled')", name="ck_users_status"),
        sa.CheckConstraint("language IN ('fr', 'en')", name="ck_users_language"),
        sa.CheckConstraint("staff_role IN ('admin', 'support', 'finance', 'auditor')", name="ck_users_staff_role"),
        sa.CheckConstraint("status <> 'active' OR password_hash IS NOT NULL", name="ck_users_password_hash"),
        sa.CheckConstraint("totp_secret IS NOT NULL OR NOT totp_confirmed", name="ck_users_totp_confirmed"),
        sqlite_autoincrement=True,
    )
    _partial_index("ix_users_staff", "users", ["id"], "staff_role IS NOT NULL")


def _memberships() -> None:
    roles = "('owner', 'finance', 'cashier', 'developer', 'reader')"
    op.create_table(
        "memberships",
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "merchant_id", name="pk_memberships"),
        _user("memberships"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_memberships_merchant_id"),
        sa.CheckConstraint(f"role IN {roles}", name="ck_memberships_role"),
    )
    op.create_index("ix_memberships_merchant_id", "memberships", ["merchant_id", "user_id"])


def _recovery_codes() -> None:
    op.create_table(
        "recovery_codes",
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("user_id", "hash", name="pk_recovery_codes"),
        _user("recovery_codes"),
    )


def _sessions() -> None:
    op.create_table(
        "user_sessions",
        _id(),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("factor_at", sa.BigInteger()),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_user_sessions"),
        _user("user_sessions"),
        sa.UniqueConstraint("hash", name="uq_user_sessions_hash"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_user_sessions_user_id", "user_sessions", ["user_id", "id"])


def _mail_links() -> None:
    op.create_table(
        "mail_links",
        _id(),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("purpose", sa.String(16), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_mail_links"),
        _user("mail_links"),
        sa.UniqueConstraint("hash", name="uq_mail_links_hash"),
        sa.CheckConstraint("purpose IN ('invitation', 'password')", name="ck_mail_links_purpose"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_mail_links_user_id", "mail_links", ["user_id", "purpose", "id"])


def _mails() -> None:
    op.create_table(
        "mails",
        _id(),
        sa.Column("user_id", sa.BigInteger()),
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
        _user("mails"),
        sa.CheckConstraint("status IN ('pending', 'sent', 'failed')", name="ck_mails_status"),
        sa.CheckConstraint("attempts BETWEEN 0 AND 5", name="ck_mails_attempts"),
        sa.CheckConstraint("(status = 'pending') = (next_attempt_at IS NOT NULL)", name="ck_mails_next_attempt_at"),
        sa.CheckConstraint("status <> 'pending' OR message IS NOT NULL", name="ck_mails_message"),
        sqlite_autoincrement=True,
    )
    pending = "status = 'pending'"
    _partial_index("ix_mails_next_attempt_at", "mails", ["next_attempt_at", "id", "kind"], pending)
    _partial_index("ix_mails_partition_key", "mails", ["kind", "next_attempt_at", "id"], pending)


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), nullable=False)


def _user(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=f"fk_{table}_user_id")


def _partial_index(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(name, table, columns, postgresql_where=sa.text(where), sqlite_where=sa.text(where))
