"""The tables about our accounts with providers: balances, identities, our merchants' names there, and our own money at
providers and banks (`guichet/treasury/`)."""

from typing import Final

from sqlalchemy import BigInteger, CheckConstraint, Column, Index, PrimaryKeyConstraint, String, Text, UniqueConstraint

from guichet.db.tables.columns import UUID, id_column, merchant_column, one_of, partial_index, table
from guichet.domain.treasury import MOVEMENT_KINDS, MOVEMENT_STATUSES, READING_SOURCES

#: What a provider said last about our money with it, in hundredths. `alert_below`: the bound of the providers' file.
provider_balances: Final = table(
    "provider_balances",
    Column("provider_account", String(64), nullable=False),
    Column("wallet", Text, nullable=False),
    Column("currency", String(3), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("alert_below", BigInteger),
    PrimaryKeyConstraint("provider_account", "wallet", "currency", name="pk_provider_balances"),
)

#: When the balances of an account are due to be read, which is also the lease of the worker that reads them, and how
#: the last reading ended: `error` is null after a success, `read_at` is the time of the last success.
provider_balance_reads: Final = table(
    "provider_balance_reads",
    Column("provider_account", String(64), primary_key=True),
    Column("next_read_at", BigInteger, nullable=False),
    Column("read_at", BigInteger),
    Column("error", Text),
)

#: Whose account the credentials of a fingerprint belong to, where no setting names it. `stated`: what the provider said
#: last, or the fingerprint where it says nothing. `identity`: the same at first, and what two people decided since;
#: null from another `stated` than before until they decide.
provider_identities: Final = table(
    "provider_identities",
    Column("provider_account", String(64), nullable=False),
    Column("fingerprint", String(32), nullable=False),
    Column("identity", Text),
    Column("stated", Text, nullable=False),
    Column("read_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("provider_account", "fingerprint", name="pk_provider_identities"),
)

#: The provider's own id of one of our merchants, where the account must name it (Wave's aggregated merchants).
provider_merchants: Final = table(
    "provider_merchants",
    Column("provider_account", String(64), nullable=False),
    merchant_column(),
    Column("provider_merchant_id", Text, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("provider_account", "merchant_id", name="pk_provider_merchants"),
)


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
