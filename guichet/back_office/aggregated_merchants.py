"""An aggregated merchant of Wave for each of ours: `guichet providers setup wave-merchants`, and the back office."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from guichet.context import AppContext
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Merchant
from guichet.domain.messages import Answer
from guichet.domain.records import Record
from guichet.incidents import repository as incidents
from guichet.merchants import provider_merchants
from guichet.merchants import repository as merchants
from guichet.providers.base import Unknown
from guichet.providers.capabilities import AggregatesMerchants
from guichet.providers.shared.client import ProviderAccount

#: The setting of an account in the providers' file, and its value when the account is an aggregator's.
_SETTING: Final = ("aggregated_merchants", "yes")


class NamedMerchant(Record, frozen=True):
    """A merchant that has its id now; `made`: by this run, not found at Wave."""

    provider_account: str
    merchant_id: MerchantId
    name: str
    provider_merchant_id: str
    made: bool


class StoppedAt(Record, frozen=True):
    """Where Wave did not do it. `name`: of the merchant that it did not make; None if it gave no list. `raw`: what it
    answered."""

    account: str
    name: str | None
    raw: Answer


class AggregationError(Exception):
    """What was named before stays named; the next run goes on from there. After a merchant that Wave did not say that
    it made, the next run finds the name in Wave's list."""

    def __init__(self, at: StoppedAt) -> None:
        super().__init__(at.account)
        self.at = at


def aggregating(accounts: Mapping[str, ProviderAccount]) -> list[str]:
    """The Wave accounts with `aggregated_merchants = true`."""
    setting, value = _SETTING
    return [name for name, account in accounts.items() if account.settings.get(setting) == value]


async def name_merchants(ctx: AppContext, account: str) -> AsyncIterator[NamedMerchant]:
    """Each active merchant that had no valid id with this account; its id is stored. Costs a call for each one, and
    reads all merchants. Raises AggregationError."""
    provider, db = ctx.registry.provider(account), ctx.db
    assert isinstance(provider, AggregatesMerchants)
    at_wave = await provider.merchants.ids_by_name()
    if isinstance(at_wave, Unknown):
        raise AggregationError(StoppedAt(account, None, at_wave.raw))
    known, existing = await provider_merchants.ids_of(db, account), {*at_wave.values()}
    for merchant in await merchants.all_merchants(db):
        if merchant.status != "active" or known.get(merchant.id) in existing:
            continue
        name = name_at_wave(merchant, provider.merchants.max_length)
        id_at_wave = at_wave.get(name)
        wave_id = id_at_wave or await provider.merchants.create(name)
        if not isinstance(wave_id, str):
            raise AggregationError(StoppedAt(account, name, wave_id.raw))
        now = ctx.clock.now()
        async with db.transaction() as tx:
            await provider_merchants.remember(tx, account, merchant.id, wave_id, now)
            await incidents.close_of_merchant(tx, merchant.id, incidents.MISSING_AGGREGATED_MERCHANT, account, now)
        yield NamedMerchant(account, merchant.id, name, wave_id, made=id_at_wave is None)


def name_at_wave(merchant: Merchant, max_length: int) -> str:
    """What Wave shows to customers: unique, because our id ends it, and the same again after a crash."""
    suffix = f" ({merchant.id})"
    return merchant.name[: max_length - len(suffix)] + suffix


#: Merchants whose ids a job keeps; all of them are counted.
KEPT: Final = 1000


class NameWaveMerchants(Struct, frozen=True, tag="wave_merchants"):
    #: The account's name; None for every one that aggregates.
    account: str | None = None


@dataclass
class NamedAtWave:
    """What the last attempt of the job did. `made`: at Wave; `found`: there already, only the id is new here."""

    made: int = 0
    found: int = 0
    merchants: list[NamedMerchant] = field(default_factory=list)
    stopped: StoppedAt | None = None

    def add(self, merchant: NamedMerchant) -> None:
        self.made += merchant.made
        self.found += not merchant.made
        if len(self.merchants) < KEPT:
            self.merchants.append(merchant)


async def name_wave_merchants(ctx: AppContext, task: NameWaveMerchants) -> NamedAtWave:
    """It looks at Wave first, so it may be done again."""
    result = NamedAtWave()
    for account in aggregating(ctx.providers.accounts):
        if task.account not in (None, account):
            continue
        try:
            async for merchant in name_merchants(ctx, account):
                result.add(merchant)
        except AggregationError as error:
            result.stopped = error.at
            break
    return result
