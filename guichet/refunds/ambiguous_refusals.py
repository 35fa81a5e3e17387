"""Refusals that mean the payee or our own balance with the provider (`AmbiguousRefusal`): our balance tells which.

    too low, or not readable   as if the provider had said that it is empty: the refund waits (`disbursement.py`)
    enough                     one more request, under a new reference, after ten minutes; if that one is refused by the
                               same code, the payee is meant

The providers declare which of their codes are ambiguous; nothing else about it stands there.
"""

import asyncio
from typing import Final

from guichet.clock import MINUTE
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.money import Currency, Hundredths
from guichet.domain.payments import Payment, Refund
from guichet.domain.records import Record
from guichet.logs import log
from guichet.providers.base import AmbiguousRefusal, FloatEmpty, Provider, Refused, Unknown
from guichet.providers.capabilities import Balances
from guichet.providers.registry import requested_amount

#: Microseconds until the one more request.
SECOND_TRY_AFTER: Final = 10 * MINUTE
#: Seconds for reading the balance. With the call before it, it ends before the lease of the refund.
_BALANCE_TIMEOUT: Final = 8.0
#: Percent of the amount. Providers take a fee for a payout from our balance, on top of the amount; none states it with
#: the balance, and none takes as much as this.
_PAYOUT_FEE: Final = 5


class SecondTry(Record, frozen=True):
    """Our balance covers the refund that was refused by this code: it is requested once more."""

    code: str


async def resolve_ambiguous(
    ctx: AppContext, refund: Refund, payment: Payment, result: AmbiguousRefusal
) -> FloatEmpty | Refused | SecondTry:
    """What the refusal of this refund means."""
    account = require(refund.provider_account)
    balance = await _balance(ctx.registry.provider(account), payment.operator, refund.currency)
    facts = {"reference": refund.reference, "provider_account": account, "code": result.code, "balance": balance}
    log.warning("refund.ambiguous_refusal", **facts, raw=result.raw)
    if balance is None or balance < _needed(refund):
        return FloatEmpty(result.raw, is_certain=balance is not None)
    return Refused(result.reason, result.raw) if refund.ambiguous_code == result.code else SecondTry(result.code)


def _needed(refund: Refund) -> int:
    return requested_amount(refund) * (100 + _PAYOUT_FEE) // 100


async def _balance(provider: Provider, operator: str, currency: Currency) -> Hundredths | None:
    """Our balance from which a refund of this operator is paid; None when it cannot be read."""
    if not isinstance(provider, Balances):
        return None
    try:
        async with asyncio.timeout(_BALANCE_TIMEOUT):
            balances = await provider.balances()
    except TimeoutError:
        return None
    if isinstance(balances, Unknown):
        return None
    wallet = provider.payout_wallet(operator)
    return next((held.amount for held in balances if (held.wallet, held.currency) == (wallet, currency)), None)
