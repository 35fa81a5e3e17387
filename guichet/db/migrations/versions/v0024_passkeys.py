"""Passkeys, and the seed of a new telephone while the old one still counts."""

import sqlalchemy as sa
from alembic import op

revision = "v0024_admits_v0016"
down_revision = "v0023_admits_v0016"


def upgrade() -> None:
    op.add_column("users", sa.Column("next_totp_secret", sa.Text()))
    op.create_table(
        "passkeys",
        _id(),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("credential_id", sa.Text(), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("sign_count", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_passkeys"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_passkeys_user_id"),
        sa.UniqueConstraint("credential_id", name="uq_passkeys_credential_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_passkeys_user_id", "passkeys", ["user_id", "id"])
    op.create_table(
        "passkey_challenges",
        _id(),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("user_id", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_passkey_challenges"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_passkey_challenges_user_id"),
        sa.UniqueConstraint("hash", name="uq_passkey_challenges_hash"),
        sqlite_autoincrement=True,
    )


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), nullable=False)
