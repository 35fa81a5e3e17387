"""Mails about payments that came in: a receipt to each customer, and to people of the team a mail for each payment or
each day. All by choice, and for live payments only.

A payment's way knows nothing of them. The worker follows the postings up to the last one that the hash chain covers
(`ledger/hash_chain.py`), so that none is missed or told twice: a mail leaves two or three minutes after the payment.
"""

import json
from datetime import date, datetime, time, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import BigInteger, bindparam, cast, delete, exists, func, insert, select, update

from guichet.audit_log import entries as audit_log
from guichet.clock import MINUTE, Instant, from_datetime, later, to_datetime
from guichet.context import AppContext
from guichet.db.engine import Reader, Transaction, require
from guichet.db.sql_functions import is_listed, new_row, upsert
from guichet.db.tables import (
    memberships,
    merchants,
    payment_links,
    payment_mail_progress,
    payment_mails,
    payments,
    postings,
    users,
)
from guichet.domain.accounts import User, UserId
from guichet.domain.audit_log import Act, Actor
from guichet.domain.ids import MerchantId
from guichet.domain.mails import PaymentMails
from guichet.domain.merchants import Merchant
from guichet.domain.money import round_to_currency
from guichet.domain.payments import Payment
from guichet.domain.posting_rules import COLLECTED
from guichet.domain.roles import MerchantRole, may_as_merchant
from guichet.ledger.hash_chain import chain_head
from guichet.mail.outbox import Outbox
from guichet.schemas.payment import payment_identifier

#: Postings that one turn reads at most, and days that it tells.
STEP: Final = 500
#: A day is told so long after its end, when what was paid just before is counted.
_AFTER_MIDNIGHT: Final = 10 * MINUTE
_PER_PAYMENT: Final = payment_mails.c.frequency == "each"

_STATE: Final = select(
    select(payment_mail_progress.c.through_posting_id).scalar_subquery(),
    exists().where(_PER_PAYMENT),
    select(func.min(payment_mails.c.due_at)).scalar_subquery(),
)
_CHOICES: Final = select(payment_mails.c.user_id, payment_mails.c.frequency).where(
    payment_mails.c.merchant_id == bindparam("merchant"),
    (payment_mails.c.user_id == bindparam("user")) | payment_mails.c.user_id.is_(None),
)
_FORGET: Final = delete(payment_mails).where(
    payment_mails.c.merchant_id == bindparam("merchant"),
    payment_mails.c.user_id.is_not_distinct_from(bindparam("user", type_=payment_mails.c.user_id.type)),
)
_CHOOSE: Final = insert(payment_mails).values(new_row(payment_mails))
_START: Final = upsert(payment_mail_progress).values(frequency="each", through_posting_id=bindparam("through"))
_START_HERE: Final = _START.on_conflict_do_update(
    index_elements=["frequency"], set_={"through_posting_id": _START.excluded.through_posting_id}
)
#: Whoever moves it on tells what lies between, in the same transaction.
_MOVE_ON: Final = (
    update(payment_mail_progress)
    .where(payment_mail_progress.c.through_posting_id == bindparam("after"))
    .values(through_posting_id=bindparam("upto"))
    .returning(payment_mail_progress.c.through_posting_id)
)
_PAID: Final = (
    select(postings.c.created_at, payment_links.c.token, merchants.c.name, merchants.c.time_zone, *payments.c)
    .join(payments, payments.c.id == postings.c.subject_id)
    .join(merchants, merchants.c.id == payments.c.merchant_id)
    .outerjoin(payment_links, payment_links.c.id == payments.c.link_id)
    .where(
        postings.c.id > bindparam("after"),
        postings.c.id <= bindparam("upto"),
        postings.c.cause == COLLECTED,
        postings.c.leg == "amount",
        postings.c.env == "live",
        payments.c.status == "succeeded",
        exists().where(_PER_PAYMENT, payment_mails.c.merchant_id == postings.c.merchant_id),
    )
    .order_by(postings.c.id)
)
_WITH_PERSON: Final = payment_mails.outerjoin(users, users.c.id == payment_mails.c.user_id).outerjoin(
    memberships,
    (memberships.c.user_id == payment_mails.c.user_id) & (memberships.c.merchant_id == payment_mails.c.merchant_id),
)
_RECIPIENTS: Final = (
    select(payment_mails.c.merchant_id, payment_mails.c.chosen_at, memberships.c.role, *users.c)
    .select_from(_WITH_PERSON)
    .where(_PER_PAYMENT, is_listed(payment_mails.c.merchant_id, "merchants"))
)
_DUE: Final = (
    select(payment_mails.c.id, payment_mails.c.due_at, memberships.c.role, *merchants.c, *users.c)
    .select_from(_WITH_PERSON.join(merchants, merchants.c.id == payment_mails.c.merchant_id))
    .where(payment_mails.c.due_at <= bindparam("now"))
    .order_by(payment_mails.c.due_at)
    .limit(STEP)
)
#: Those refunded since were paid all the same, as on the overview.
_OF_DAY: Final = (
    select(payments.c.operator, func.count(), cast(func.sum(payments.c.amount), BigInteger))
    .where(
        payments.c.merchant_id == bindparam("merchant"),
        payments.c.env == "live",
        (payments.c.status == "succeeded") | (payments.c.status == "refunded"),
        payments.c.currency == bindparam("currency"),
        payments.c.created_at >= bindparam("since"),
        payments.c.created_at < bindparam("until"),
    )
    .group_by(payments.c.operator)
    .order_by(payments.c.operator)
)
_NEXT_DAY: Final = (
    update(payment_mails)
    .where(payment_mails.c.id == bindparam("mails"), payment_mails.c.due_at == bindparam("due"))
    .values(due_at=bindparam("next_due"))
    .returning(payment_mails.c.id)
)


class Choices(NamedTuple):
    """`receipts`: customers get them."""

    own: PaymentMails | None
    receipts: bool


async def choices(db: Reader, merchant_id: MerchantId, user_id: UserId) -> Choices:
    frequencies = dict(await db.all(_CHOICES, merchant=merchant_id, user=user_id))
    return Choices(frequencies.get(user_id), None in frequencies)


async def choose_own(
    ctx: AppContext, tx: Transaction, merchant: Merchant, user: User, frequency: PaymentMails | None, now: Instant
) -> None:
    """What this person is mailed from now on; None: nothing."""
    await tx.write(_FORGET, merchant=merchant.id, user=user.id)
    if frequency is not None:
        due = _next_summary_at(now, _zone(ctx, merchant.time_zone)) if frequency == "daily" else None
        await _choose(tx, merchant.id, user.id, frequency, due, now)


async def choose_receipts(tx: Transaction, merchant_id: MerchantId, *, sent: bool, actor: Actor, now: Instant) -> None:
    """Whether customers whose address is known get a receipt by mail from now on."""
    await tx.write(_FORGET, merchant=merchant_id, user=None)
    if sent:
        await _choose(tx, merchant_id, None, "each", None, now)
    act = Act(actor, "receipts.changed", "merchant", str(merchant_id), merchant_id, after={"active": sent})
    await audit_log.record(tx, act, now)


async def _choose(
    tx: Transaction,
    merchant_id: MerchantId,
    user_id: UserId | None,
    frequency: PaymentMails,
    due: Instant | None,
    now: Instant,
) -> None:
    _, has_recipients, _ = require(await tx.one(_STATE))
    if frequency == "each" and not has_recipients:  # Payments from before anybody asked for mails are skipped.
        await tx.write(_START_HERE, through=(await chain_head(tx)).last_posting_id)
    await tx.write(_CHOOSE, merchant_id=merchant_id, user_id=user_id, frequency=frequency, chosen_at=now, due_at=due)


async def queue_payment_mails(ctx: AppContext, now: Instant) -> bool:
    """Queues what is due; True when more waits. One statement while nobody chose anything."""
    through, has_recipients, due = require(await ctx.db.one(_STATE))
    if due is not None and due <= now:
        await _tell_days(ctx, now)
    return bool(has_recipients) and through is not None and await _tell_payments(ctx, through, now)


async def _tell_payments(ctx: AppContext, through: int, now: Instant) -> bool:
    covered = (await chain_head(ctx.db)).last_posting_id
    upto = min(covered, through + STEP)
    if upto <= through:
        return False
    paid = await ctx.db.scan(_PAID, after=through, upto=upto)
    numbers = json.dumps(sorted({row[5] for row in paid}))
    recipients = await ctx.db.scan(_RECIPIENTS, merchants=numbers) if paid else []
    outbox = Outbox(ctx.vault)
    async with ctx.db.transaction() as tx:
        if await tx.write(_MOVE_ON, after=through, upto=upto) is None:
            return True  # Another worker did it.
        for at, token, place, time_zone, *row in paid:
            payment = Payment(*row)
            values = await _values(ctx, payment, place, _zone(ctx, time_zone))
            for merchant_id, chosen_at, role, *person in recipients:
                if merchant_id != payment.merchant_id or chosen_at > at:
                    continue
                if person[0] is None:
                    if token is not None and payment.email is not None:
                        page = f"/pay/{token[:22]}/{token[22:]}/{payment.checkout_token}"
                        link = {"link": ctx.settings.public_url + page}
                        await outbox.add_to_customer(tx, payment.email, values | link, now)
                elif _may_hear(role, user := User(*person)):
                    page = f"/console/{merchant_id}/live/payments/{payment.reference}"
                    link = {"name": user.name, "link": ctx.settings.public_url + page}
                    await outbox.add(tx, user, "payment_received", values | link, now)
    return covered > upto


async def _values(ctx: AppContext, payment: Payment, place: str, zone: ZoneInfo) -> dict[str, str]:
    """What a receipt must hold: who paid whom how much, when, for what, by which operator, under which number."""
    mode = (await ctx.catalogues.of(payment.merchant_id)).by_operator(payment.operator)
    total = round_to_currency(payment.total_amount, payment.currency)
    name = " ".join(filter(None, (payment.firstname, payment.lastname)))
    return {
        "place": place,
        "subject": payment.description,
        "amount": str(payment.amount),
        "fee": str(total - payment.amount),
        "total": str(total),
        "currency": payment.currency,
        "date": str(payment.updated_at),
        "zone": str(zone),
        "mode": mode.name if mode else payment.operator,
        "person": name or f"••{(payment.phone_number or '')[-2:]}",
        "number": payment_identifier(payment.id),
        "reference": payment.reference,
    }


async def _tell_days(ctx: AppContext, now: Instant) -> None:
    merchant_columns = len(merchants.c)
    for mails, due, role, *row in await ctx.db.all(_DUE, now=now):
        merchant, user = Merchant(*row[:merchant_columns]), User(*row[merchant_columns:])
        zone = _zone(ctx, merchant.time_zone)
        values = await _values_of_day(ctx, merchant, Instant(due), zone)
        async with ctx.db.transaction() as tx:
            if await tx.write(_NEXT_DAY, mails=mails, due=due, next_due=_next_summary_at(now, zone)) is None:
                continue
            if values is not None and _may_hear(role, user):
                await Outbox(ctx.vault).add(tx, user, "payments_of_day", {"name": user.name, **values}, now)


async def _values_of_day(ctx: AppContext, merchant: Merchant, due: Instant, zone: ZoneInfo) -> dict[str, str] | None:
    """The day before `due`; None if nothing was paid on it."""
    end = to_datetime(due).astimezone(zone).date()
    day = {"since": _midnight(end, zone, -1), "until": _midnight(end, zone, 0)}
    paid = await ctx.db.scan(_OF_DAY, merchant=merchant.id, currency=merchant.currency, **day)
    if not paid:
        return None
    modes = await ctx.catalogues.of(merchant.id)
    names = {operator: modes.by_operator(operator) for operator, _, _ in paid}
    return {
        "place": merchant.name,
        "count": str(sum(count for _, count, _ in paid)),
        "amount": str(sum(amount for _, _, amount in paid)),
        "currency": merchant.currency,
        "day": (end - timedelta(days=1)).isoformat(),
        "operators": ", ".join(
            f"{mode.name if (mode := names[operator]) else operator} ({count})" for operator, count, _ in paid
        ),
        "link": f"{ctx.settings.public_url}/console/{merchant.id}/live",
    }


def _may_hear(role: MerchantRole | None, user: User) -> bool:
    """Whether the person still works for the merchant, in a role that sees what it takes in."""
    return user.status == "active" and role is not None and may_as_merchant(role, "overview.view", "live")


def _zone(ctx: AppContext, of_merchant: str | None) -> ZoneInfo:
    return ctx.settings.time_zone if of_merchant is None else ZoneInfo(of_merchant)


def _next_summary_at(now: Instant, zone: ZoneInfo) -> Instant:
    """When the day of now is told."""
    return later(Instant(_midnight(to_datetime(now).astimezone(zone).date(), zone, 1)), _AFTER_MIDNIGHT)


def _midnight(day: date, zone: ZoneInfo, days: int) -> int:
    """The beginning of the day so many days after this one."""
    return from_datetime(datetime.combine(day + timedelta(days=days), time(), zone))
