"""Compares three books after a trial: the providers' (what really moved), ours, and the merchants'.

Each rule is exact: what is still open must be open for a reason that the documents name, and the providers' truth must
agree with that reason (docs/reliability.md, "Chaos over live money").
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import select

from guichet.bootstrap import service
from guichet.db.engine import Database
from guichet.db.tables import incidents, late_results, payments, refunds, webhook_deliveries
from guichet.domain.late_results import LateResult
from guichet.domain.money import round_to_currency
from guichet.domain.payments import Payment, Refund
from guichet.payments.incidents import Incident
from reliability.installation import Installation
from reliability.journal import Journal
from reliability.merchant import Merchant, ReceivedEvent
from reliability.provider_books import ProviderBooks, ProviderTransaction, read_provider_books
from tests.invariants import check_books

#: Providers that give no proof that a request never arrived, and what they can find again by our reference
#: (docs/providers/README.md, "Lost answers").
_NEVER_PROVEN: Final = frozenset({"feexpay", "sonatel", "stripe", "orange", "coris"})
_NOT_FOUND_AGAIN: Final = frozenset({"orange", "coris"})
#: Scenarios in which a provider states another amount or currency than it moved: nothing may be credited.
_MISSTATED: Final = frozenset({"wrong_amount", "wrong_currency", "hidden_amount"})


@dataclass
class OurBooks:
    """Guichet's tables, as they are when nothing runs any more."""

    payments: dict[str, Payment]
    refunds: dict[str, Refund]
    #: By the payment's or the refund's reference.
    late: dict[str, LateResult]
    open_incidents: dict[str, set[str]]
    waiting_deliveries: int
    #: By provider account.
    providers: dict[str, str]

    def provider(self, subject: Payment | Refund) -> str | None:
        return self.providers.get(subject.provider_account or "")


@dataclass
class Comparison:
    """`differences`: by kind, in words. `explained`: what is still open, and why, counted. `brief`: the trial does not
    wait for the fifteen minutes that prove that a request never arrived (D88)."""

    brief: bool = False
    differences: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    explained: Counter[str] = field(default_factory=Counter)
    figures: Counter[str] = field(default_factory=Counter)
    #: Payments and refunds that wait without a reason: the provider may just need to be asked again.
    unexplained: list[Payment | Refund] = field(default_factory=list)

    def differs(self, kind: str, detail: str) -> None:
        self.differences[kind].append(detail)

    @property
    def difference_count(self) -> int:
        return sum(map(len, self.differences.values()))


async def read_our_books(installation: Installation) -> OurBooks:
    async with service(installation.settings) as opened:
        return await _read(opened.ctx.db, installation)


async def _read(db: Database, installation: Installation) -> OurBooks:
    stored = [Payment(*row) for row in await db.scan(select(payments))]
    returned = [Refund(*row) for row in await db.scan(select(refunds))]
    late = [LateResult(*row) for row in await db.scan(select(late_results))]
    opened: dict[str, set[str]] = defaultdict(set)
    for row in await db.scan(select(incidents).where(incidents.c.closed_at.is_(None))):
        incident = Incident(*row)
        opened[incident.reference].add(incident.kind)
    waiting = await db.scan(select(webhook_deliveries.c.id).where(webhook_deliveries.c.status == "pending"))
    return OurBooks(
        {each.reference: each for each in stored if each.env == "live"},
        {each.payment_reference: each for each in returned if each.env == "live"},
        {each.reference: each for each in late},
        opened,
        len(waiting),
        {name: account["provider"] for name, account in installation.accounts.items()},
    )


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
    *,
    with_ledger: bool = True,
    brief: bool = False,
) -> Comparison:
    """Reads everything and compares it. `with_ledger`: also every invariant of the ledger, which takes longest; nothing
    may write meanwhile. `brief`: see `Comparison`."""
    found = Comparison(brief)
    async with service(installation.settings) as opened:
        ours = await _read(opened.ctx.db, installation)
        if with_ledger:
            await _check_ledger(found, opened.ctx.db)
    truth = read_truth(installation, ours)
    _compare_journal(found, journal, ours, merchants)
    _compare_truth(found, ours, truth)
    _compare_merchants(found, ours, journal, merchants)
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
    for payment_reference, reference in journal.refunds.items():
        refund = ours.refunds.get(payment_reference)
        if reference and (refund is None or refund.reference != reference):
            found.differs("an acknowledged refund is lost", reference)


# What the providers moved


def _compare_truth(found: Comparison, ours: OurBooks, truth: ProviderBooks) -> None:
    for transaction in truth.unknown:
        found.differs("a provider's transaction that we do not know", str(transaction))
    for payment in ours.payments.values():
        _compare_debits(found, ours, payment, truth.debits(payment.reference))
        _compare_credits(found, ours, payment, truth.credits(payment.reference))


def _compare_debits(found: Comparison, ours: OurBooks, payment: Payment, known: list[ProviderTransaction]) -> None:
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
                found.differs("failed, but the customer was debited", about)
        case "pending":
            _explain(found, payment, _why_payment_waits(ours, payment, known) or _not_proven(found, known), about)


def _why_payment_waits(ours: OurBooks, payment: Payment, known: list[ProviderTransaction]) -> str | None:
    provider = ours.provider(payment)
    here = [each for each in known if each.provider == provider]
    moved = [each for each in here if each.moved]
    if moved and moved[0].scenario in _MISSTATED and "mismatch" in ours.open_incidents.get(payment.reference, ()):
        return f"payment: {moved[0].scenario}, an incident is open, nothing was credited"
    if here and here[-1].state == "pending" and here[-1].scenario in ("never_final", "waits"):
        return f"payment: {here[-1].scenario}, the provider itself has not ended it, no debit"
    if payment.provider_reference is None and provider in _NEVER_PROVEN:
        if not here:
            return f"payment: lost on its way to {provider}, which gives no proof: staff decide, no debit"
        if provider in _NOT_FOUND_AGAIN:
            taken = "debited" if moved else "no debit"
            return f"payment: the answer of {provider} was lost, which cannot be asked: staff decide, {taken}"
    return None


def _compare_credits(found: Comparison, ours: OurBooks, payment: Payment, known: list[ProviderTransaction]) -> None:
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
            _explain(found, refund, _why_refund_waits(ours, refund, known) or _not_proven(found, known), about)


def _why_refund_waits(ours: OurBooks, refund: Refund, known: list[ProviderTransaction]) -> str | None:
    kinds = ours.open_incidents.get(refund.reference, set())
    moved = any(each.moved for each in known)
    for kind in ("payee_unconfirmed", "float_empty"):
        if kind in kinds and not moved:
            return f"refund: {kind}, an incident is open, nothing was paid"
    provider = ours.provider(refund)
    if refund.provider_account is None and not known:
        return "refund: no account can pay it back"
    if refund.provider_reference is None and provider in _NEVER_PROVEN and not known:
        return f"refund: lost on its way to {provider}, which gives no proof: staff decide, nothing was paid"
    return None


def _not_proven(found: Comparison, known: list[ProviderTransaction]) -> str | None:
    if found.brief and not known:
        return "payment or refund: no provider knows of it; fifteen minutes prove that it never arrived"
    return None


def _explain(found: Comparison, subject: Payment | Refund, reason: str | None, about: str) -> None:
    if reason is not None:
        found.explained[reason] += 1
        return
    noun = "payment" if isinstance(subject, Payment) else "refund"
    found.differs(f"a {noun} waits without a reason", about)
    found.unexplained.append(subject)


# The merchants' books


def _compare_merchants(found: Comparison, ours: OurBooks, journal: Journal, merchants: list[Merchant]) -> None:
    told = {each.reference for each in journal.acknowledged.values() if each.status == "failed"}
    refused = {external_id for external_id, each in journal.acknowledged.items() if each.reference is None}
    by_id = {merchant.id: merchant for merchant in merchants}
    for merchant in merchants:
        found.figures["events"] += len(merchant.events)
        for fault in merchant.faults:
            found.differs("a webhook that must not be", fault)
        for unknown in set(merchant.by_payment) - set(ours.payments):
            found.differs("an event about an unknown payment", unknown)
    for payment in ours.payments.values():
        received = by_id[payment.merchant_id].by_payment.get(payment.reference, [])
        knows_failure = payment.reference in told or payment.external_id in refused
        answered = payment.external_id in journal.acknowledged
        expected = _expected_events(payment, ours.refunds.get(payment.reference))
        optional = {"payment.failed"} if knows_failure or not answered else set()
        _compare_events(found, payment, received, expected, optional)


def _expected_events(payment: Payment, refund: Refund | None) -> Counter[str]:
    expected: Counter[str] = Counter()
    if payment.status in ("succeeded", "refunded"):
        expected["payment.succeeded"] = 1
    if payment.status == "failed":
        expected["payment.failed"] = 1
    if payment.status == "refunded":
        expected["payment.refunded"] = 1
    if refund is not None and refund.status != "pending":
        expected[f"refund.{refund.status}"] = 1
    return expected


def _compare_events(
    found: Comparison, payment: Payment, received: Iterable[ReceivedEvent], expected: Counter[str], optional: set[str]
) -> None:
    counted: Counter[str] = Counter()
    for event in received:
        if event.accepted:
            counted[event.name] += 1
        else:
            found.differs(
                "an event was never accepted", f"{event.name} of {payment.reference}, {event.attempts} attempts"
            )
    for name in counted.keys() | expected.keys():
        if counted[name] > expected[name]:
            found.differs(
                "an event came under two ids, or is untrue", f"{name} of {payment.reference}: {counted[name]}"
            )
        if counted[name] < expected[name] and name not in optional:
            found.differs("an event never came", f"{name} of {payment.reference} ({payment.status})")


def rendered(found: Comparison, most: int = 10) -> list[str]:
    """The differences in lines, at most `most` of each kind."""
    lines: list[Any] = []
    for kind, details in sorted(found.differences.items()):
        lines.append(f"{len(details)} × {kind}")
        lines += [f"    {detail}" for detail in details[:most]]
    return lines
