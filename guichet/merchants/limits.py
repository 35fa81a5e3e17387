"""A merchant's own limits on live payments: the amount of each, and of all that are created in a day
(docs/decisions.md, "Merchant limits").

What was collected on a day is one row that creations add to and failures take from, so it is right however many
payments are created at once. Only payments of a merchant with a daily limit touch it, and wait for each other's commit.
They count from when the limit was set. The day is the merchant's, from midnight to midnight in its time zone.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final
from zoneinfo import ZoneInfo

from sqlalchemy import bindparam, select, update

from guichet.clock import Instant, to_datetime
from guichet.db.engine import Reader, Transaction
from guichet.db.sql_functions import equal, params, upsert
from guichet.db.tables import daily_totals
from guichet.domain import money
from guichet.domain.errors import InvalidRequest
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Merchant
from guichet.domain.money import Currency, Hundredths
from guichet.domain.payments import Payment

_insertion = upsert(daily_totals).values(params("merchant_id", "day", "amount"))
#: Returns no row when the limit would be exceeded. The caller has made sure that one payment alone does not.
_ADD: Final = _insertion.on_conflict_do_update(
    index_elements=["merchant_id", "day"],
    set_={"amount": daily_totals.c.amount + _insertion.excluded.amount},
    where=daily_totals.c.amount + _insertion.excluded.amount <= bindparam("most"),
).returning(daily_totals.c.amount)
_TAKE: Final = (
    update(daily_totals)
    .where(*equal(daily_totals, merchant_id="of_merchant", day="of_day"))
    .values(amount=daily_totals.c.amount - bindparam("given_back"))
)
_TOTAL: Final = select(daily_totals.c.amount).where(*equal(daily_totals, "merchant_id", "day"))


class OverMerchantLimit(InvalidRequest):
    """The payment is over a limit of its merchant; the message is for the merchant, not for its customer."""

    def __init__(self, message: str, field: str = "amount") -> None:
        super().__init__(message, {field: [message]})


def day_of(merchant: Merchant, now: Instant, installation: ZoneInfo) -> int:
    """The merchant's day, as a `date.toordinal()`."""
    zone = installation if merchant.time_zone is None else ZoneInfo(merchant.time_zone)
    return to_datetime(now).astimezone(zone).date().toordinal()


def never_taken(merchant: Merchant, amount: Hundredths) -> str | None:
    """Why no live payment of this amount in the merchant's currency succeeds on any day; None if one could."""
    for what, most in (("un paiement", merchant.payment_limit), ("une journée", merchant.daily_limit)):
        if most is not None and amount > most:
            return _over(what, most, merchant.currency)
    return None


async def check(tx: Transaction, merchant: Merchant, payment: Payment) -> None:
    """Raises OverMerchantLimit if this live payment, inserted in this transaction, is too much; then roll it back.

    A daily limit costs a statement. Nothing may be locked before but the payment: settlement locks the total before
    links.
    """
    currency = merchant.currency
    if payment.currency != currency:
        raise OverMerchantLimit(
            f"Votre compte a un plafond en {currency} : un paiement réel se fait dans cette devise.", "currency"
        )
    if merchant.payment_limit is not None and payment.amount > merchant.payment_limit:
        raise OverMerchantLimit(_over("un paiement", merchant.payment_limit, currency))
    if merchant.daily_limit is not None and payment.counted_day is not None:
        await _count(tx, merchant, payment, payment.counted_day, merchant.daily_limit)


async def _count(tx: Transaction, merchant: Merchant, payment: Payment, day: int, most: Hundredths) -> None:
    if payment.amount <= most:
        row = await tx.write(_ADD, merchant_id=merchant.id, day=day, amount=payment.amount, most=most)
        if row is not None:
            return
    left = max(0, most - await total_of(tx, merchant.id, day))
    raise OverMerchantLimit(
        f"Le montant dépasse ce qui reste aujourd'hui du plafond journalier de votre compte : "
        f"{money.french_with_code(left, merchant.currency)} sur {money.french_with_code(most, merchant.currency)}. "
        "Il se renouvelle à minuit."
    )


async def total_of(db: Reader, merchant_id: MerchantId, day: int) -> Hundredths:
    """What counts towards the daily limit: live payments of the day that have not failed. One row."""
    row = await db.one(_TOTAL, merchant_id=merchant_id, day=day)
    return Hundredths(row[0] if row else 0)


async def give_back(tx: Transaction, failed: Iterable[Payment]) -> None:
    """Payments that failed count no longer. In the order of their keys, so that two transactions cannot deadlock."""
    amounts: Counter[tuple[MerchantId, int]] = Counter()
    for payment in failed:
        if payment.counted_day is not None:
            amounts[payment.merchant_id, payment.counted_day] += payment.amount
    rows = [
        {"of_merchant": merchant_id, "of_day": day, "given_back": amount}
        for (merchant_id, day), amount in sorted(amounts.items())
    ]
    if rows:
        await tx.write_many(_TAKE, rows)


def _over(what: str, most: Hundredths, currency: Currency) -> str:
    return f"Le montant dépasse le plafond de votre compte pour {what} : {money.french_with_code(most, currency)}."
