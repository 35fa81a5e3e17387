"""Has an operator text a customer the code that a debit will need. No money moves, nothing is stored.

Source: docs/providers/README.md, "Codes by SMS".
The code is good only at the provider account that sent it, so the route is walked as a payment walks it.
"""

from uuid import uuid4

from guichet.context import AppContext
from guichet.domain.catalogue import PaymentMode, check_debit, quote
from guichet.domain.errors import InvalidRequest, PaymentFailed
from guichet.domain.money import Currency, Hundredths, round_to_currency
from guichet.logs import log
from guichet.payments.provider_calls import call_provider
from guichet.providers.base import (
    REFUSAL_REASONS,
    Accepted,
    Charge,
    NotProcessed,
    OtpRequestResult,
    RefusalReason,
    Refused,
    SendsOtpCodes,
)


class CodeNotSent(PaymentFailed):
    """No code is on its way, as far as anybody knows. `reason` is None while it is unclear why."""

    def __init__(self, reason: RefusalReason | None) -> None:
        unclear = "Nous ne savons pas si le code est parti. S'il n'arrive pas d'ici une minute, demandez-en un autre."
        super().__init__(unclear if reason is None else REFUSAL_REASONS[reason])
        self.reason = reason


async def send_code(
    ctx: AppContext, mode: PaymentMode, phone_number: str, amount: Hundredths, currency: Currency, description: str
) -> None:
    """Returns once an operator has said that the code is on its way to `phone_number` (digits, country code first).

    `amount` in hundredths, without the fee. Raises InvalidRequest (the mode texts no code, bounds) and CodeNotSent.
    """
    if not mode.sends_code:
        raise InvalidRequest(f"{mode.name} n'envoie pas de code par SMS.")
    quoted = quote(mode, amount)
    check_debit(quoted, currency)
    charge = Charge(
        # A reference of its own: the payment to come is another request, and is looked for under another name.
        reference=str(uuid4()),
        operator=mode.operator,
        amount=round_to_currency(quoted.total_amount, currency),
        currency=currency,
        description=description,
        created_at=ctx.clock.now(),
        phone_number=phone_number,
    )
    answer = await _ask(ctx, charge)
    if isinstance(answer, Accepted):
        return
    log.warning("code.not_sent", operator=mode.operator, answer=repr(answer))
    raise CodeNotSent(answer.reason if isinstance(answer, Refused | NotProcessed) else None)


async def _ask(ctx: AppContext, charge: Charge) -> OtpRequestResult:
    """The operators of the live route in order; the next one only if the one before provably took nothing."""
    answer: OtpRequestResult = NotProcessed()
    for name in ctx.registry.routes("live", charge.operator):
        provider = ctx.registry.provider(name)
        if not isinstance(provider, SendsOtpCodes):
            answer = NotProcessed("configuration", f"{name} texts no codes")
            continue
        answer = await call_provider(provider.send_code(charge), name, "send_code")
        if not isinstance(answer, NotProcessed):
            break
        log.warning("code.not_taken", provider_account=name, raw=answer.raw)
    return answer
