"""The tables of exports: who asked for which file, and the encrypted pieces of the files that the worker prepared."""

from typing import Final

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Index, Integer, String, Text, UniqueConstraint

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
from guichet.domain.exports import EXPORT_FORMATS, EXPORT_KINDS, EXPORT_STATUSES
from guichet.domain.merchants import ENVS

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
