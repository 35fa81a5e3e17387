"""The merchants' books against ours: each event exactly once by id, and none that is untrue."""

from collections import Counter
from collections.abc import Iterable

from guichet.domain.payments import Payment, Refund
from reliability.comparison import Comparison
from reliability.journal import Journal
from reliability.merchant import Merchant, ReceivedEvent
from reliability.our_books import OurBooks


def compare_merchants(found: Comparison, ours: OurBooks, journal: Journal, merchants: list[Merchant]) -> None:
    told = {each.reference for each in journal.acknowledged.values() if each.status == "failed"}
    refused = {external_id for external_id, each in journal.acknowledged.items() if each.reference is None}
    by_id = {merchant.id: merchant for merchant in merchants}
    for merchant in merchants:
        found.figures["events"] += len(merchant.events)
        for fault in merchant.faults:
            found.differs("a webhook that must not be", fault)
        for event in merchant.changed:
            if event.payment not in ours.anonymised:
                found.differs("a webhook that must not be", f"the body of event {event.id} changed")
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
