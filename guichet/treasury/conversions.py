"""What a provider turns into another currency: customers pay francs, and the account holds euros.

A payment's posting says what was paid, in that currency. What it became stands in the provider's list of its day, and
is booked once for each day, as movements of the house merchant: the float in the currency that was paid gives what was
turned, the float in the currency that is held gets what it became, and gives the fees. What came in and what went back
are kept apart, since each has its own rate.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, cast
from uuid import NAMESPACE_URL, uuid5

from sqlalchemy import bindparam, select

from guichet.clock import DAY, Instant, later
from guichet.context import AppContext
from guichet.db.engine import Database
from guichet.db.tables import treasury_movements
from guichet.domain.ids import MerchantId
from guichet.domain.money import Currency, Hundredths
from guichet.domain.posting_rules import CONVERTED, PROVIDER_FEES, float_account
from guichet.domain.reconciliation import Line
from guichet.domain.treasury import MovementKind, TreasuryMovement
from guichet.merchants import repository as merchants
from guichet.treasury import movements, repository
from guichet.treasury.balances import Totals

_rows: Final = treasury_movements.c
_LAST_FROM: Final = (
    select(_rows.amount)
    .where(_rows.kind == "conversion", _rows.source == bindparam("gave"), _rows.destination == bindparam("got"))
    .order_by(_rows.id.desc())
    .limit(1)
)


@dataclass(slots=True)
class _Sums:
    """Hundredths, by how much the balance moved in each currency, and the fees in the second one."""

    paid: int = 0
    held: int = 0
    fees: int = 0


#: The currencies that were paid and are held, and whether the money came in.
_Way = tuple[Currency, Currency, bool]


async def record(ctx: AppContext, account: str, day: Instant, lines: Iterable[Line]) -> None:
    """Books what the list of a day says, once, however often the day is read. Lines of other days are left out. An
    account that converts has one wallet."""
    sums = _sums(day, lines)
    if not sums:
        return
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        house = await merchants.house_merchant(tx, ctx.vault, now)
        for movement in _movements(house, account, day, sums, now):
            recorded = await repository.insert_new(tx, movement)
            if recorded is not None:  # Whoever stores its row first posts it.
                await movements.post(tx, recorded, now)


def _sums(day: Instant, lines: Iterable[Line]) -> dict[_Way, _Sums]:
    by_way: defaultdict[_Way, _Sums] = defaultdict(_Sums)
    for line in lines:
        settled = line.settled
        if settled is None or line.amount is None or line.at is None or not day <= line.at < later(day, DAY):
            continue
        came_in = settled.amount > 0
        sums = by_way[cast("Currency", line.currency), settled.currency, came_in]
        sums.paid += line.amount if came_in else -line.amount
        sums.held += settled.amount
        sums.fees += settled.fee
    return dict(by_way)


def _movements(
    house: MerchantId, account: str, day: Instant, sums: dict[_Way, _Sums], now: Instant
) -> Iterator[TreasuryMovement]:
    for (paid, held, came_in), moved in sorted(sums.items()):
        between = f"{CONVERTED}{account}::{paid}:{held}"
        legs: tuple[tuple[MovementKind, Currency, str, int], ...] = (
            ("conversion", paid, between, -moved.paid),
            ("conversion", held, between, moved.held),
            ("fee", held, PROVIDER_FEES, -moved.fees),
        )
        for kind, currency, other, grows_by in legs:
            if not grows_by:
                continue
            name = f"{account}/{day}/{paid}/{held}/{came_in}/{kind}/{currency}"
            place = float_account(account, "", currency)
            source, destination = (place, other) if grows_by > 0 else (other, place)
            yield TreasuryMovement(
                id=0,
                merchant_id=house,
                reference=str(uuid5(NAMESPACE_URL, name)),
                kind=kind,
                currency=currency,
                amount=Hundredths(abs(grows_by)),
                source=source,
                destination=destination,
                status="posted",
                recorded_at=now,
                ended_at=now,
            )


async def rates(db: Database, account: str, ledger: Totals) -> dict[tuple[Currency, Currency], Fraction]:
    """By the currencies that were paid and are held: what one became on the last day that was booked. `ledger`: what
    it holds. Cost: nothing for an account that never converted."""
    pairs = {name for _, name in ledger if name.startswith(f"{CONVERTED}{account}:")}
    rates: dict[tuple[Currency, Currency], Fraction] = {}
    for between in pairs:
        paid, held = (cast("Currency", code) for code in between.split(":")[-2:])
        got = await db.one(_LAST_FROM, gave=float_account(account, "", held), got=between)
        gave = await db.one(_LAST_FROM, gave=between, got=float_account(account, "", paid))
        if got is not None and gave is not None:
            rates[paid, held] = Fraction(got[0], gave[0])
    return rates
