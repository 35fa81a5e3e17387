"""The tables about our own money at providers and banks (`guichet/treasury/`)."""

from typing import Final

from sqlalchemy import BigInteger, CheckConstraint, Column, Index, String, Text, UniqueConstraint

from guichet.db.tables.columns import UUID, id_column, merchant_column, one_of, partial_index, table
from guichet.domain.treasury import MOVEMENT_KINDS, MOVEMENT_STATUSES, READING_SOURCES

treasury_movements: Final = table(
    "treasury_movements",
    id_column(),
    merchant_column(),
    Column("reference", UUID, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("currency", String(3), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("source", String(128), nullable=False),
    Column("destination", String(128), nullable=False),
    Column("status", String(16), nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    UniqueConstraint("reference", name="uq_treasury_movements_reference"),
    one_of("kind", MOVEMENT_KINDS, "treasury_movements"),
    one_of("status", MOVEMENT_STATUSES, "treasury_movements"),
    CheckConstraint("amount > 0", name="ck_treasury_movements_amount"),
    CheckConstraint("(status = 'announced') = (ended_at IS NULL)", name="ck_treasury_movements_ended_at"),
    partial_index("ix_treasury_movements_announced", "id", where="status = 'announced'"),
)

treasury_rollups: Final = table(
    "treasury_rollups",
    Column("through_posting_id", BigInteger, primary_key=True, autoincrement=False),
    Column("sums", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

treasury_readings: Final = table(
    "treasury_readings",
    id_column(),
    Column("place", String(128), nullable=False),
    Column("source", String(16), nullable=False),
    Column("stated", BigInteger, nullable=False),
    Column("ledger", BigInteger, nullable=False),
    Column("low", BigInteger, nullable=False),
    Column("high", BigInteger, nullable=False),
    Column("difference", BigInteger, nullable=False),
    Column("moved", BigInteger, nullable=False),
    Column("read_at", BigInteger, nullable=False),
    one_of("source", READING_SOURCES, "treasury_readings"),
    Index("ix_treasury_readings_place", "place", "read_at"),
)
