"""The tables about our accounts with providers: the balances that we have there, and our merchants' names there."""

from typing import Final

from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, String, Text

from guichet.db.tables.columns import merchant_column, table

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
