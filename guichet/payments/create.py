"""Creates a payment, from the API or from a hosted link (docs/contract.md, "Requests", "States").

Insert first, initiate after, outside any transaction: our reference is stored before the first byte leaves, so a crash
leaves a pending payment that the worker asks about, never a debit that nobody knows.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from guichet import tracing
from guichet.clock import SECOND, Instant
from guichet.context import Core, charge_of
from guichet.db.engine import given
from guichet.domain.catalogue import PaymentMode, Quote, check_debit, missing_fields, quote
from guichet.domain.errors import Conflict, InvalidRequest, PaymentFailed
from guichet.domain.merchants import Caller, random_text
from guichet.domain.payments import ASK_AFTER, DEFAULT_COUNTRY, DEFAULT_DESCRIPTION, Payment
from guichet.domain.posting_rules import ACTIVE
from guichet.domain.records import Record
from guichet.domain.references import new_reference
from guichet.ledger import postings as ledger
from guichet.logs import log
from guichet.payments import link_repository as links
from guichet.payments import repository as payments
from guichet.payments.integrity import confirms
from guichet.payments.polling import LEASE, within_budget
from guichet.payments.settlement import settle_payment
from guichet.providers.base import REASONS, Accepted, Charge, InitiateAnswer, NotTaken, Refused, Succeeded

#: When to ask about a payment whose initiation never came back, if its connector does not say.
CRASH_NET: Final = 30 * SECOND
TOKEN_LENGTH: Final = 32


class Order(Record, frozen=True):
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
class Collected:
    """`created` is False when the payment existed already: nothing was charged by this call."""

    payment: Payment
    mode: PaymentMode
    created: bool


async def collect(core: Core, caller: Caller, order: Order) -> Collected:
    """The new payment, `pending`, or the one that already holds the order's external_id (or checkout_token).

    Raises InvalidRequest (mode, missing fields, bounds), Conflict (wallet not `Actif`, link used up), PaymentFailed
    (refused at initiation; the payment is stored as `failed`).
    """
    catalogue = await core.catalogues.of(caller.merchant.id)
    quoted = check_order(catalogue.choose(order.operator, order.payment_mode_id), order)
    route = core.registry.routes(caller.env, quoted.mode.operator)
    payment = _new_payment(core, caller, order, quoted, route[0])
    charge = charge_of(core, payment, order.otp)
    first_question = core.registry.connector(route[0]).first_question(charge)
    stored = await _store(core, payment, first_question or payment.due_at)
    if stored is None:
        return Collected(await _existing(core, payment), quoted.mode, created=False)
    return Collected(await _initiate(core, stored, charge, route), quoted.mode, created=True)


def check_order(mode: PaymentMode, order: Order) -> Quote:
    """The quote, once everything the mode requires is there and the debit is within bounds."""
    if details := missing_fields(mode, order.given()):
        raise InvalidRequest(f"Il manque des informations pour payer avec {mode.name}.", details)
    quoted = quote(mode, order.amount)
    check_debit(quoted, order.currency)
    return quoted


def _new_payment(core: Core, caller: Caller, order: Order, quoted: Quote, connection: str) -> Payment:
    now = core.clock.now()
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
        due_at=now + CRASH_NET,
        asked=0,
        # Nobody asks about a debit that is still being requested.
        leased_until=now + LEASE if core.registry.connector(connection).remote else None,
    )


async def _store(core: Core, payment: Payment, due_at: Instant | None) -> Payment | None:
    """None when a unique key already holds a payment. Live money also needs an open wallet and a use of its link."""
    if payment.env == "test" and payment.link_id is None:
        return await payments.insert_new(core.db, payment, due_at)
    async with core.db.transaction() as tx:
        stored = await payments.insert_new(tx, payment, due_at)
        if stored is None:
            return None
        if await ledger.wallet_status(tx, payment.merchant_id, payment.env, payment.currency) != ACTIVE:
            raise Conflict("Le portefeuille du marchand n'accepte pas de mouvement pour le moment.")
        if payment.link_id is not None and not await links.reserve_use(tx, payment.link_id):
            raise Conflict("Ce lien de paiement a atteint son nombre maximal d'utilisations.")
    return stored


async def _existing(core: Core, payment: Payment) -> Payment:
    found = None
    if payment.external_id is not None:
        found = await payments.by_external_id(core.db, payment.merchant_id, payment.env, payment.external_id)
    if found is None and payment.checkout_token is not None:
        found = await payments.by_token(core.db, payment.checkout_token)
    assert found is not None
    # Its own request may have been answered 500 because no standby confirmed it: this answer must not be braver.
    await core.db.copied()
    return found


async def _initiate(core: Core, payment: Payment, charge: Charge, route: list[str]) -> Payment:
    """Asks the operators of the route in order; the next one only if the one before provably took nothing."""
    tracing.about_payment(payment.reference)
    answer: InitiateAnswer = NotTaken()
    for name in route:
        if name != payment.connection:
            switched = await payments.switch_connection(core.db, payment, name, core.clock.now() + LEASE)
            if switched is None:
                return given(await payments.by_id(core.db, payment.id))
            payment, charge = switched, charge_of(core, switched, charge.otp)
        connector = core.registry.connector(name)
        answer = await within_budget(connector.initiate(charge), name, "initiate", timed=connector.remote)
        if not isinstance(answer, NotTaken):
            break
        log.warning("route.not_taken", reference=payment.reference, connection=name, raw=answer.raw)
    match answer:
        case Accepted():
            return await _accepted(core, payment, answer)
        case Succeeded() if await confirms(core, payment, answer, "payment", payment.reference):
            await settle_payment(core, payment, answer)
        case Refused() | NotTaken():
            refusal = Refused(answer.reason, answer.raw)
            settled = await settle_payment(core, payment, refusal, at_initiation=True)
            if settled.status != "failed":
                return settled
            raise PaymentFailed(REASONS[answer.reason])
        case _:
            log.warning("initiation.unknown", reference=payment.reference, answer=repr(answer))
            await payments.ask_later(core.db, payment.id, core.clock.now() + ASK_AFTER[0] * SECOND)
    return payment


async def _accepted(core: Core, payment: Payment, answer: Accepted) -> Payment:
    """Keeps what the operator returned; where there is nothing to keep (the sandbox), one write was enough."""
    connection = given(payment.connection)
    if core.registry.connector(connection).remote:
        due_at = answer.ask_at or core.clock.now() + ASK_AFTER[0] * SECOND
        memo = msgspec.json.encode(answer.memo).decode() if answer.memo else None
        recorded = await payments.record_initiation(
            core.db, payment.id, connection, answer.provider_ref, memo, answer.redirect_url, due_at
        )
        payment = recorded or payment
    if _is_due(payment, core.clock.now()):
        core.wake.questions.set()
    return payment


def _is_due(payment: Payment, now: Instant) -> bool:
    return payment.due_at is not None and payment.due_at <= now
