"""Aggregated merchants of Wave, as `guichet providers setup wave-merchants` makes them."""

from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from guichet.back_office.aggregated_merchants import (
    AggregationError,
    MerchantNotMade,
    NamedMerchant,
    aggregating,
    name_merchants,
)
from guichet.context import AppContext
from guichet.domain.messages import Answer

#: Merchants whose ids a job keeps; all of them are counted.
KEPT: Final = 1000


class NameWaveMerchants(Struct, frozen=True, tag="wave_merchants"):
    #: The account's name; None for every one that aggregates.
    account: str | None = None


@dataclass(frozen=True, slots=True)
class StoppedAt:
    """Where Wave did not do it. `name`: of the merchant that it did not make; None if it gave no list. `raw`: what it
    answered."""

    account: str
    name: str | None
    raw: Answer


@dataclass
class NamedAtWave:
    """What the last attempt of the job did. `made`: at Wave; `found`: there already, only the id is new here."""

    made: int = 0
    found: int = 0
    merchants: list[NamedMerchant] = field(default_factory=list)
    stopped: StoppedAt | None = None

    def add(self, named: NamedMerchant) -> None:
        self.made += named.made
        self.found += not named.made
        if len(self.merchants) < KEPT:
            self.merchants.append(named)


async def name_wave_merchants(ctx: AppContext, task: NameWaveMerchants) -> NamedAtWave:
    """It looks at Wave first, so it may be done again."""
    done = NamedAtWave()
    for account in aggregating(ctx.providers.accounts):
        if task.account not in (None, account):
            continue
        try:
            async for named in name_merchants(ctx, account):
                done.add(named)
        except AggregationError as error:
            name = error.name if isinstance(error, MerchantNotMade) else None
            done.stopped = StoppedAt(account, name, error.raw)
            break
    return done
