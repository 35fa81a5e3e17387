"""Compares three books after a trial: the providers' (what really moved), ours, and the merchants'.

Each rule is exact: what is still open must be open for a reason that the documents name, and the providers' truth must
agree with that reason (docs/reliability.md, "Chaos over live money").
"""

from collections import Counter, defaultdict
from typing import Final

from guichet.bootstrap import service
from guichet.db.engine import Database
from guichet.domain.money import round_to_currency
from guichet.domain.payments import Payment, Refund
from reliability.comparison import Comparison, rendered
from reliability.float_books import compare_floats
from reliability.installation import Installation
from reliability.journal import Journal
from reliability.merchant import Merchant
from reliability.merchant_books import compare_merchants
from reliability.our_books import OurBooks, read_our_books, read_tables
from reliability.provider_books import ProviderBooks, ProviderTransaction, read_provider_books
from reliability.waiting import why_payment_waits, why_refund_waits
from tests.invariants import check_books

#: Only reconciliation with FeexPay's own export finds it (docs/providers/feexpay.md, "Other calls").
_TAKEN_UNLISTED: Final = "payment: failed, taken afterwards, and FeexPay’s history is cut off: its export shows it"

__all__ = ["Comparison", "compare", "read_our_books", "read_truth", "rendered"]


def read_truth(installation: Installation, ours: OurBooks) -> ProviderBooks:
    payment_of = {refund.reference: refund.payment_reference for refund in ours.refunds.values()}
    returns = [
        (late.return_reference, payment_of.get(reference, reference))
        for reference, late in ours.late.items()
        if late.return_reference
    ]
    return read_provider_books(installation.simulator_db, ours.payments.values(), ours.refunds.values(), returns)


async def compare(
    installation: Installation,
    journal: Journal,
    merchants: list[Merchant],
    proof_expected: bool = True,
    *,
    with_ledger: bool = True,
) -> Comparison:
    """Reads everything and compares it.

    `proof_expected`: that a request never arrived must be proven by now, which takes fifteen minutes.
    `with_ledger`: also every invariant of the ledger, which takes longest; nothing may write meanwhile.
    """
    found = Comparison(proof_expected)
    async with service(installation.settings) as opened:
        ours = await read_tables(opened.ctx.db, installation)
        truth = read_truth(installation, ours)
        _compare_journal(found, journal, ours, merchants)
        _compare_truth(found, ours, truth)
        if with_ledger:
            await _check_ledger(found, opened.ctx.db)
            await compare_floats(found, opened.ctx.db, ours, truth)
    compare_merchants(found, ours, journal, merchants)
    found.figures.update(Counter(f"payments {each.status}" for each in ours.payments.values()))
    found.figures.update(Counter(f"refunds {each.status}" for each in ours.refunds.values()))
    found.figures["late results"] = sum(each.stage != "asking" for each in ours.late.values())
    found.figures["deliveries that wait"] = ours.waiting_deliveries
    for fault in journal.faults:
        found.differs("an answer that must not be", fault)
    return found


async def _check_ledger(found: Comparison, db: Database) -> None:
    try:
        await check_books(db, events_queued=True)
    except AssertionError as failure:
        found.differs("an invariant of the ledger is broken", str(failure)[:500])


# The merchants' requests


def _compare_journal(found: Comparison, journal: Journal, ours: OurBooks, merchants: list[Merchant]) -> None:
    """Everything acknowledged exists, once, under the reference that was answered."""
    by_external_id: dict[tuple[int, str], list[Payment]] = defaultdict(list)
    by_nonce = {each.checkout_token: each for each in ours.payments.values() if each.checkout_token}
    for payment in ours.payments.values():
        if payment.external_id is not None:
            by_external_id[payment.merchant_id, payment.external_id].append(payment)
    for external_id, acknowledged in journal.acknowledged.items():
        stored = by_external_id.pop((merchants[acknowledged.order.merchant].id, external_id), [])
        if not stored:
            found.differs("an acknowledged payment is lost", external_id)
        elif len(stored) > 1 or acknowledged.reference not in (None, stored[0].reference):
            found.differs("a payment exists twice", f"{external_id}: {[each.reference for each in stored]}")
        elif acknowledged.reference is None and stored[0].status != "failed":
            found.differs("a refused payment did not fail", f"{stored[0].reference} is {stored[0].status}")
    for (_, external_id), stored in by_external_id.items():
        if external_id not in journal.unanswered or len(stored) > 1:
            found.differs("a payment that nobody asked for", external_id)
    for paid in journal.link_payments:
        if paid.nonce not in by_nonce:
            found.differs("an acknowledged payment of a link is lost", f"{paid.link_id} {paid.nonce}")
    _compare_links(found, ours)
    for payment_reference, reference in journal.refunds.items():
        refund = ours.refunds.get(payment_reference)
        if reference and (refund is None or refund.reference != reference):
            found.differs("an acknowledged refund is lost", reference)


def _compare_links(found: Comparison, ours: OurBooks) -> None:
    """A link counts the payments that succeeded through it."""
    paid = Counter(
        each.link_id for each in ours.payments.values() if each.link_id and each.status in ("succeeded", "refunded")
    )
    for link_id, completed_uses in ours.link_uses.items():
        if paid[link_id] != completed_uses:
            found.differs("a link counts wrongly", f"{link_id}: {completed_uses}, but {paid[link_id]} succeeded")


# What the providers moved


def _compare_truth(found: Comparison, ours: OurBooks, truth: ProviderBooks) -> None:
    for transaction in truth.unknown:
        found.differs("a provider's transaction that we do not know", str(transaction))
    for payment in ours.payments.values():
        _compare_debits(found, ours, truth, payment)
        _compare_credits(found, ours, truth, payment)


def _compare_debits(found: Comparison, ours: OurBooks, truth: ProviderBooks, payment: Payment) -> None:
    known = truth.debits(payment.reference)
    moved = [each for each in known if each.moved]
    found.figures["debits"] += len(moved)
    total = round_to_currency(payment.total_amount, payment.currency)
    about = f"{payment.reference} ({payment.operator}, {ours.provider(payment)}) is {payment.status}: {known}"
    if len(moved) > 1:
        found.differs("a customer was debited twice", about)
    if any((each.amount, each.currency) != (total, payment.currency) for each in moved):
        found.differs("another amount was debited", about)
    match payment.status:
        case "succeeded" | "refunded":
            late = ours.late.get(payment.reference)
            if not moved and (late is None or late.stage == "asking"):
                found.differs("credited without a debit", about)
        case "failed":
            late = ours.late.get(payment.reference)
            if moved and (late is None or late.stage == "asking"):
                if payment.provider_reference is None and all(map(truth.may_be_unlisted, known)):
                    found.explained[_TAKEN_UNLISTED] += 1
                    return
                found.differs("failed, but the customer was debited", about)
                found.taken_untold.append(payment.reference)
        case "pending":
            _explain(found, payment, known, why_payment_waits(ours, truth, payment, known), about)


def _compare_credits(found: Comparison, ours: OurBooks, truth: ProviderBooks, payment: Payment) -> None:
    known = truth.credits(payment.reference)
    moved = [each for each in known if each.moved]
    found.figures["credits"] += len(moved)
    refund = ours.refunds.get(payment.reference)
    late = ours.late.get(refund.reference) if refund else None
    told_back = ours.late.get(payment.reference)
    about = f"{payment.reference} ({payment.operator}): refund {refund and refund.status}: {known}"
    if len(moved) > 1:
        found.differs("a customer was paid back twice", about)
    if refund is None:
        if moved and (told_back is None or told_back.stage not in ("returning", "returned")):
            found.differs("paid back without a refund", about)
        return
    late_stage = late.stage if late else "asking"
    match refund.status:
        case "succeeded" if not moved and late_stage not in ("found", "credited"):
            found.differs("a refund succeeded without money", about)
        case "failed" if moved and late_stage not in ("receivable", "paid"):
            found.differs("a refund failed, but the customer has the money", about)
        case "pending":
            _explain(found, refund, known, why_refund_waits(ours, truth, refund, known), about)


def _explain(
    found: Comparison,
    subject: Payment | Refund,
    known: list[ProviderTransaction],
    reason: str | None,
    about: str,
) -> None:
    """`known`: what the provider has about the subject."""
    if reason is not None:
        found.explained[reason] += 1
        if "staff decide" in reason:
            found.for_staff.append((subject, any(each.moved for each in known)))
        return
    noun = "payment" if isinstance(subject, Payment) else "refund"
    if not known and not found.proof_expected:
        found.explained[f"{noun}: lost on its way, the proof that it never arrived takes fifteen minutes"] += 1
        return
    found.differs(f"a {noun} waits without a reason", about)
    found.unexplained.append(subject)
