"""One payment's history as a list of entries, oldest first: what happened, when, and the values that a page writes out.

An entry has no text: pages have a sentence for each kind, in each language. What only the staff may know (names of
provider accounts, providers' references, postings between our own accounts, acts of people) is in `staff`, and in
entries of kinds in STAFF_KINDS; both are left out unless `for_staff` is set.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import field, structs

from guichet.clock import NEVER, Instant
from guichet.domain import posting_rules
from guichet.domain.disputes import Dispute
from guichet.domain.events import MAX_ATTEMPTS, Delivery
from guichet.domain.failures import failure_of
from guichet.domain.money import round_to_currency
from guichet.domain.payments import Payment, Refund
from guichet.domain.posting_rules import Movement
from guichet.domain.records import Record
from guichet.history.payment_history import PaymentHistory, SubjectHistory
from guichet.provider_callbacks.repository import ProviderCallback
from guichet.webhooks.deliveries import past_attempts

#: The names of what an entry holds; pages of the staff have a text for each.
TimelineFact = Literal[
    "account",
    "action",
    "actor",
    "after",
    "amount",
    "answer",
    "asked_count",
    "before",
    "borne_by",
    "by",
    "cause",
    "code",
    "concern",
    "count",
    "debited",
    "delivered",
    "detail",
    "error",
    "event",
    "evidence_due_at",
    "kind",
    "last_seen_at",
    "link_external_id",
    "link_id",
    "message",
    "next_attempt_at",
    "next_poll_at",
    "number",
    "occurrences",
    "of",
    "open",
    "operator",
    "os_user",
    "payee_number",
    "postings",
    "provider_reference",
    "reason",
    "redirects",
    "reference",
    "response_code",
    "source",
    "stage",
    "status",
    "target",
    "url",
    "waiting",
    "wallet",
]
TimelineFacts = Mapping[TimelineFact, Any]
#: What an entry holds of an act of a person, and of an incident.
_OF_ACT: Final[tuple[TimelineFact, ...]] = ("actor", "os_user", "action", "reason", "before", "after")
_OF_INCIDENT: Final[tuple[TimelineFact, ...]] = ("kind", "detail", "occurrences", "last_seen_at")


#: Whose history an entry belongs to. Its reference is in `PaymentHistory`, or among the values.
TimelineSubject = Literal["payment", "refund", "dispute", "webhook"]
TimelineKind = Literal[
    "payment.created",
    "provider.asked",
    "provider.not_answered",
    "provider.told",
    "provider.polled",
    "payment.succeeded",
    "payment.failed",
    "payment.refunded",
    "money.moved",
    "refund.requested",
    "refund.sent",
    "refund.succeeded",
    "refund.failed",
    "dispute.opened",
    "dispute.won",
    "dispute.lost",
    "webhook.queued",
    "webhook.attempted",
    "late.asking",
    "late.found",
    "incident.opened",
    "incident.closed",
    "person.acted",
]
STAFF_KINDS: Final[frozenset[TimelineKind]] = frozenset({"late.asking", "person.acted"})

#: What a merchant is told about an incident, in plain words; incidents of other kinds are the staff's only, or another
#: entry says the same.
CONCERNS: Final[dict[str, str]] = {
    "mismatch": "amount",
    "stuck": "stuck",
    "float_empty": "refund_waits",
    "already_refunded": "refund_waits",
    "payee_unconfirmed": "refund_waits",
}


class TimelineEntry(Record, frozen=True):
    """`values` by kind (amounts in hundredths of the payment's currency, instants as Instant, None where unknown):

    payment.created        source ("api", "link" or "session"), link_id, link_external_id
    provider.asked         operator, redirects; staff: account, provider_reference
    provider.not_answered  (the connection was lost before the answer came)
    provider.told          count; staff: account, provider_reference
    provider.polled        count, next_poll_at
    payment.succeeded      debited
    payment.failed         code, message (French); staff: reason
    payment.refunded       –
    money.moved            cause, wallet (signed: what it adds to the balance), waiting (for a frozen wallet);
                           staff: postings (a tuple of `posting_rules.Posting`)
    refund.requested       reference, amount, reason, by (who asked for it in the console)
    refund.sent            staff: account, provider_reference, payee_number
    refund.succeeded       –
    refund.failed          code, message; staff: reason
    dispute.opened         reference, amount, reason, evidence_due_at; staff: account, provider_reference
    dispute.won            reference
    dispute.lost           reference, borne_by ("merchant", "service")
    webhook.queued         reference, event, url, target, status
    webhook.attempted      reference, event, number, of, delivered, response_code, error, answer (what the receiver
                           sent, its beginning: a stranger's text), next_attempt_at
    late.asking            asked_count, next_poll_at
    late.found             stage, amount
    incident.opened        concern, open; staff: kind, detail, occurrences, last_seen_at
    incident.closed        concern; staff: kind
    person.acted           staff: actor, os_user, action, reason, before, after
    """

    at: Instant
    kind: TimelineKind
    subject: TimelineSubject
    values: TimelineFacts = field(default_factory=dict)
    staff: TimelineFacts = field(default_factory=dict)


def timeline(history: PaymentHistory, *, for_staff: bool = False) -> list[TimelineEntry]:
    """Oldest first; entries of one instant stand in the order in which they follow from one another."""
    entries = sorted(_all(history), key=lambda entry: entry.at)
    if for_staff:
        return entries
    merchant_entries = (entry for entry in entries if entry.kind not in STAFF_KINDS and _is_for_merchant(entry))
    return [structs.replace(entry, staff={}) for entry in merchant_entries]


def _is_for_merchant(entry: TimelineEntry) -> bool:
    """Whether the merchant is told of a movement or an incident at all."""
    if entry.kind == "money.moved":
        return bool(entry.values["wallet"] or entry.values["waiting"])
    if entry.kind in ("incident.opened", "incident.closed"):
        return entry.values["concern"] is not None
    return True


def _all(history: PaymentHistory) -> Iterator[TimelineEntry]:
    yield from _payment(history)
    if history.refund is not None and history.of_refund is not None:
        yield from _refund(history.refund, history.of_refund)
        if history.payment.status == "refunded":
            yield TimelineEntry(history.payment.updated_at, "payment.refunded", "payment")
    for dispute, movements in history.disputes:
        yield from _dispute(dispute, movements)
    for delivery in history.deliveries:
        yield from _webhook(delivery)


def _payment(history: PaymentHistory) -> Iterator[TimelineEntry]:
    payment = history.payment
    link: TimelineFacts = {"link_id": payment.link_id, "link_external_id": payment.link_external_id}
    source = "api" if payment.link_id is None else "link" if payment.session_reference is None else "session"
    yield TimelineEntry(payment.created_at, "payment.created", "payment", {"source": source, **link})
    if payment.provider_account is not None:
        facts: TimelineFacts = {"operator": payment.operator, "redirects": payment.redirect_url is not None}
        yield TimelineEntry(payment.created_at, "provider.asked", "payment", facts, _provider(payment))
    if payment.initiation_ended_at is not None and payment.provider_reference is None:
        yield TimelineEntry(payment.initiation_ended_at, "provider.not_answered", "payment")
    yield from _provider_answers(payment, history.of_payment)
    yield from _payment_result(payment, history.of_payment)
    yield from _aftermath("payment", history.of_payment)


def _payment_result(payment: Payment, history: SubjectHistory) -> Iterator[TimelineEntry]:
    if payment.status == "failed":
        yield _failed(payment.updated_at, "payment.failed", "payment", payment.failure_reason)
    elif payment.status != "pending":
        # A refund changes `updated_at` too; the posting keeps the time of the success.
        collected = (move.created_at for move in history.movements if move.cause == posting_rules.COLLECTED)
        values: TimelineFacts = {"debited": round_to_currency(payment.total_amount, payment.currency)}
        yield TimelineEntry(next(collected, payment.updated_at), "payment.succeeded", "payment", values)


def _refund(refund: Refund, history: SubjectHistory) -> Iterator[TimelineEntry]:
    requested_by = (act.actor for act in history.acts if act.action == "refund.requested")
    values: TimelineFacts = {
        "reference": refund.reference,
        "amount": refund.amount,
        "reason": refund.reason,
        "by": next(requested_by, None),
    }
    yield TimelineEntry(refund.created_at, "refund.requested", "refund", values)
    if refund.sent_at is not None:
        sent: TimelineFacts = {**_provider(refund), "payee_number": refund.payee_number}
        yield TimelineEntry(refund.sent_at, "refund.sent", "refund", staff=sent)
    yield from _provider_answers(refund, history)
    if refund.processed_at is not None:
        if refund.status == "failed":
            yield _failed(refund.processed_at, "refund.failed", "refund", refund.failure_reason)
        else:
            yield TimelineEntry(refund.processed_at, "refund.succeeded", "refund")
    yield from _aftermath("refund", history)


def _provider_answers(subject: Payment | Refund, history: SubjectHistory) -> Iterator[TimelineEntry]:
    """What the provider said by itself, and when it was asked."""
    if (callback := history.callback) is not None:
        told: TimelineFacts = {"count": callback.received_count}
        yield TimelineEntry(callback.received_at, "provider.told", subject.subject_type, told, _provider(callback))
    # The time of a refund's request is noted too; that was no poll.
    asked_since = (subject.sent_at or subject.asked_at or 0) if isinstance(subject, Refund) else 0
    if subject.asked_at is not None and subject.asked_at > asked_since:
        facts: TimelineFacts = {"count": subject.poll_count, "next_poll_at": _unless_never(subject.next_poll_at)}
        yield TimelineEntry(subject.asked_at, "provider.polled", subject.subject_type, facts)


def _unless_never(instant: Instant | None) -> Instant | None:
    return None if instant == NEVER else instant


def _failed(
    at: Instant, kind: Literal["payment.failed", "refund.failed"], subject: TimelineSubject, reason: str | None
) -> TimelineEntry:
    failure = failure_of(reason)
    return TimelineEntry(at, kind, subject, {"code": failure.code, "message": failure.message}, {"reason": reason})


def _provider(subject: Payment | Refund | Dispute | ProviderCallback) -> TimelineFacts:
    return {"account": subject.provider_account, "provider_reference": subject.provider_reference}


def _aftermath(subject: Literal["payment", "refund"], history: SubjectHistory) -> Iterator[TimelineEntry]:
    """Postings, late results, incidents and acts of people."""
    yield from _moved(subject, history.movements)
    if (late := history.late) is not None:
        account: TimelineFacts = {"account": late.provider_account}
        if late.found_at is None:
            asking: TimelineFacts = {"asked_count": late.asked_count, "next_poll_at": _unless_never(late.next_poll_at)}
            yield TimelineEntry(late.told_at, "late.asking", subject, asking, account)
        else:
            found: TimelineFacts = {"stage": late.stage, "amount": late.amount}
            yield TimelineEntry(late.found_at, "late.found", subject, found, account)
    for incident in history.incidents:
        concern: TimelineFacts = {"concern": CONCERNS.get(incident.kind), "open": incident.closed_at is None}
        seen: TimelineFacts = {name: getattr(incident, name) for name in _OF_INCIDENT}
        yield TimelineEntry(incident.opened_at, "incident.opened", subject, concern, seen)
        if incident.closed_at is not None:
            yield TimelineEntry(incident.closed_at, "incident.closed", subject, concern, {"kind": incident.kind})
    for act in reversed(history.acts):
        yield TimelineEntry(act.at, "person.acted", subject, staff={name: getattr(act, name) for name in _OF_ACT})


def _moved(subject: TimelineSubject, movements: Iterable[Movement]) -> Iterator[TimelineEntry]:
    for movement in movements:
        values: TimelineFacts = {
            "cause": movement.cause,
            "wallet": posting_rules.wallet_movement(movement.entries),
            "waiting": sum(entry.amount for entry in movement.entries if entry.destination == posting_rules.SUSPENSE),
        }
        yield TimelineEntry(movement.created_at, "money.moved", subject, values, {"postings": tuple(movement.entries)})


def _dispute(dispute: Dispute, movements: Iterable[Movement]) -> Iterator[TimelineEntry]:
    """Nothing of a prevented one while nobody says that the amount was taken: the merchant was told nothing."""
    if not dispute.taken:
        return
    facts: TimelineFacts = {"reference": dispute.reference}
    opened: TimelineFacts = {
        "amount": dispute.amount,
        "reason": dispute.reason,
        "evidence_due_at": dispute.evidence_due_at,
    }
    yield TimelineEntry(dispute.opened_at, "dispute.opened", "dispute", {**facts, **opened}, _provider(dispute))
    if dispute.closed_at is not None and dispute.status == "lost":
        lost: TimelineFacts = {**facts, "borne_by": dispute.borne_by}
        yield TimelineEntry(dispute.closed_at, "dispute.lost", "dispute", lost)
    elif dispute.closed_at is not None and dispute.status == "won":
        yield TimelineEntry(dispute.closed_at, "dispute.won", "dispute", facts)
    yield from _moved("dispute", movements)


def _webhook(delivery: Delivery) -> Iterator[TimelineEntry]:
    about: TimelineFacts = {"reference": delivery.reference, "event": delivery.event}
    queued: TimelineFacts = {"url": delivery.url, "target": delivery.target, "status": delivery.status}
    yield TimelineEntry(delivery.created_at, "webhook.queued", "webhook", {**about, **queued})
    attempts = past_attempts(delivery.history)
    for number, attempt in enumerate(attempts, 1):
        attempted: TimelineFacts = {
            "number": number,
            # One that was sent again has more than a delivery gets by itself.
            "of": MAX_ATTEMPTS if len(attempts) <= MAX_ATTEMPTS else None,
            "delivered": attempt.error is None,
            "response_code": attempt.response_code,
            "error": attempt.error,
            "answer": attempt.answer,
            "next_attempt_at": delivery.next_attempt_at if number == len(attempts) else None,
        }
        yield TimelineEntry(attempt.ended_at, "webhook.attempted", "webhook", {**about, **attempted})
    if not attempts and delivery.last_attempt_at is not None:
        yield TimelineEntry(delivery.last_attempt_at, "webhook.attempted", "webhook", {**about, **_latest(delivery)})


def _latest(delivery: Delivery) -> TimelineFacts:
    """The last attempt of a delivery whose process died in it: the row has the number of attempts, and how it ended."""
    return {
        "number": delivery.attempts,
        "of": MAX_ATTEMPTS,
        "delivered": delivery.status == "success",
        "response_code": delivery.response_code,
        "error": delivery.error,
        "answer": "",
        "next_attempt_at": delivery.next_attempt_at,
    }
