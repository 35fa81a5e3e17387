"""Creates a payment, from the API or from a hosted link (docs/contract.md, "Requests", "States").

Insert first, initiate after, outside any transaction: our reference is stored before the first byte leaves, so a crash
leaves a pending payment that the worker asks about, never a debit that nobody knows.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from guichet import tracing
from guichet.clock import SECOND, Instant
from guichet.context import AppContext, charge_for
from guichet.db.engine import require
from guichet.domain.catalogue import PaymentMode, Quote, check_debit, missing_fields, quote
from guichet.domain.errors import Conflict, InvalidRequest, PaymentFailed
from guichet.domain.merchants import Caller, random_text
from guichet.domain.payments import DEFAULT_COUNTRY, DEFAULT_DESCRIPTION, POLL_INTERVALS, Payment
from guichet.domain.posting_rules import ACTIVE
from guichet.domain.records import Record
from guichet.domain.references import new_reference
from guichet.ledger import postings as ledger
from guichet.logs import log
from guichet.payments import link_repository as links
from guichet.payments import repository as payments
from guichet.payments.integrity import confirm_amount
from guichet.payments.polling import LEASE_DURATION, call_provider
from guichet.payments.settlement import settle_payment
from guichet.providers.base import REFUSAL_REASONS, Accepted, Charge, InitiationResult, NotProcessed, Refused, Succeeded

#: When to ask about a payment whose initiation never came back, if its connector does not say.
POLL_AFTER_CRASH: Final = 30 * SECOND
TOKEN_LENGTH: Final = 32


class PaymentRequest(Record, frozen=True):
    """What a merchant, or a customer on a hosted link, wants paid. `amount` in hundredths; `metadata` is JSON text.

    `checkout_token` is what a hosted page chose for the payment: submitting it again finds the same payment.
    """

    amount: int
    currency: str
    operator: str | None = None
    payment_mode_id: int | None = None
    phone_number: str | None = None
    otp: str | None = None
    firstname: str | None = None
    lastname: str | None = None
    email: str | None = None
    address: str | None = None
    country: str | None = None
    description: str | None = None
    external_id: str | None = None
    return_url: str | None = None
    callback_url: str | None = None
    metadata: str | None = None
    link_id: int | None = None
    checkout_token: str | None = None

    def given(self) -> dict[str, object]:
        """The fields that some modes require, under their names in the contract."""
        return {
            "phone_number": self.phone_number,
            "otp": self.otp,
            "return_url": self.return_url,
            "customer.firstname": self.firstname,
            "customer.lastname": self.lastname,
            "customer.email": self.email,
        }


@dataclass(frozen=True, slots=True)
class CreatedPayment:
    """`created` is False when the payment existed already: nothing was charged by this call."""

    payment: Payment
    mode: PaymentMode
    created: bool


async def create_payment(ctx: AppContext, caller: Caller, order: PaymentRequest) -> CreatedPayment:
    """The new payment, `pending`, or the one that already holds the order's external_id (or checkout_token).

    Raises InvalidRequest (mode, missing fields, bounds), Conflict (wallet not `Actif`, link used up), PaymentFailed
    (refused at initiation; the payment is stored as `failed`).
    """
    catalogue = await ctx.catalogues.of(caller.merchant.id)
    quoted = check_request(catalogue.choose(order.operator, order.payment_mode_id), order)
    route = ctx.registry.routes(caller.env, quoted.mode.operator)
    payment = _new_payment(ctx, caller, order, quoted, route[0])
    charge = charge_for(ctx, payment, order.otp)
    first_poll_at = ctx.registry.provider(route[0]).first_poll_at(charge)
    stored = await _store(ctx, payment, first_poll_at or payment.due_at)
    if stored is None:
        return CreatedPayment(await _existing(ctx, payment), quoted.mode, created=False)
    return CreatedPayment(await _initiate(ctx, stored, charge, route), quoted.mode, created=True)


def check_request(mode: PaymentMode, order: PaymentRequest) -> Quote:
    """The quote, once everything the mode requires is there and the debit is within bounds."""
    if details := missing_fields(mode, order.given()):
        raise InvalidRequest(f"Il manque des informations pour payer avec {mode.name}.", details)
    quoted = quote(mode, order.amount)
    check_debit(quoted, order.currency)
    return quoted


def _new_payment(ctx: AppContext, caller: Caller, order: PaymentRequest, quoted: Quote, connection: str) -> Payment:
    now = ctx.clock.now()
    needs_page = quoted.mode.is_card and not caller.livemode
    return Payment(
        id=0,
        merchant_id=caller.merchant.id,
        env=caller.env,
        reference=new_reference(now),
        external_id=order.external_id,
        status="pending",
        amount=quoted.amount,
        fee_amount=quoted.fee_amount,
        total_amount=quoted.total_amount,
        currency=order.currency,
        description=DEFAULT_DESCRIPTION if order.description is None else order.description,
        operator=quoted.mode.operator,
        phone_number=order.phone_number,
        firstname=order.firstname,
        lastname=order.lastname,
        email=order.email,
        address=order.address,
        country=order.country or (DEFAULT_COUNTRY if quoted.mode.is_card else None),
        return_url=order.return_url,
        callback_url=order.callback_url,
        metadata=order.metadata,
        link_id=order.link_id,
        checkout_token=order.checkout_token or (random_text(TOKEN_LENGTH) if needs_page else None),
        created_at=now,
        updated_at=now,
        connection=connection,
        provider_ref=None,
        provider_memo=None,
        redirect_url=None,
        failure=None,
        due_at=now + POLL_AFTER_CRASH,
        asked=0,
        # Nobody asks about a debit that is still being requested.
        leased_until=now + LEASE_DURATION if ctx.registry.provider(connection).remote else None,
    )


async def _store(ctx: AppContext, payment: Payment, due_at: Instant | None) -> Payment | None:
    """None when a unique key already holds a payment. Live money also needs an open wallet and a use of its link."""
    if payment.env == "test" and payment.link_id is None:
        return await payments.insert_new(ctx.db, payment, due_at)
    async with ctx.db.transaction() as tx:
        stored = await payments.insert_new(tx, payment, due_at)
        if stored is None:
            return None
        if await ledger.wallet_status(tx, payment.merchant_id, payment.env, payment.currency) != ACTIVE:
            raise Conflict("Le portefeuille du marchand n'accepte pas de mouvement pour le moment.")
        if payment.link_id is not None and not await links.reserve_use(tx, payment.link_id):
            raise Conflict("Ce lien de paiement a atteint son nombre maximal d'utilisations.")
    return stored


async def _existing(ctx: AppContext, payment: Payment) -> Payment:
    found = None
    if payment.external_id is not None:
        found = await payments.by_external_id(ctx.db, payment.merchant_id, payment.env, payment.external_id)
    if found is None and payment.checkout_token is not None:
        found = await payments.by_token(ctx.db, payment.checkout_token)
    assert found is not None
    # Its own request may have been answered 500 because no standby confirmed it: this answer must not be braver.
    await ctx.db.wait_for_replication()
    return found


async def _initiate(ctx: AppContext, payment: Payment, charge: Charge, route: list[str]) -> Payment:
    """Asks the operators of the route in order; the next one only if the one before provably took nothing."""
    tracing.about_payment(payment.reference)
    answer: InitiationResult = NotProcessed()
    for name in route:
        if name != payment.connection:
            switched = await payments.switch_connection(ctx.db, payment, name, ctx.clock.now() + LEASE_DURATION)
            if switched is None:
                return require(await payments.by_id(ctx.db, payment.id))
            payment, charge = switched, charge_for(ctx, switched, charge.otp)
        provider = ctx.registry.provider(name)
        answer = await call_provider(provider.initiate(charge), name, "initiate", timed=provider.remote)
        if not isinstance(answer, NotProcessed):
            break
        log.warning("route.not_taken", reference=payment.reference, connection=name, raw=answer.raw)
    match answer:
        case Accepted():
            return await _accepted(ctx, payment, answer)
        case Succeeded() if await confirm_amount(ctx, payment, answer, "payment", payment.reference):
            await settle_payment(ctx, payment, answer)
        case Refused() | NotProcessed():
            refusal = Refused(answer.reason, answer.raw)
            settled = await settle_payment(ctx, payment, refusal, at_initiation=True)
            if settled.status != "failed":
                return settled
            raise PaymentFailed(REFUSAL_REASONS[answer.reason])
        case _:
            log.warning("initiation.unknown", reference=payment.reference, answer=repr(answer))
            await payments.schedule_next_poll(ctx.db, payment.id, ctx.clock.now() + POLL_INTERVALS[0] * SECOND)
    return payment


async def _accepted(ctx: AppContext, payment: Payment, answer: Accepted) -> Payment:
    """Keeps what the operator returned; where there is nothing to keep (the sandbox), one write was enough."""
    connection = require(payment.connection)
    if ctx.registry.provider(connection).remote:
        due_at = answer.next_poll_at or ctx.clock.now() + POLL_INTERVALS[0] * SECOND
        memo = msgspec.json.encode(answer.provider_data).decode() if answer.provider_data else None
        recorded = await payments.record_initiation(
            ctx.db, payment.id, connection, answer.provider_reference, memo, answer.redirect_url, due_at
        )
        payment = recorded or payment
    if _is_due(payment, ctx.clock.now()):
        ctx.wakeups.polling.set()
    return payment


def _is_due(payment: Payment, now: Instant) -> bool:
    return payment.due_at is not None and payment.due_at <= now
