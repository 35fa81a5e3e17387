"""What a provider or a statement says that a place holds, less what the ledger says.

    difference = stated − ledger − movements in flight − announced settlements

What is in flight may have moved already or not: payments that were sent and have no end yet, refunds likewise, what was
posted while the provider was asked, fees that its statement of a day will name, and what it turned into another
currency since the last such statement (`conversions.py`). So the ledger admits a range, and only what lies outside it
differs. Two readings a day apart that both differ are an incident.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, cast
from uuid import NAMESPACE_URL, uuid5

from sqlalchemy import ColumnElement, bindparam, case, func, literal, or_, select, union_all

from guichet.audit_log import entries as audit_log
from guichet.clock import DAY, Instant, earlier
from guichet.context import AppContext
from guichet.db.engine import Database, Transaction
from guichet.db.tables import payments, refunds, treasury_movements
from guichet.domain.audit_log import Act, Actor
from guichet.domain.messages import Amount, Moment
from guichet.domain.money import DECIMALS, Currency, Hundredths
from guichet.domain.posting_rules import FLOAT, float_account
from guichet.domain.treasury import ReadingSource
from guichet.incidents import repository as incidents
from guichet.incidents.repository import IncidentDetail
from guichet.merchants import repository as merchants
from guichet.providers.base import Provider
from guichet.providers.capabilities import FloatBalance, History
from guichet.treasury import conversions, readings
from guichet.treasury.balances import Total, Totals, totals
from guichet.treasury.readings import Reading

#: A statement of a day names fees up to two days later; until then they may have been up to this part of what moved.
_CHARGED_WITHIN: Final = 2 * DAY
_HIGHEST_FEE: Final = 5
#: Percent by which a rate may differ from that of the last day that was booked.
_RATE_MOVES: Final = 10
#: An earlier reading counts when it is this old.
_APART: Final = DAY
_LONGEST_APART: Final = 2 * DAY


def _moved(amount: ColumnElement[int], currency: ColumnElement[str]) -> ColumnElement[int]:
    """As `money.round_to_currency`: what a provider can move of an amount."""
    whole = or_(*(currency == code for code, decimals in DECIMALS.items() if decimals == 0))
    return case((whole, (amount + 50) // 100 * 100), else_=amount)


_PENDING: Final = union_all(
    select(
        literal("payment").label("kind"),
        payments.c.operator,
        payments.c.currency,
        func.sum(_moved(payments.c.total_amount, payments.c.currency)),
    )
    .where(
        payments.c.status == "pending", payments.c.provider_account == bindparam("account"), payments.c.env == "live"
    )
    .group_by(payments.c.operator, payments.c.currency),
    select(
        literal("refund").label("kind"),
        payments.c.operator,
        refunds.c.currency,
        func.sum(_moved(refunds.c.amount, refunds.c.currency)),
    )
    .join(payments, payments.c.id == refunds.c.payment_id)
    .where(
        refunds.c.status == "pending",
        refunds.c.provider_account == bindparam("account"),
        refunds.c.env == "live",
        refunds.c.sent_at.is_not(None),
    )
    .group_by(payments.c.operator, refunds.c.currency),
)
_ANNOUNCED: Final = (
    select(treasury_movements.c.destination, func.sum(treasury_movements.c.amount))
    .where(treasury_movements.c.status == "announced")
    .group_by(treasury_movements.c.destination)
)


@dataclass(slots=True)
class _Flight:
    """Hundredths that may have come in or gone out of one place already."""

    incoming: int = 0
    outgoing: int = 0


async def compare(
    ctx: AppContext, account: str, provider: Provider, balances: Sequence[FloatBalance], before: Totals
) -> None:
    """Compares what a provider states of an account's wallets. `before`: the ledger before it was asked. A wallet that
    it does not state is not compared, but one whose money it converts should be empty. Cost: pending rows of the
    account, and as `balances.totals`."""
    in_flight, after = await _in_flight(ctx.db, account, provider), await totals(ctx.db)
    charged_later = isinstance(provider, History)
    emptied = await _to_convert(ctx, account, after, in_flight, {balance.currency for balance in balances})
    for balance in (*balances, *emptied):
        currency = cast("Currency", balance.currency)
        place = float_account(account, balance.wallet, currency)
        held = balance.amount + balance.not_yet_available
        flight = in_flight.get(place, _Flight())
        sides = before.get((currency, place), Total()), after.get((currency, place), Total())
        reading = await _reading(ctx, place, held, "provider", sides, flight, charged_later=charged_later)
        async with ctx.db.transaction() as tx:
            await _keep(ctx, tx, reading, currency)


async def record_statement(
    ctx: AppContext, place: str, currency: Currency, amount: Hundredths, actor: Actor, evidence: str
) -> None:
    """A person typed what a statement says that the place holds now, and another one approved it."""
    account, ledger = place.split(":")[1], await totals(ctx.db)
    flight = _Flight()
    if place.startswith(FLOAT):
        flight = (await _in_flight(ctx.db, account, ctx.registry.provider(account))).get(place, flight)
    total = ledger.get((currency, place), Total())
    reading = await _reading(ctx, place, amount, "statement", (total, total), flight, charged_later=False)
    async with ctx.db.transaction() as tx:
        house = await merchants.house_merchant(tx, ctx.vault, reading.read_at)
        await _keep(ctx, tx, reading, currency)
        facts = {"to": place, "amount": amount, "currency": currency}
        act = Act(actor, "treasury.stated", "treasury", place, house, evidence, after=facts)  # type: ignore[arg-type]
        await audit_log.record(tx, act, reading.read_at)


async def _reading(
    ctx: AppContext,
    place: str,
    balance: int,
    source: ReadingSource,
    sides: tuple[Total, Total],
    flight: _Flight,
    *,
    charged_later: bool,
) -> Reading:
    before, after = sides
    now, moved = ctx.clock.now(), after.outgoing + after.incoming
    lately = moved - await _moved_before(ctx.db, place, moved, now) if charged_later else 0
    announced = {destination: int(amount) for destination, amount in await ctx.db.all(_ANNOUNCED)}.get(place, 0)
    low = before.held - (after.incoming - before.incoming) - flight.outgoing - lately * _HIGHEST_FEE // 100 - announced
    high = before.held + (after.outgoing - before.outgoing) + flight.incoming - announced
    difference = min(0, balance - low) + max(0, balance - high)
    return Reading(0, place, source, balance, after.held, low, high, difference, moved, now)


async def _moved_before(db: Database, place: str, moved: int, now: Instant) -> int:
    """What had moved two days ago, or when the place was first looked at; `moved` if it never was."""
    before = await readings.newest(db, place, earlier(now, _CHARGED_WITHIN)) or await readings.oldest(db, place)
    return before.moved if before else moved


async def _to_convert(
    ctx: AppContext, account: str, ledger: Totals, in_flight: dict[str, _Flight], currencies: Collection[str]
) -> list[FloatBalance]:
    """Adds to what is in flight what the account converted since the last day that was booked: at most what moved in
    two days leaves the currency that was paid, and comes into the one that is held by about the last rate. Returns the
    wallets whose money is converted, which hold nothing in the provider's eyes."""
    emptied: list[FloatBalance] = []
    for (paid, held), rate in (await conversions.rates(ctx.db, account, ledger)).items():
        if paid in currencies:
            continue
        place = float_account(account, "", paid)
        total, flight = ledger.get((paid, place), Total()), in_flight.setdefault(place, _Flight())
        became = in_flight.setdefault(float_account(account, "", held), _Flight())
        highest = rate * (100 + _RATE_MOVES) / 100
        became.incoming += ceil(max(0, total.held + flight.incoming) * highest)
        became.outgoing += ceil(max(0, flight.outgoing - total.held) * highest)
        moved = total.outgoing + total.incoming
        lately = moved - await _moved_before(ctx.db, place, 0, ctx.clock.now())
        flight.incoming += lately
        flight.outgoing += lately
        emptied.append(FloatBalance("", Hundredths(0), paid))
    return emptied


async def _in_flight(db: Database, account: str, provider: Provider) -> dict[str, _Flight]:
    """By place, what the account was asked to move and has no end yet."""
    in_flight: dict[str, _Flight] = {}
    for kind, operator, currency, amount in await db.scan(_PENDING, account=account):
        is_payment = kind == "payment"
        wallet = provider.collection_wallet(operator) if is_payment else provider.payout_wallet(operator)
        flight = in_flight.setdefault(float_account(account, wallet, currency), _Flight())
        if is_payment:
            flight.incoming += int(amount)
        else:
            flight.outgoing += int(amount)
    return in_flight


async def _keep(ctx: AppContext, tx: Transaction, reading: Reading, currency: Currency) -> None:
    """Stores the reading, and opens or closes the incident of its place."""
    now, reference = reading.read_at, str(uuid5(NAMESPACE_URL, reading.place))
    earlier_one = await readings.newest(tx, reading.place, earlier(now, _APART))
    await readings.insert_new(tx, reading)
    if not reading.difference:
        if (house := await merchants.house_merchant_id(tx)) is not None:
            await incidents.close_all(tx, house, reference, now)
        return
    if earlier_one is None or not earlier_one.difference or now - earlier_one.read_at > _LONGEST_APART:
        return
    since = min(earlier_one.read_at, await readings.differs_since(tx, reading.place) or now)
    await incidents.report(
        tx,
        merchant_id=await merchants.house_merchant(tx, ctx.vault, now),
        env="live",
        kind=incidents.FLOAT_DIFFERS,
        subject_type="account",
        reference=reference,
        provider_account=reading.place.split(":")[1],
        detail=IncidentDetail.FLOAT_DIFFERS(
            place=reading.place, total=Amount(reading.difference, currency), since=Moment(since)
        ),
        now=now,
    )
