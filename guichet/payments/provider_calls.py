"""Calls to providers: the data of a payment or refund that a call sends, and the time limit of a call."""

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

import msgspec

from guichet import metrics, tracing
from guichet.context import AppContext
from guichet.domain.money import round_to_currency
from guichet.domain.payee import payee_number
from guichet.domain.payments import Payment, Refund
from guichet.incidents import repository as incidents
from guichet.incidents.details import IncidentDetail
from guichet.payments import never_arrived
from guichet.providers.base import (
    PROVIDER_TIMEOUT,
    Accepted,
    AlreadyRefunded,
    Charge,
    FloatEmpty,
    NotFound,
    NotProcessed,
    Provider,
    Refused,
    Reversal,
    Succeeded,
    Unknown,
)
from guichet.providers.shared.answers import ProviderAnswer

T = TypeVar("T")

#: What is known when `is_another_account`: an old and a new account of a provider must stand side by side.
ANOTHER_ACCOUNT: Final = Unknown(ProviderAnswer.ANOTHER_ACCOUNT())
_RESULT_NAMES: Final[dict[type, str]] = {
    Accepted: "accepted",
    Succeeded: "succeeded",
    Refused: "refused",
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


def is_another_account(provider: Provider, subject: Payment | Refund) -> bool:
    """Whether the settings of the account changed since the payment or refund was sent: its address, its user or its
    target environment. It must then not be asked: the provider would say that it does not know the transaction."""
    return subject.account_fingerprint is not None and subject.account_fingerprint != provider.fingerprint


def charge_for(ctx: AppContext, payment: Payment, otp: str | None = None) -> Charge:
    """The debit to request from the provider: the total, rounded to the currency's smallest unit (D27)."""
    return Charge(
        reference=payment.reference,
        operator=payment.operator,
        amount=round_to_currency(payment.total_amount, payment.currency),
        currency=payment.currency,
        description=payment.description,
        created_at=payment.created_at,
        phone_number=payment.phone_number,
        otp=otp,
        firstname=payment.firstname,
        lastname=payment.lastname,
        email=payment.email,
        country=payment.country,
        return_url=_return_url(ctx, payment),
        notify_url=_notify_url(ctx, payment.provider_account, payment.reference),
        provider_reference=payment.provider_reference,
        redirect_url=payment.redirect_url,
        provider_data=decode_provider_data(payment.provider_data),
    )


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
        never_arrived=never_arrived.is_proven(refund),
    )


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
