"""Compares the ledger's accounts of our wallets with providers with what each provider really moved there."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

from sqlalchemy import select

from guichet.db.engine import Database
from guichet.db.tables import postings
from guichet.domain.payments import Payment, Refund
from guichet.domain.posting_rules import (
    FLOAT,
    MANUAL_SETTLEMENT,
    PAYMENT_CAUSES,
    PAYMENT_CHARGED,
    REFUND_CAUSES,
    REFUND_CHARGED,
)
from reliability.comparison import Comparison
from reliability.our_books import OurBooks
from reliability.provider_books import ProviderBooks

#: A provider's own fees are in its statements, and in no transaction.
_CAUSES: Final = {*PAYMENT_CAUSES, *REFUND_CAUSES} - {PAYMENT_CHARGED, REFUND_CHARGED}
_POSTED: Final = select(
    postings.c.cause, postings.c.subject_id, postings.c.source, postings.c.destination, postings.c.amount
).where(postings.c.env == "live")


async def compare_floats(found: Comparison, db: Database, ours: OurBooks, truth: ProviderBooks) -> None:
    """For every payment that has ended: what it and its refund moved with each provider is what stands in the float
    accounts of that provider, in hundredths. What two people decided against a provider's answer is not in a float."""
    booked = await _booked(db, ours)
    total: Counter[str] = Counter()
    for reference, payment in ours.payments.items():
        refund, posted = ours.refunds.get(reference), booked[reference]
        for account, amount in posted.items():
            total[account] += amount
        if MANUAL_SETTLEMENT in posted or _is_open(ours, payment, refund) or reference in found.taken_untold:
            continue
        moved = _moved(truth, reference)
        if +moved != +posted or -moved != -posted:
            found.differs(
                "a float account and its provider disagree", f"{reference}: {dict(posted)}, moved {dict(moved)}"
            )
        found.figures["payments compared with floats"] += 1
    for provider, amount in total.items():
        found.figures[f"float of {provider}"] = amount


async def _booked(db: Database, ours: OurBooks) -> defaultdict[str, Counter[str]]:
    """By payment and provider, or MANUAL_SETTLEMENT: what came in less what went out."""
    of_payment: dict[int, str] = {each.id: each.reference for each in ours.payments.values()}
    of_refund: dict[int, str] = {each.id: each.payment_reference for each in ours.refunds.values()}
    booked: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for cause, subject, source, destination, amount in await db.scan(_POSTED):
        if cause not in _CAUSES:
            continue
        reference = (of_payment if cause in PAYMENT_CAUSES else of_refund)[subject]
        for account, sign in ((source, 1), (destination, -1)):
            if account.startswith(FLOAT):
                booked[reference][str(ours.providers.get(account.split(":")[1]))] += sign * amount
            elif account == MANUAL_SETTLEMENT:
                booked[reference][MANUAL_SETTLEMENT] += sign * amount
    return booked


def _moved(truth: ProviderBooks, reference: str) -> Counter[str]:
    moved: Counter[str] = Counter()
    for each in truth.of_payment.get(reference, ()):
        if each.moved:
            moved[each.provider] += each.amount if each.kind == "debit" else -each.amount
    return moved


def _is_open(ours: OurBooks, payment: Payment, refund: Refund | None) -> bool:
    """Whether what was moved may not be booked yet, for a reason that the other comparisons look at."""
    subjects: Iterable[Payment | Refund] = (payment, refund) if refund else (payment,)
    return any(_waits(ours, each) for each in subjects)


def _waits(ours: OurBooks, subject: Payment | Refund) -> bool:
    late = ours.late.get(subject.reference)
    unbooked = "mismatch" in ours.open_incidents.get(subject.reference, ())
    return subject.status == "pending" or unbooked or (late is not None and late.stage in ("asking", "returning"))
