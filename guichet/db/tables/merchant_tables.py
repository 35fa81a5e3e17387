"""The tables of merchants: accounts, keys, webhook endpoints, and what the staff changed in the catalogue."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    PrimaryKeyConstraint,
    String,
    Text,
    UniqueConstraint,
)

from guichet.db.tables.columns import env_column, id_column, merchant_column, one_of, partial_index, table
from guichet.domain.merchants import ENVS, MERCHANT_STATUSES

merchants: Final = table(
    "merchants",
    id_column(),
    Column("name", Text, nullable=False),
    Column("status", String(16), nullable=False),
    Column("currency", String(3), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("time_zone", String(64)),
    one_of("status", MERCHANT_STATUSES, "merchants"),
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
    UniqueConstraint("hash", name="uq_api_keys_hash"),
    one_of("env", ENVS, "api_keys"),
    Index("ix_api_keys_merchant_id", "merchant_id", "id"),
)

webhook_endpoints: Final = table(
    "webhook_endpoints",
    merchant_column(),
    env_column(),
    Column("url", Text),
    Column("secret", Text, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
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
