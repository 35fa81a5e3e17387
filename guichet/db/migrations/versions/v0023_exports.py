"""Exports and the pieces of their files; checkpoints of wallets; an index over held refunds."""

import sqlalchemy as sa
from alembic import op

revision = "v0023_admits_v0016"
down_revision = "v0022_admits_v0016"


def upgrade() -> None:
    _exports()
    _export_chunks()
    _wallet_checkpoints()


def _exports() -> None:
    op.create_table(
        "exports",
        _id(),
        _number("merchant_id"),
        sa.Column("env", sa.String(4), nullable=False),
        _number("user_id"),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("format", sa.String(8), nullable=False),
        sa.Column("currency", sa.String(3)),
        sa.Column("language", sa.String(2), nullable=False),
        sa.Column("time_zone", sa.Text(), nullable=False),
        _number("since"),
        _number("until"),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.BigInteger()),
        _number("created_at"),
        _number("expires_at"),
        sa.Column("reached_at", sa.BigInteger()),
        _number("row_count"),
        _number("size"),
        sa.PrimaryKeyConstraint("id", name="pk_exports"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_exports_merchant_id"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_exports_user_id"),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_exports_env"),
        sa.CheckConstraint("kind IN ('payments', 'refunds', 'movements')", name="ck_exports_kind"),
        sa.CheckConstraint("format IN ('csv', 'xlsx')", name="ck_exports_format"),
        sa.CheckConstraint("language IN ('fr', 'en')", name="ck_exports_language"),
        sa.CheckConstraint("status IN ('direct', 'pending', 'ready', 'failed')", name="ck_exports_status"),
        sa.CheckConstraint("since <= until", name="ck_exports_period"),
        sa.CheckConstraint("(kind = 'movements') = (currency IS NOT NULL)", name="ck_exports_currency"),
        sa.CheckConstraint("(status = 'pending') = (due_at IS NOT NULL)", name="ck_exports_due_at"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_exports_newest", "exports", ["merchant_id", "env", "id"])
    _partial_index("ix_exports_prepared", "exports", ["merchant_id", "expires_at"], "status IN ('pending', 'ready')")
    _partial_index("ix_exports_due_at", "exports", ["due_at", "id", "merchant_id"], "status = 'pending'")
    _partial_index("ix_exports_partition_key", "exports", ["merchant_id", "due_at", "id"], "status = 'pending'")


def _export_chunks() -> None:
    op.create_table(
        "export_chunks",
        _id(),
        _number("export_id"),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        _number("created_at"),
        sa.PrimaryKeyConstraint("id", name="pk_export_chunks"),
        sa.ForeignKeyConstraint(["export_id"], ["exports.id"], name="fk_export_chunks_export_id"),
        sa.UniqueConstraint("export_id", "number", name="uq_export_chunks_number"),
        sqlite_autoincrement=True,
    )


def _wallet_checkpoints() -> None:
    op.create_table(
        "wallet_checkpoints",
        _number("merchant_id"),
        sa.Column("env", sa.String(4), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        _number("at"),
        _number("balance"),
        sa.PrimaryKeyConstraint("merchant_id", "env", "currency", "at", name="pk_wallet_checkpoints"),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name="fk_wallet_checkpoints_merchant_id"),
        sa.CheckConstraint("env IN ('test', 'live')", name="ck_wallet_checkpoints_env"),
    )


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _partial_index(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(name, table, columns, postgresql_where=sa.text(where), sqlite_where=sa.text(where))
