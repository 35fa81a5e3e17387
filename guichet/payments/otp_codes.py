"""Asks a provider to send a customer, by text message, the code that a debit will need. No money moves, nothing is
stored.

Source: docs/providers/README.md, "Codes by SMS".
A code is valid only with the provider account that sent it, so the accounts of the route are tried in the same order as
for a payment.
"""

from uuid import uuid4

from guichet.context import AppContext
from guichet.domain.catalogue import PaymentMode, check_debit, quote
from guichet.domain.errors import InvalidRequest, PaymentFailed
from guichet.domain.failures import REFUSAL_REASONS, RefusalReason
from guichet.domain.money import Currency, Hundredths
from guichet.domain.payments import unstored_payment
from guichet.logs import log
from guichet.providers.base import (
    Accepted,
    Charge,
    NotProcessed,
    OtpRequestResult,
    Refused,
)
from guichet.providers.capabilities import SendsOtpCodes
from guichet.providers.registry import call_provider, requested_amount
from guichet.providers.shared.answers import ProviderAnswer


class CodeNotSent(PaymentFailed):
    """No provider confirmed that it sent a code. `refusal` is None if it is unknown whether one was sent."""

    def __init__(self, refusal: RefusalReason | None) -> None:
        unclear = "Nous ne savons pas si le code est parti. S'il n'arrive pas d'ici une minute, demandez-en un autre."
        super().__init__(unclear if refusal is None else REFUSAL_REASONS[refusal].message)
        self.refusal = refusal


async def send_code(
    ctx: AppContext, mode: PaymentMode, phone_number: str, amount: Hundredths, currency: Currency, description: str
) -> None:
    """Returns when a provider has confirmed that it sends the code to `phone_number` (digits, country code first).

    `amount` in hundredths, without the fee. Raises InvalidRequest (the mode sends no code, or the debit is
    out of bounds) and CodeNotSent.
    """
    if not mode.sends_code:
        raise InvalidRequest(f"{mode.name} n'envoie pas de code par SMS.")
    quoted = quote(mode, amount)
    check_debit(quoted, currency)
    payment = unstored_payment(
        # Not the reference of the payment that follows: that is another request, with a reference of its own.
        reference=str(uuid4()),
        operator=mode.operator,
        total_amount=quoted.total_amount,
        currency=currency,
        description=description,
        created_at=ctx.clock.now(),
        phone_number=phone_number,
    )
    charge = Charge(payment, requested_amount(payment))
    result = await _request_code(ctx, charge)
    if isinstance(result, Accepted):
        return
    log.warning("otp.not_sent", operator=mode.operator, result=repr(result))
    raise CodeNotSent(result.reason if isinstance(result, Refused | NotProcessed) else None)


async def _request_code(ctx: AppContext, charge: Charge) -> OtpRequestResult:
    """Calls the accounts of the live route in order; the next one only if the one before provably took nothing."""
    result: OtpRequestResult = NotProcessed()
    for name in ctx.registry.routes("live", charge.payment.operator):
        provider = ctx.registry.provider(name)
        if not isinstance(provider, SendsOtpCodes):
            result = NotProcessed("configuration", ProviderAnswer.NO_CODES(account=name))
            continue
        result = await call_provider(ctx.registry.provider(name), provider.send_code(charge), name, "send_code")
        if not isinstance(result, NotProcessed):
            break
        log.warning("otp.not_processed", provider_account=name, raw=result.raw)
    return result
