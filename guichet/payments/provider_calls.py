"""Calls to providers: the data of a payment or refund that a call sends, its time limit, and the questions what became
of a payment or a refund."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import Final, TypeVar

import msgspec

from guichet import metrics, tracing
from guichet.clock import SECOND
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.money import Hundredths, round_to_currency
from guichet.domain.payments import Payment, Refund, never_arrived
from guichet.domain.phone_numbers import payee_number
from guichet.incidents import repository as incidents
from guichet.incidents.repository import IncidentDetail
from guichet.payments import account_identity, repository
from guichet.payments.account_identity import AccountMatch
from guichet.providers.base import (
    PROVIDER_TIMEOUT,
    Accepted,
    AlreadyRefunded,
    AmbiguousRefusal,
    Charge,
    FloatEmpty,
    NotFound,
    NotProcessed,
    Provider,
    RefundStatusResult,
    Refused,
    Reversal,
    StatusResult,
    Succeeded,
    Unknown,
)
from guichet.providers.shared.answers import ProviderAnswer

T = TypeVar("T")

#: How long a process may work on a payment or refund alone; longer than a provider may take to answer.
LEASE_DURATION: Final = 30 * SECOND
#: What is known of what another account has: an old and a new account of a provider must stand side by side.
ANOTHER_ACCOUNT: Final = Unknown(ProviderAnswer.ANOTHER_ACCOUNT())
UNSURE_ACCOUNT: Final = Unknown(ProviderAnswer.UNSURE_ACCOUNT())
_RESULT_NAMES: Final[dict[type, str]] = {
    Accepted: "accepted",
    Succeeded: "succeeded",
    Refused: "refused",
    AmbiguousRefusal: "refused",
    Unknown: "unknown",
    NotFound: "not_found",
    NotProcessed: "not_processed",
    FloatEmpty: "float_empty",
    AlreadyRefunded: "already_refunded",
}


async def call_provider(
    provider: Provider,
    call: Awaitable[T],
    provider_account: str,
    operation: str,
    timeout: float = PROVIDER_TIMEOUT,
) -> T | Unknown:
    """The result of `call`, an operation of `provider`; Unknown when it took longer than `timeout` seconds.

    The lease of the row must last longer, so that no other process calls the provider meanwhile.

    Every call is counted and traced.

    `operation`: initiate, status, refund, refund_status, send_code or disputes.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    result: T | Unknown
    try:
        if provider.remote:
            async with asyncio.timeout(timeout):
                result = await call
        else:
            result = await call
    except TimeoutError:
        result = Unknown(ProviderAnswer.NO_ANSWER(seconds=f"{timeout:g}"))
    name, seconds = _RESULT_NAMES.get(type(result), "other"), loop.time() - began
    metrics.provider_call(provider_account, operation, name, seconds)
    tracing.provider_call(provider_account, operation, name, seconds)
    return result


async def account_match(ctx: AppContext, provider: Provider, subject: Payment | Refund) -> AccountMatch:
    """Whether the account is the one that the payment or refund was sent to; see `AccountMatch`."""
    if subject.account_fingerprint == provider.fingerprint and not provider.named_by_key:
        return AccountMatch.SAME
    return await account_identity.compare(ctx, provider, subject)


async def payment_status(ctx: AppContext, payment: Payment, *, ask_only: bool = False) -> StatusResult:
    """What the provider says about the payment. `ask_only`: see `Charge`."""
    account = require(payment.provider_account)
    provider = ctx.registry.provider(account)
    match = await account_match(ctx, provider, payment)
    if match is AccountMatch.OTHER:
        return ANOTHER_ACCOUNT
    charge = charge_for(ctx, payment, ask_only=ask_only or match is AccountMatch.UNSURE)
    if provider.remote and payment.provider_reference is None:  # The answer to the initiation was lost.
        named = await repository.reference_from_callback(ctx.db, payment)
        charge = msgspec.structs.replace(charge, callback_reference=named)
    return explicit(await call_provider(provider, provider.status(charge), account, "status"), match)


async def refund_status(
    ctx: AppContext, refund: Refund, payment: Payment, *, ask_only: bool = False
) -> RefundStatusResult:
    """What the provider says about the refund. `ask_only`: see `Charge`; otherwise a request that never arrived may be
    sent again."""
    account = require(refund.provider_account)
    provider = ctx.registry.provider(account)
    match = await account_match(ctx, provider, refund)
    if match is AccountMatch.OTHER:
        return ANOTHER_ACCOUNT
    if ask_only or match is AccountMatch.UNSURE:
        reversal = replace(reversal_for(ctx, refund, payment), ask_only=True)
    else:
        reversal = await request_of(ctx, provider, refund, payment)
    return explicit(await call_provider(provider, provider.refund_status(reversal), account, "refund_status"), match)


def explicit(result: T, match: AccountMatch) -> T | Unknown:
    """The result; without "not found" from an account that may be another one."""
    return UNSURE_ACCOUNT if match is AccountMatch.UNSURE and isinstance(result, NotFound) else result


def charge_for(ctx: AppContext, payment: Payment, otp: str | None = None, *, ask_only: bool = False) -> Charge:
    """The debit to request from the provider, or to ask about."""
    return Charge(
        payment,
        requested_amount(payment),
        otp=otp,
        return_url=_return_url(ctx, payment),
        notify_url=_notify_url(ctx, payment.provider_account, payment.reference),
        ask_only=ask_only,
        provider_data=decode_provider_data(payment.provider_data),
    )


def requested_amount(subject: Payment | Refund) -> Hundredths:
    """What the provider is asked to move: the total, rounded to the currency's smallest unit (D27)."""
    total = subject.total_amount if isinstance(subject, Payment) else subject.amount
    return round_to_currency(total, subject.currency)


async def name_merchant(ctx: AppContext, provider: Provider, subject: Payment | Refund, charge: Charge) -> Charge:
    """The charge with the provider's id of the merchant, for an account that must name it; for others as it is.

    A merchant without an id becomes an incident, once; the account then does not process the charge.
    """
    account = subject.provider_account
    if account is None or not provider.names_merchants:
        return charge
    provider_merchant_id = await ctx.provider_merchants.id_of(account, subject.merchant_id)
    if provider_merchant_id is None:
        detail = IncidentDetail.MERCHANT_UNKNOWN(account=account, name=account)
        await incidents.report_once_for_merchant(
            ctx.db, subject, incidents.MISSING_AGGREGATED_MERCHANT, detail, ctx.clock.now()
        )
    return msgspec.structs.replace(charge, provider_merchant_id=provider_merchant_id)


def reversal_for(ctx: AppContext, refund: Refund, payment: Payment) -> Reversal:
    """The refund to request from the provider that gives the money back."""
    charge = charge_for(ctx, payment)
    return Reversal(
        reference=refund.request_reference,
        charge=msgspec.structs.replace(charge, notify_url=_notify_url(ctx, refund.provider_account, refund.reference)),
        amount=charge.amount,
        currency=refund.currency,
        collected_here=refund.provider_account == payment.provider_account,
        payee_number=payee_number(refund, payment),
        provider_reference=refund.provider_reference,
        provider_data=decode_provider_data(refund.provider_data),
        sent_at=refund.sent_at,
        never_arrived=never_arrived(refund),
    )


async def request_of(ctx: AppContext, provider: Provider, refund: Refund, payment: Payment) -> Reversal:
    """As `reversal_for`, for a request that may move money. Only a payout names the merchant: a refund names the debit
    that it gives back."""
    reversal = reversal_for(ctx, refund, payment)
    if reversal.collected_here:
        return reversal
    return replace(reversal, charge=await name_merchant(ctx, provider, refund, reversal.charge))


def _return_url(ctx: AppContext, payment: Payment) -> str | None:
    """Where the provider's page sends the customer: to our own address, which goes on to the merchant's page with
    `reference` and `status`. A link's payment comes back to our page of it; a payment that was created before our own
    address existed has no token, and its customer goes straight to the merchant."""
    if payment.return_url is None or payment.link_id is not None or payment.checkout_token is None:
        return payment.return_url
    return f"{ctx.settings.public_url}/checkout/{payment.checkout_token}/return"


def _notify_url(ctx: AppContext, provider_account: str | None, reference: str) -> str | None:
    if provider_account is None:
        return None
    return f"{ctx.settings.public_url}/providers/{provider_account}/callback/{reference}"


def encode_provider_data(data: dict[str, str]) -> str | None:
    """The provider's data as JSON text for its column; None when there is none."""
    return msgspec.json.encode(data).decode() if data else None


def decode_provider_data(text: str | None) -> dict[str, str]:
    return {} if text is None else msgspec.json.decode(text, type=dict[str, str])
