"""What a small shop sells in a month, for the second demo merchant: invented, and the same for the same day.

Numbers, names and addresses belong to nobody: they are drawn here, and the test environment calls no telephone.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from guichet.clock import HOUR, MINUTE, SECOND, Instant, earlier, from_datetime, later, to_datetime
from guichet.domain.failures import RefusalReason
from guichet.providers.sandbox.provider import NEVER_VALIDATED

DAYS: Final = 30
#: Nothing is sold in the last minutes: what is written is final.
_UNTIL: Final = 20 * MINUTE
#: Sales on a weekday in the first week; they grow by half until today.
_PER_DAY: Final = 13
#: By day of the week, Monday first.
_WEEK: Final = (0.9, 0.9, 1.0, 1.0, 1.25, 1.6, 0.6)
#: By hour of the day.
_HOURS: Final = (1, 0, 0, 0, 0, 1, 3, 8, 14, 18, 20, 22, 19, 15, 13, 14, 17, 22, 26, 24, 17, 10, 6, 3)
#: Operator, the beginning of its customers' numbers without the last four digits, and how often it is chosen.
_OPERATORS: Final = (
    ("mtn", "229019700", 42),
    ("moov", "229019500", 22),
    ("celtiis_bj", "229014000", 6),
    ("mtn_ci", "225050000", 7),
    ("wave_ci", "225070000", 8),
    ("togocom_tg", "2289000", 7),
    ("wave_sn", "22177000", 5),
    ("orange_ml", "2237000", 3),
)
_AMOUNTS: Final = (500, 1000, 1500, 2000, 2500, 3500, 5000, 7500, 10_000, 12_500, 15_000, 25_000, 40_000, 75_000)
_AMOUNT_WEIGHTS: Final = (6, 9, 10, 12, 12, 11, 12, 9, 7, 4, 4, 3, 2, 1)
_FIRST_NAMES: Final = (
    *("Awa", "Koffi", "Fatou", "Sèna", "Moussa", "Aïcha", "Yao", "Mariam", "Codjo", "Adjoa", "Ibrahima", "Nadège"),
    *("Gildas", "Rokia", "Prudence", "Seydou", "Clarisse", "Afi"),
)
_LAST_NAMES: Final = (
    *("Kossou", "Diallo", "Hounsou", "Traoré", "Mensah", "Koné", "Agbo", "Ndiaye", "Dossou", "Ouattara", "Lawson"),
    *("Zinsou", "Sow", "Adjovi", "Bamba"),
)
_GOODS: Final = ("Panier de légumes", "Riz parfumé 5 kg", "Commande en ligne", "Pagne wax", "Huile rouge", "Livraison")
_FAILURES: Final[tuple[tuple[RefusalReason, float], ...]] = (
    ("insufficient_funds", 0.062),
    ("rejected_by_payer", 0.028),
    ("expired", 0.026),
    ("limit_reached", 0.009),
    ("operator_unavailable", 0.006),
)
_REFUNDED: Final = 0.025
_BY_LINK: Final = 0.12
#: How long ago the payments were made that nobody has validated yet.
_WAITING: Final = (2 * HOUR, 5 * HOUR, 26 * HOUR)


@dataclass(frozen=True, slots=True)
class Sale:
    """`amount`: whole XOF. `failure`: None for a success. `settled_at`: None while nobody has validated it.
    `refunded_at`: of a success, None if it was not refunded. `by_link`: paid on the shop's payment link."""

    number: int
    at: Instant
    settled_at: Instant | None
    operator: str
    phone_number: str
    amount: int
    firstname: str | None
    lastname: str | None
    description: str
    failure: RefusalReason | None
    refunded_at: Instant | None
    by_link: bool

    @property
    def external_id(self) -> str:
        return f"CMD-{self.number:04d}"


def days_of_sales(now: Instant, zone: ZoneInfo) -> Iterator[list[Sale]]:
    """Each day's sales until now, the oldest first, by their time."""
    today, number = to_datetime(now).astimezone(zone).date(), 1000
    waiting = [earlier(now, age) for age in _WAITING]
    for ago in range(DAYS, -1, -1):
        day = today - timedelta(days=ago)
        chance = random.Random(day.toordinal())  # noqa: S311 - invented sales, no secrets
        start = from_datetime(datetime.combine(day, time(), zone))
        end = from_datetime(datetime.combine(day + timedelta(days=1), time(), zone))
        count = round(_PER_DAY * _WEEK[day.weekday()] * (1 + 0.5 * (DAYS - ago) / DAYS) * chance.uniform(0.85, 1.15))
        times = sorted(_time(chance, start) for _ in range(count))
        sales = []
        for at in times:
            number += 1
            if (sale := _sale(chance, number, at)).at < earlier(now, _UNTIL):
                sales.append(_known_by(sale, earlier(now, MINUTE)))
        for at in (moment for moment in waiting if start <= moment < end):
            number += 1
            sales.append(_never_validated(_sale(chance, number, at)))
        yield sales


def _time(chance: random.Random, start: Instant) -> Instant:
    [hour] = chance.choices(range(24), _HOURS)
    return later(start, hour * HOUR + chance.randrange(HOUR))


def _sale(chance: random.Random, number: int, at: Instant) -> Sale:
    [(operator, prefix, _)] = chance.choices(_OPERATORS, [weight for *_, weight in _OPERATORS])
    failure = _failure(chance.random())
    by_link = chance.random() < _BY_LINK
    named = by_link or chance.random() < 0.7
    takes = 15 * MINUTE if failure == "expired" else round(min(chance.lognormvariate(3.2, 0.6), 300) * SECOND)
    settled_at = later(at, takes)
    is_refunded = failure is None and chance.random() < _REFUNDED
    [amount] = chance.choices(_AMOUNTS, _AMOUNT_WEIGHTS)
    first, last, goods = chance.choice(_FIRST_NAMES), chance.choice(_LAST_NAMES), chance.choice(_GOODS)
    refunded_at = later(settled_at, chance.randrange(HOUR, 30 * HOUR)) if is_refunded else None
    return Sale(
        number=number,
        at=at,
        settled_at=settled_at,
        operator=operator,
        # 0000 to 0003 mean something in the test environment.
        phone_number=f"{prefix}{chance.randrange(1000, 10_000)}",
        amount=amount,
        firstname=first if named else None,
        lastname=last if named else None,
        description=goods,
        failure=failure,
        refunded_at=refunded_at,
        by_link=by_link,
    )


def _failure(drawn: float) -> RefusalReason | None:
    """`drawn`: from 0 to 1."""
    for reason, share in _FAILURES:
        drawn -= share
        if drawn < 0:
            return reason
    return None


def _known_by(sale: Sale, now: Instant) -> Sale:
    """The sale without a refund that is still to come."""
    return sale if sale.refunded_at is None or sale.refunded_at < now else replace(sale, refunded_at=None)


def _never_validated(sale: Sale) -> Sale:
    """The number ends with 0002, so that it stays like that."""
    number = sale.phone_number[:-4] + NEVER_VALIDATED
    return replace(sale, phone_number=number, settled_at=None, failure=None, refunded_at=None, by_link=False)
