"""What a merchant owns and cannot spend: refunds that are not paid yet, and credits of a wallet that is not active.

Cost: the merchant's pending refunds (`ix_refunds_held`) and suspended credits (`ix_wallet_entries_wallet`).
"""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import BigInteger, bindparam, cast, func, select, text

from guichet.db.engine import Reader, require
from guichet.db.tables import payments, refunds, wallet_entries
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency, Hundredths

#: In the words of its partial index, which SQLite would not use for other ones.
_HELD_REFUNDS: Final = text("refunds.status = 'pending' AND refunds.held")
_SUSPENDED: Final = (
    select(func.coalesce(func.sum(wallet_entries.c.amount), 0))
    .where(
        wallet_entries.c.merchant_id == bindparam("merchant_id"),
        wallet_entries.c.env == bindparam("env"),
        wallet_entries.c.currency == bindparam("currency"),
        wallet_entries.c.suspended,
    )
    .scalar_subquery()
)
#: Of a refund the wallet's part: the fee is paid back from the service's.
_HELD: Final = (
    select(cast(func.coalesce(func.sum(payments.c.amount), 0), BigInteger), func.count(), cast(_SUSPENDED, BigInteger))
    .select_from(refunds)
    .join(payments, payments.c.id == refunds.c.payment_id)
    .where(
        refunds.c.merchant_id == bindparam("merchant_id"),
        refunds.c.env == bindparam("env"),
        refunds.c.currency == bindparam("currency"),
        _HELD_REFUNDS,
    )
)


@dataclass(frozen=True, slots=True)
class Held:
    """`refunds`: how many are on their way, which hold `for_refunds`. `suspended`: credits that wait for the wallet."""

    for_refunds: Hundredths
    refunds: int
    suspended: Hundredths

    @property
    def total(self) -> Hundredths:
        return Hundredths(self.for_refunds + self.suspended)


async def held(db: Reader, merchant_id: MerchantId, env: Environment, currency: Currency) -> Held:
    """One statement, so that the parts belong together."""
    row = require(await db.one(_HELD, merchant_id=merchant_id, env=env, currency=currency))
    return Held(Hundredths(row[0]), int(row[1]), Hundredths(row[2]))
