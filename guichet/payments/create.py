"""Creates a payment, from the API or from a payment link (docs/contract.md, "Requests").

The row is inserted first; the provider is called afterwards, outside any transaction. Our reference is therefore stored
before the request is sent: after a crash the payment is pending and the worker polls it. No debit is unknown here.
A provider may need longer than the request may wait (`payments/initiation.py`).
"""

from dataclasses import dataclass
from functools import partial
from typing import Final

from guichet.clock import MINUTE, Instant, later
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.db.lost_answers import repeat_when_lost
from guichet.db.references import new_reference
from guichet.domain.catalogue import PaymentMode, Quote, debit_faults, missing_fields, quote
from guichet.domain.errors import Conflict, InvalidRequest
from guichet.domain.ids import LinkId, PaymentId
from guichet.domain.merchants import Caller, Merchant, random_text
from guichet.domain.money import Currency, Hundredths
from guichet.domain.payments import DEFAULT_COUNTRY, DEFAULT_DESCRIPTION, Payment
from guichet.domain.posting_rules import ACTIVE
from guichet.domain.records import Record
from guichet.domain.sandbox_scenarios import MOBILE_MONEY_ONLY, SCENARIO, TestScenario
from guichet.ledger import wallets
from guichet.links import prompt_limits
from guichet.links import repository as links
from guichet.merchants import limits as merchant_limits
from guichet.payments import repository
from guichet.payments.initiation import initiate_within_request, initiation_lease
from guichet.payments.provider_calls import charge_for, encode_provider_data
from guichet.schemas.validation import invalid_request

TOKEN_LENGTH: Final = 32


class PaymentRequest(Record, frozen=True):
    """A payment that a merchant, or a customer on a payment link, requests.

    `amount` is in hundredths, `metadata` is JSON text. `checkout_token` was chosen by the hosted page: submitting the
    page again finds the same payment. `test_scenario` is for the test environment only.
    """

    amount: Hundredths
    currency: Currency
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
    link_id: LinkId | None = None
    link_external_id: str | None = None
    checkout_token: str | None = None
    test_scenario: TestScenario | None = None

    def fields_modes_require(self) -> dict[str, object]:
        """The fields that some payment modes require, under their names in the contract."""
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
    """`created` is False when the payment existed already: this call debited nobody."""

    payment: Payment
    mode: PaymentMode
    created: bool


async def create_payment(ctx: AppContext, caller: Caller, wanted: PaymentRequest) -> CreatedPayment:
    """The new payment, `pending`, or the one that already holds the request's external_id or checkout_token.

    Raises InvalidRequest (payment mode, missing fields, bounds; OverMerchantLimit), Conflict (wallet not `Actif`, link
    used up), TooManyPrompts (through links only). Raises PaymentFailed (refused at initiation) and ServerError (no
    route of ours works) when the payment is stored as `failed`.
    """
    catalogue = await ctx.catalogues.of(caller.merchant.id)
    quoted = check_request(catalogue.choose(wanted.operator, wanted.payment_mode_id), wanted)
    route = ctx.registry.routes(caller.env, quoted.mode.operator)
    payment = _new_payment(ctx, caller, wanted, quoted, route[0])
    charge = charge_for(ctx, payment, wanted.otp)
    first_poll_at = ctx.registry.provider(route[0]).first_poll_at(charge)
    stored = await repeat_when_lost(
        ctx.db, partial(_store, ctx, caller.merchant, payment, first_poll_at or payment.next_poll_at)
    )
    if stored is None:
        stored = await _find_stored(ctx, payment)
        # Our own row, as we wrote it: its INSERT happened, and the answer was lost.
        if (stored.reference, stored.lease_expires_at) != (payment.reference, payment.lease_expires_at):
            return CreatedPayment(await _answer_again(ctx, stored), quoted.mode, created=False)
    return CreatedPayment(await initiate_within_request(ctx, stored, charge, route), quoted.mode, created=True)


def check_request(mode: PaymentMode, wanted: PaymentRequest) -> Quote:
    """The amounts of the payment. Raises InvalidRequest with every required field that is missing, and a debit that is
    out of bounds; and if the scenario is not for a card."""
    quoted = quote(mode, wanted.amount)
    missing = missing_fields(mode, wanted.fields_modes_require())
    out_of_bounds = debit_faults(quoted, wanted.currency)
    if missing and out_of_bounds:
        raise invalid_request({**out_of_bounds, **missing})
    if missing:
        raise InvalidRequest(f"Il manque des informations pour payer avec {mode.name}.", missing)
    if out_of_bounds:
        raise InvalidRequest(out_of_bounds["amount"][0], out_of_bounds)
    if mode.is_card and wanted.test_scenario in MOBILE_MONEY_ONLY:
        sentence = f"Le scénario {wanted.test_scenario} n'existe qu'en Mobile Money."
        raise InvalidRequest(f"test_scenario : {sentence}", {"test_scenario": [sentence]})
    return quoted


def _new_payment(
    ctx: AppContext, caller: Caller, wanted: PaymentRequest, quoted: Quote, provider_account: str
) -> Payment:
    now, provider = ctx.clock.now(), ctx.registry.provider(provider_account)
    # The customer of a test link goes on to the page of the test cards as to a provider's.
    redirects = wanted.test_scenario == "redirect" or (
        caller.env == "test" and wanted.link_id is not None and quoted.mode.is_card
    )
    # In test the page that stands for the provider's; in live the way back from the provider's to the merchant's.
    needs_page = wanted.return_url is not None if caller.livemode else quoted.mode.is_card or redirects
    checkout_token = wanted.checkout_token or (random_text(TOKEN_LENGTH) if needs_page else None)
    return Payment(
        id=PaymentId(0),
        merchant_id=caller.merchant.id,
        env=caller.env,
        reference=new_reference(now),
        external_id=wanted.external_id,
        status="pending",
        amount=quoted.amount,
        fee_amount=quoted.fee_amount,
        total_amount=quoted.total_amount,
        currency=wanted.currency,
        description=DEFAULT_DESCRIPTION if wanted.description is None else wanted.description,
        operator=quoted.mode.operator,
        phone_number=wanted.phone_number,
        firstname=wanted.firstname,
        lastname=wanted.lastname,
        email=wanted.email,
        address=wanted.address,
        country=wanted.country or (DEFAULT_COUNTRY if quoted.mode.is_card else None),
        return_url=wanted.return_url,
        callback_url=wanted.callback_url,
        metadata=wanted.metadata,
        link_id=wanted.link_id,
        checkout_token=checkout_token,
        created_at=now,
        updated_at=now,
        provider_account=provider_account,
        provider_reference=None,
        provider_data=encode_provider_data({SCENARIO: wanted.test_scenario}) if wanted.test_scenario else None,
        redirect_url=f"{ctx.settings.public_url}/checkout/{checkout_token}" if redirects else None,
        failure_reason=None,
        # If the initiation never returns. The lease keeps others from polling the payment while it is running.
        next_poll_at=initiation_lease(now, provider),
        poll_count=0,
        lease_expires_at=initiation_lease(now, provider) if provider.remote else None,
        account_fingerprint=provider.fingerprint,
        link_reserved_until=None
        if wanted.link_id is None
        else later(now, ctx.settings.link_reservation_minutes * MINUTE),
        link_external_id=wanted.link_external_id,
        counted_day=None
        if caller.merchant.daily_limit is None or not caller.livemode
        else merchant_limits.day_of(caller.merchant, now, ctx.settings.time_zone),
    )


async def _store(ctx: AppContext, merchant: Merchant, payment: Payment, next_poll_at: Instant | None) -> Payment | None:
    """Inserts the payment; None when one with the same unique key exists. Raises Conflict if the wallet is not `Actif`
    or the link has no use left, TooManyPrompts, and OverMerchantLimit."""
    if payment.env == "test" and payment.link_id is None:
        return await repository.insert_new(ctx.db, payment, next_poll_at)
    async with ctx.db.transaction() as tx:
        stored = await repository.insert_new(tx, payment, next_poll_at)
        if stored is None:
            return None
        if payment.env == "live":
            await merchant_limits.check(tx, merchant, stored)
        if await wallets.wallet_status(tx, payment.merchant_id, payment.env, payment.currency) != ACTIVE:
            raise Conflict(
                "Le portefeuille du marchand n'accepte pas de mouvement pour le moment.", reason="wallet_not_active"
            )
        if payment.link_id is not None:
            if not await links.reserve_use(tx, payment.link_id, payment.created_at):
                raise Conflict(
                    "Ce lien de paiement a atteint son nombre maximal d'utilisations.", reason="link_used_up"
                )
            await prompt_limits.check(tx, ctx.settings, stored)
    return stored


async def _find_stored(ctx: AppContext, payment: Payment) -> Payment:
    """The payment that holds a unique key of `payment` already."""
    found = None
    if payment.external_id is not None:
        found = await repository.by_external_id(ctx.db, payment.merchant_id, payment.env, payment.external_id)
    if found is None and payment.checkout_token is not None:
        found = await repository.by_token(ctx.db, payment.checkout_token)
    if found is None:
        found = await repository.by_reference(ctx.db, payment.merchant_id, payment.env, payment.reference)
    return require(found)


async def _answer_again(ctx: AppContext, found: Payment) -> Payment:
    # The first request may have been answered 500 because no standby confirmed its commit. Wait for the standby here
    # too, or a repeated request could be acknowledged before the first one is durable (D69).
    await ctx.db.wait_for_replication()
    if found.status == "pending" and found.lease_expires_at is not None and not found.answered_pending:
        found = await repository.record_answered_pending(ctx.db, found)
    return found
