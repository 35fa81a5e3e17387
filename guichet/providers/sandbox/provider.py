"""The provider of the test environment: nothing is called and no money moves.

Source: docs/contract.md, "The test environment". The result depends only on the phone number, the `test_scenario` and
the age of the payment, so a restart changes nothing. The customer of a card payment, and of one that redirects, chooses
the result on the hosted page, and that page settles the payment itself.
"""

from collections.abc import Callable
from typing import Final

from guichet.clock import MINUTE, NEVER, SECOND, Clock, Instant, later
from guichet.domain.messages import Answer
from guichet.domain.money import Currency, Hundredths
from guichet.domain.records import Record
from guichet.domain.sandbox_scenarios import CLOCK_ADVANCED, SCENARIO
from guichet.providers.base import (
    CARDS,
    Accepted,
    Charge,
    InitiationResult,
    Provider,
    RefundRequest,
    Refused,
    StatusResult,
    Succeeded,
)
from guichet.providers.shared.answers import ProviderAnswer

VALIDATES_AFTER: Final = 10 * SECOND
#: The age at which a payment of the scenario `expired` fails.
EXPIRES_AFTER: Final = 15 * MINUTE

_PENDING: Final = Accepted()


class _Ending(Record, frozen=True):
    """What becomes of a payment once it is `after` microseconds old; never where that is None."""

    after: int | None
    result: Callable[[Charge], StatusResult]


def _succeeded(charge: Charge) -> StatusResult:
    return Succeeded(charge.amount, charge.payment.currency)


def _refused(_: Charge) -> StatusResult:
    return Refused("rejected_by_payer")


def _expired(_: Charge) -> StatusResult:
    return Refused("expired")


def _another_amount(charge: Charge) -> StatusResult:
    return Succeeded(Hundredths(charge.amount + 100), charge.payment.currency)


_NEVER: Final = _Ending(None, _succeeded)
REFUSED_AT_INITIATION: Final = "0001"
NEVER_VALIDATED: Final = "0002"
#: What the last four digits of the number mean; every other number validates after ten seconds.
SUFFIXES: Final = {
    "0000": _Ending(0, _succeeded),
    REFUSED_AT_INITIATION: _Ending(0, _refused),
    NEVER_VALIDATED: _NEVER,
    "0003": _Ending(0, _refused),
}
_USUAL: Final = _Ending(VALIDATES_AFTER, _succeeded)
#: The scenarios that decide the result of a payment, whatever its number.
_SCENARIOS: Final = {
    "redirect": _NEVER,
    "expired": _Ending(EXPIRES_AFTER, _expired),
    "amount_mismatch": _Ending(0, _another_amount),
}


def _ending(charge: Charge) -> _Ending:
    """The customer of a card chooses on the hosted page."""
    if charge.payment.operator in CARDS:
        return _NEVER
    by_number = SUFFIXES.get(_last_digits(charge), _USUAL)
    return _SCENARIOS.get(charge.provider_data.get(SCENARIO, ""), by_number)


class Sandbox(Provider):
    """Serves every payment that is made with a test key."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def first_poll_at(self, charge: Charge) -> Instant:
        """When the result is final; NEVER for a payment that no poll can settle, so that nobody polls it."""
        after = _ending(charge).after
        return NEVER if after is None else later(charge.payment.created_at, after)

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return True

    def pays_out(self, operator: str, *, collected_here: bool) -> bool:
        return False

    async def probe(self) -> Answer:
        return "ok"

    def takes(self, operator: str, currency: Currency) -> bool:
        return True

    async def initiate(self, charge: Charge) -> InitiationResult:
        scenario = charge.provider_data.get(SCENARIO)
        if scenario == "wrong_otp":
            return Refused("bad_otp", raw=ProviderAnswer.WRONG_OTP_SCENARIO())
        if scenario not in _SCENARIOS and _last_digits(charge) == REFUSED_AT_INITIATION:
            return Refused("refused", raw=ProviderAnswer.REFUSED_NUMBER())
        return _PENDING

    async def status(self, charge: Charge) -> StatusResult:
        ending = _ending(charge)
        # By the merchant's test clock; clocks of two machines may differ.
        age = max(0, self._clock.now() - charge.payment.created_at)
        age += int(charge.provider_data.get(CLOCK_ADVANCED, 0))
        return _PENDING if ending.after is None or age < ending.after else ending.result(charge)

    async def refund(self, request: RefundRequest) -> InitiationResult:
        """Taken and not executed yet in the scenarios about refunds: their result is asked for, as in live."""
        if request.charge.provider_data.get(SCENARIO) in ("refund_failed", "refund_pending"):
            return _PENDING
        return Succeeded(request.amount, request.currency)

    async def refund_status(self, request: RefundRequest) -> StatusResult:
        scenario = request.charge.provider_data.get(SCENARIO)
        if scenario == "refund_pending":
            return _PENDING
        return Refused() if scenario == "refund_failed" else Succeeded(request.amount, request.currency)


def _last_digits(charge: Charge) -> str:
    """The last four digits of the number; none for a card, whose result does not depend on a phone number."""
    return "" if charge.payment.operator in CARDS else (charge.payment.phone_number or "")[-4:]
