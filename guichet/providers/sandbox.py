"""The test environment: no operator is contacted, no money moves (docs/contract.md, "The test environment").

The outcome is a pure function of the phone number and the payment's age, so nothing is remembered and a restart changes
nothing. Cards wait for the choice made on the hosted page, which is settled by the page itself.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from guichet.clock import SECOND, Clock, Instant, from_datetime
from guichet.providers.base import (
    CARDS,
    Accepted,
    Callback,
    CallbackReference,
    Charge,
    InitiationResult,
    Refused,
    Reversal,
    StatusResult,
    Succeeded,
)

VALIDATES_AFTER: Final = 10 * SECOND

#: Nothing but that it was taken: one for all.
_WAITING: Final = Accepted()

Outcome = Callable[[Charge, Instant], StatusResult]


def _done(charge: Charge) -> Succeeded:
    return Succeeded(charge.amount, charge.currency)


def _validates_at_once(charge: Charge, now: Instant) -> StatusResult:
    return _done(charge)


def _never_validates(charge: Charge, now: Instant) -> StatusResult:
    return _WAITING


def _refuses(charge: Charge, now: Instant) -> StatusResult:
    return Refused("rejected_by_payer")


def _validates_later(charge: Charge, now: Instant) -> StatusResult:
    return _done(charge) if now - charge.created_at >= VALIDATES_AFTER else _WAITING


REFUSED_AT_INITIATION: Final = "0001"
NEVER_VALIDATED: Final = "0002"
#: The end of the year 9999: a payment must have a next poll while it is pending.
NEVER: Final[Instant] = from_datetime(datetime(9999, 12, 31, tzinfo=UTC))
#: The last four digits decide; any other ending validates after ten seconds.
SUFFIXES: Final[dict[str, Outcome]] = {
    "0000": _validates_at_once,
    REFUSED_AT_INITIATION: _refuses,
    NEVER_VALIDATED: _never_validates,
    "0003": _refuses,
}


class Sandbox:
    """The connector of every payment made with a test key."""

    remote = False

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def first_poll_at(self, charge: Charge) -> Instant:
        """The instant at which the outcome exists. Where none ever will, the worker is spared polls in vain."""
        ending = _ending(charge)
        if ending in ("0000", "0003"):
            return charge.created_at
        if ending == NEVER_VALIDATED or charge.operator in CARDS:
            return NEVER
        return charge.created_at + VALIDATES_AFTER

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return True

    async def probe(self) -> str:
        return "ok"

    async def initiate(self, charge: Charge) -> InitiationResult:
        if _ending(charge) == REFUSED_AT_INITIATION:
            return Refused("refused", raw="sandbox: the number ends with 0001")
        return _WAITING

    async def status(self, charge: Charge) -> StatusResult:
        if charge.operator in CARDS:
            return _WAITING
        outcome = SUFFIXES.get(_ending(charge), _validates_later)
        return outcome(charge, self._clock.now())

    async def refund(self, reversal: Reversal) -> InitiationResult:
        return Succeeded(reversal.amount, reversal.currency)

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        return Succeeded(reversal.amount, reversal.currency)

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        return None


def _ending(charge: Charge) -> str:
    """A card's number of a phone decides nothing: the choice is made on the hosted page."""
    return "" if charge.operator in CARDS else (charge.phone_number or "")[-4:]
