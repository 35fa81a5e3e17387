"""An operator under the test's control: it answers what it was told to, and remembers what it was asked."""

from collections.abc import Callable
from dataclasses import dataclass, field

from guichet.providers.base import (
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

NAME = "scripted"


@dataclass
class ScriptedOperator:
    """Takes every debit and says it is still waiting, until a test says otherwise."""

    remote: bool = True
    initiation: Callable[[Charge], InitiationResult] = lambda charge: Accepted(
        provider_reference=f"op-{charge.reference}"
    )
    state: Callable[[Charge], StatusResult] = lambda charge: Accepted()
    refunding: Callable[[Reversal], InitiationResult] = lambda reversal: Accepted(
        provider_reference=f"re-{reversal.reference}"
    )
    refund_state: Callable[[Reversal], StatusResult] = lambda reversal: Accepted()
    charges: list[Charge] = field(default_factory=list)
    reversals: list[Reversal] = field(default_factory=list)

    def first_poll_at(self, charge: Charge) -> int | None:
        return None

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return True

    async def probe(self) -> str:
        return "ok"

    async def initiate(self, charge: Charge) -> InitiationResult:
        self.charges.append(charge)
        return self.initiation(charge)

    async def status(self, charge: Charge) -> StatusResult:
        return self.state(charge)

    async def refund(self, reversal: Reversal) -> InitiationResult:
        self.reversals.append(reversal)
        return self.refunding(reversal)

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        return self.refund_state(reversal)

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        return None


def paid(charge: Charge) -> StatusResult:
    return Succeeded(charge.amount, charge.currency)


def refused(charge: Charge) -> Refused:
    return Refused("rejected_by_payer")


def paid_back(reversal: Reversal) -> StatusResult:
    return Succeeded(reversal.amount, reversal.currency)


def not_paid_back(reversal: Reversal) -> Refused:
    return Refused("refused")
