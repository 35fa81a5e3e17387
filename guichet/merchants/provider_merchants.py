"""The providers' own ids of our merchants, where an account must name the merchant of each payment
(docs/decisions.md, "Provider merchants")."""

from functools import partial
from typing import Final

from sqlalchemy import bindparam, select

from guichet.clock import Clock, Instant
from guichet.db.engine import Database, Reader, Writer
from guichet.db.read_cache import ReadCache
from guichet.db.sql_functions import params, upsert
from guichet.db.tables import provider_merchants
from guichet.domain.ids import MerchantId

_OF_ACCOUNT: Final = provider_merchants.c.provider_account == bindparam("account")
_ONE: Final = select(provider_merchants.c.provider_merchant_id).where(
    _OF_ACCOUNT, provider_merchants.c.merchant_id == bindparam("merchant")
)
_ALL: Final = select(provider_merchants.c.merchant_id, provider_merchants.c.provider_merchant_id).where(_OF_ACCOUNT)
_INSERT: Final = upsert(provider_merchants).values(params(*provider_merchants.c.keys()))
_REMEMBER: Final = _INSERT.on_conflict_do_update(
    index_elements=["provider_account", "merchant_id"],
    set_={name: _INSERT.excluded[name] for name in ("provider_merchant_id", "updated_at")},
)


async def ids_of(db: Reader, account: str) -> dict[MerchantId, str]:
    """Grows with the number of merchants; for the command line."""
    return dict(await db.all(_ALL, account=account))


async def remember(db: Writer, account: str, merchant_id: MerchantId, provider_merchant_id: str, now: Instant) -> None:
    """Stores the id, in place of another one that was stored before."""
    await db.write(
        _REMEMBER,
        provider_account=account,
        merchant_id=merchant_id,
        provider_merchant_id=provider_merchant_id,
        updated_at=now,
    )


class ProviderMerchants:
    """The ids, at most one second old; a missing one is looked for each time, so that a new one works at once."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._cached = ReadCache(clock, partial(_id_of, db))

    async def id_of(self, account: str, merchant_id: MerchantId) -> str | None:
        return await self._cached.get((account, merchant_id))


async def _id_of(db: Reader, key: tuple[str, MerchantId]) -> str | None:
    return await db.one_as(str, _ONE, account=key[0], merchant=key[1])
