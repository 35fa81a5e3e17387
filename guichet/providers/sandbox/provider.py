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


def _age(charge: Charge, now: Instant) -> int:
    """Microseconds since the creation, by the merchant's test clock."""
    return now - charge.payment.created_at + int(charge.provider_data.get(CLOCK_ADVANCED, 0))


def _succeeded(charge: Charge) -> Succeeded:
    return Succeeded(charge.amount, charge.payment.currency)


def _validates_at_once(charge: Charge, now: Instant) -> StatusResult:
    return _succeeded(charge)


def _never_validates(charge: Charge, now: Instant) -> StatusResult:
    return _PENDING


def _refuses(charge: Charge, now: Instant) -> StatusResult:
    return Refused("rejected_by_payer")


def _validates_later(charge: Charge, now: Instant) -> StatusResult:
    return _succeeded(charge) if _age(charge, now) >= VALIDATES_AFTER else _PENDING


def _expires(charge: Charge, now: Instant) -> StatusResult:
    return Refused("expired") if _age(charge, now) >= EXPIRES_AFTER else _PENDING


def _states_another_amount(charge: Charge, now: Instant) -> StatusResult:
    return Succeeded(Hundredths(charge.amount + 100), charge.payment.currency)


REFUSED_AT_INITIATION: Final = "0001"
NEVER_VALIDATED: Final = "0002"
#: What the last four digits of the number mean; every other number validates after ten seconds.
SUFFIXES: Final[dict[str, Callable[[Charge, Instant], StatusResult]]] = {
    "0000": _validates_at_once,
    REFUSED_AT_INITIATION: _refuses,
    NEVER_VALIDATED: _never_validates,
    "0003": _refuses,
}
#: The scenarios that decide the result of a payment, whatever its number.
_SCENARIOS: Final[dict[str, Callable[[Charge, Instant], StatusResult]]] = {
    "redirect": _never_validates,
    "expired": _expires,
    "amount_mismatch": _states_another_amount,
}


class Sandbox(Provider):
    """Serves every payment that is made with a test key."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def first_poll_at(self, charge: Charge) -> Instant:
        """When the result is final; NEVER for a payment that no poll can settle, so that nobody polls it."""
        scenario, digits = charge.provider_data.get(SCENARIO), _last_digits(charge)
        if scenario == "expired":
            return later(charge.payment.created_at, EXPIRES_AFTER)
        if scenario == "redirect":
            return NEVER
        if scenario == "amount_mismatch" or digits in ("0000", "0003"):
            return charge.payment.created_at
        if digits == NEVER_VALIDATED or charge.payment.operator in CARDS:
            return NEVER
        return later(charge.payment.created_at, VALIDATES_AFTER)

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
        if charge.payment.operator in CARDS:
            return _PENDING
        by_number = SUFFIXES.get(_last_digits(charge), _validates_later)
        result = _SCENARIOS.get(charge.provider_data.get(SCENARIO, ""), by_number)
        return result(charge, self._clock.now())

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
