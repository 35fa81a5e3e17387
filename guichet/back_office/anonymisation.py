"""Removes what is known of one customer of a merchant, and leaves the books as they are (docs/privacy.md).

A customer is who paid with a telephone number or gave an e-mail address. Amounts, dates, references, postings and the
audit log stay: neither hash chain covers a column that is changed here.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from sqlalchemy import and_, bindparam, delete, func, or_, select, update

from guichet.audit_log import entries as audit_log
from guichet.clock import Clock, Instant
from guichet.db.engine import Database, Transaction
from guichet.db.sql_functions import columns, equal, is_listed
from guichet.db.tables import (
    disputes,
    events,
    incidents,
    late_results,
    payment_links,
    payments,
    refund_proposals,
    refunds,
    unmatched_callbacks,
    webhook_deliveries,
)
from guichet.domain.audit_log import Act, Actor, Facts
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import ENVS, Environment
from guichet.domain.payments import DEFAULT_DESCRIPTION
from guichet.domain.records import Record
from guichet.history import customer_names
from guichet.webhooks.deliveries import without_answers

#: Payments that one statement reads, and that one transaction changes.
_PAGE: Final = 5_000
_BATCH: Final = 50
#: What stands in place of a text that cannot be empty.
REMOVED: Final = "…"
#: In a pattern of LIKE these characters stand for themselves.
_LITERALLY: Final = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})
#: Members of a webhook's body that say something of the customer, or that the merchant fills freely.
_PERSONAL: Final = frozenset(
    {"phone_number", "name", "firstname", "lastname", "email", "address", "country", "metadata", "redirect_url"}
    | {"return_url", "cancel_url"}
)
_FREE_TEXTS: Final = frozenset({"description", "reason"})

_page: Final = (
    select(payments.c.created_at, payments.c.id, payments.c.phone_number, payments.c.payer_number, payments.c.email)
    .where(
        *equal(payments, merchant_id="merchant", env="environment"),
        payments.c.created_at >= bindparam("since"),
        or_(
            payments.c.created_at > bindparam("since"),
            and_(payments.c.created_at == bindparam("since"), payments.c.id > bindparam("after")),
        ),
    )
    .order_by(payments.c.created_at, payments.c.id)
    .limit(_PAGE)
)
_THESE: Final = is_listed(payments.c.id, "ids")
_NAMED: Final = (payments.c.id, payments.c.merchant_id, payments.c.env, payments.c.firstname, payments.c.lastname)
_LOCK: Final = select(payments.c.reference, payments.c.status, *_NAMED).where(_THESE).with_for_update()


def _of_these(column: Any) -> Any:
    return is_listed(column, "ids")


#: What is still on its way needs the number: a refund, a late result, a dispute, a webhook.
_REFUNDS: Final = select(refunds.c.payment_id, refunds.c.id, refunds.c.reference, refunds.c.status).where(
    # The merchant begins the index.
    refunds.c.merchant_id == bindparam("merchant"),
    _of_these(refunds.c.payment_id),
)
_LATE: Final = select(late_results.c.subject_type, late_results.c.subject_id).where(
    late_results.c.merchant_id == bindparam("merchant"), late_results.c.status != "closed"
)
_DISPUTES: Final = select(disputes.c.payment_id).where(_of_these(disputes.c.payment_id), disputes.c.status == "open")
_DELIVERIES: Final = select(
    *columns(webhook_deliveries, "id", "payment_id", "status", "history"),
).where(_of_these(webhook_deliveries.c.payment_id))
_EVENTS: Final = select(events.c.id, events.c.payment_id, events.c.body).where(_of_these(events.c.payment_id))

_CLEAR_PAYMENTS: Final = (
    update(payments)
    .where(_THESE)
    .values(
        **dict.fromkeys(
            ("phone_number", "payer_number", "firstname", "lastname", "email", "address", "country", "return_url",
             "metadata", "redirect_url")
        ),
        description=DEFAULT_DESCRIPTION,
    )
)  # fmt: skip
#: A session is one customer's, unlike any other link.
_CLEAR_SESSIONS: Final = (
    update(payment_links)
    .where(
        payment_links.c.session_reference.is_not(None),
        payment_links.c.id.in_(select(payments.c.link_id).where(_THESE)),
    )
    .values(**dict.fromkeys(("metadata", "return_url", "cancel_url", "customer")), description=DEFAULT_DESCRIPTION)
)
_CLEAR_REFUNDS: Final = (
    update(refunds)
    .where(refunds.c.merchant_id == bindparam("merchant"), _of_these(refunds.c.payment_id))
    .values(payee_number=None, reason=REMOVED)
)
_CLEAR_PROPOSALS: Final = update(refund_proposals).where(_of_these(refund_proposals.c.payment_id)).values(reason=None)
_CLEAR_DELIVERY: Final = (
    update(webhook_deliveries)
    .where(webhook_deliveries.c.id == bindparam("delivery_id"), webhook_deliveries.c.status != "pending")
    .values(history=bindparam("new_history"))
)
_CLEAR_EVENT: Final = (
    update(events)
    .where(
        events.c.id == bindparam("event_id"),
        ~select(webhook_deliveries.c.id)
        .where(webhook_deliveries.c.id == events.c.id, webhook_deliveries.c.status == "pending")
        .exists(),
    )
    .values(body=bindparam("new_body"))
)
#: A sentence for the staff; it may repeat a number.
_CLEAR_INCIDENTS: Final = (
    update(incidents)
    .where(incidents.c.merchant_id == bindparam("merchant"), incidents.c.detail.like(bindparam("pattern"), escape="\\"))
    .values(detail=func.replace(incidents.c.detail, bindparam("text"), REMOVED))
    .returning(incidents.c.id)
)
_DELETE_UNMATCHED: Final = (
    delete(unmatched_callbacks)
    .where(unmatched_callbacks.c.body.like(bindparam("pattern"), escape="\\"))
    .returning(unmatched_callbacks.c.id)
)


class CustomerKeys(Record, frozen=True):
    """By what a customer is recognised: digits with the country's code, an e-mail address, or both."""

    phone_number: str | None
    email: str | None

    def texts(self) -> list[str]:
        return [text for text in (self.phone_number, self.email) if text]

    def has(self, phone_number: str | None, payer_number: str | None, email: str | None) -> bool:
        by_phone = self.phone_number is not None and self.phone_number in (phone_number, payer_number)
        return by_phone or (self.email is not None and (email or "").lower() == self.email)


def read_phone(text: str) -> str | None:
    """The digits of a typed number with the country's code; None for any other text."""
    digits = "".join(text.split()).removeprefix("+")
    return digits if digits.isascii() and digits.isdigit() and 8 <= len(digits) <= 15 else None


@dataclass(slots=True)
class Anonymised:
    """What was changed, in rows. `waiting`: references of payments that are not at their end; they are done by asking
    again later."""

    payments: int = 0
    refunds: int = 0
    deliveries: int = 0
    incidents: int = 0
    unmatched_callbacks: int = 0
    waiting: list[str] = field(default_factory=list)


async def anonymise_customer(
    db: Database, clock: Clock, merchant_id: MerchantId, customer: CustomerKeys, actor: Actor, reason: str
) -> Anonymised:
    """Asked again, it changes what came since, and nothing else. Each transaction has its entry in the audit log.

    Cost: reads every payment of the merchant, 5 000 at a time; the rest are index probes, and the table of callbacks
    that match nothing, which is bounded.
    """
    result = Anonymised()
    for env in ENVS:
        payment_ids = await _payments_of(db, merchant_id, env, customer)
        for at in range(0, len(payment_ids), _BATCH):
            async with db.transaction() as tx:
                await _anonymise(clock, tx, merchant_id, payment_ids[at : at + _BATCH], actor, reason, result)
    async with db.transaction() as tx:
        for text in customer.texts():
            pattern = f"%{text.translate(_LITERALLY)}%"
            rows = await tx.write_all(_CLEAR_INCIDENTS, merchant=merchant_id, text=text, pattern=pattern)
            result.incidents += len(rows)
            result.unmatched_callbacks += len(await tx.write_all(_DELETE_UNMATCHED, pattern=pattern))
        if result.incidents or result.unmatched_callbacks:
            counts: Facts = {"incidents": result.incidents, "unmatched_callbacks": result.unmatched_callbacks}
            await _record(clock, tx, merchant_id, actor, reason, counts)
    return result


async def _payments_of(db: Database, merchant_id: MerchantId, env: Environment, customer: CustomerKeys) -> list[int]:
    """The ids of the customer's payments in this environment."""
    payment_ids: list[int] = []
    since, after = Instant(0), 0
    while rows := await db.scan(_page, merchant=merchant_id, environment=env, since=since, after=after):
        payment_ids += [row_id for _, row_id, phone, payer, email in rows if customer.has(phone, payer, email)]
        since, after = rows[-1][0], rows[-1][1]
    return payment_ids


async def _anonymise(
    clock: Clock,
    tx: Transaction,
    merchant_id: MerchantId,
    ids: list[int],
    actor: Actor,
    reason: str,
    result: Anonymised,
) -> None:
    locked = await tx.all(_LOCK, ids=json.dumps(ids))
    refunded = await tx.all(_REFUNDS, merchant=merchant_id, ids=json.dumps(ids))
    deliveries = await tx.all(_DELIVERIES, ids=json.dumps(ids))
    on_their_way = {payment_id for payment_id, _, _, status in refunded if status == "pending"}
    on_their_way |= {payment_id for _, payment_id, status, _ in deliveries if status == "pending"}
    on_their_way |= {payment_id for (payment_id,) in await tx.all(_DISPUTES, ids=json.dumps(ids))}
    late = {(kind, subject) for kind, subject in await tx.all(_LATE, merchant=merchant_id)}
    on_their_way |= {payment_id for payment_id, refund_id, _, _ in refunded if ("refund", refund_id) in late}
    ready: dict[int, str] = {}
    for reference, status, payment_id, *_ in locked:
        if status == "pending" or payment_id in on_their_way or ("payment", payment_id) in late:
            result.waiting.append(reference)
        else:
            ready[payment_id] = reference
    if not ready:
        return
    ready_ids = json.dumps(sorted(ready))
    await tx.write(_CLEAR_PAYMENTS, ids=ready_ids)
    await tx.write(_CLEAR_SESSIONS, ids=ready_ids)
    await customer_names.forget(tx, (tuple(names) for _, _, *names in locked if names[0] in ready))
    await tx.write(_CLEAR_REFUNDS, merchant=merchant_id, ids=ready_ids)
    await tx.write(_CLEAR_PROPOSALS, ids=ready_ids)
    for event_id, _, body in await tx.all(_EVENTS, ids=ready_ids):
        await tx.write(_CLEAR_EVENT, event_id=event_id, new_body=without_customer(body))
    cleared = [(delivery_id, history) for delivery_id, payment_id, _, history in deliveries if payment_id in ready]
    for delivery_id, history in cleared:  # A receiver may have repeated what it was sent.
        await tx.write(_CLEAR_DELIVERY, delivery_id=delivery_id, new_history=without_answers(history))
    result.payments += len(ready)
    result.refunds += sum(payment_id in ready for payment_id, _, _, _ in refunded)
    result.deliveries += len(cleared)
    await _record(
        clock, tx, merchant_id, actor, reason, {"payments": sorted(ready.values()), "deliveries": len(cleared)}
    )


async def _record(
    clock: Clock, tx: Transaction, merchant_id: MerchantId, actor: Actor, reason: str, facts: Facts
) -> None:
    """The log says which payments, never whose."""
    act = Act(actor, "customer.anonymised", "merchant", str(merchant_id), merchant_id, reason, after=facts)
    await audit_log.record(tx, act, clock.now())


def without_customer(body: str) -> str:
    """The JSON of a webhook without what it says of the customer; its other members stay as they are."""
    return msgspec.json.encode(_cleared(body.encode())).decode()


def _cleared(value: bytes | msgspec.Raw) -> Any:
    """Only objects and lists are read: a merchant's `metadata` may hold numbers that no library reads."""
    text = bytes(value).lstrip()
    if text.startswith(b"["):
        return [_cleared(item) for item in msgspec.json.decode(text, type=list[msgspec.Raw])]
    if not text.startswith(b"{"):
        return msgspec.Raw(text)
    members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    # The object of a payment mode has a name and a country that are nobody's.
    personal = frozenset() if "operator" in members else _PERSONAL
    return {
        name: None if name in personal else REMOVED if name in _FREE_TEXTS else _cleared(member)
        for name, member in members.items()
    }
