"""A provider with correct books and unreliable answers."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from guichet.domain.failures import RefusalReason
from guichet.domain.money import Hundredths
from guichet.providers.base import (
    Accepted,
    Charge,
    InitiationResult,
    NotFound,
    NotProcessed,
    RefundRequest,
    Refused,
    StatusResult,
    Succeeded,
    Unknown,
)
from tests.fakes.scripted_provider import currency_of, reference_of, taken
from tests.fakes.silent_provider import SilentProvider


@dataclass
class UnreliableProvider(SilentProvider):
    """Keeps correct books, which a test may compare with ours, but its answers are unreliable.

    It debits a reference at most once. `mood(verb, reference)` chooses what it answers: the truth (""), nothing, or an
    amount other than the one it moved. It never confirms the right amount of a movement that did not happen.
    `decide(reference)` gives the final state of a debit or a payout: True, False, or None (the customer has not
    answered).
    """

    decide: Callable[[str], bool | None]
    mood: Callable[[str, str], str]
    remote: bool = True
    debits: dict[str, int] = field(default_factory=dict)
    payouts: dict[str, int] = field(default_factory=dict)
    sends: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    #: What it explicitly refused, whenever it said so.
    refusals: set[str] = field(default_factory=set)

    async def initiate(self, charge: Charge) -> InitiationResult:
        return self._take(self.debits, charge, "initiate")

    async def status(self, charge: Charge) -> StatusResult:
        return self._report(self.debits, charge, "status")

    async def refund(self, request: RefundRequest) -> InitiationResult:
        return self._take(self.payouts, request, "refund")

    async def refund_status(self, request: RefundRequest) -> StatusResult:
        return self._report(self.payouts, request, "refund_status")

    def moved(self, book: dict[str, int]) -> dict[str, int]:
        """What really changed hands: reference → hundredths."""
        return {reference: amount for reference, amount in book.items() if self.decide(reference)}

    def _take(self, book: dict[str, int], request: Charge | RefundRequest, verb: str) -> InitiationResult:
        self.sends[reference_of(request)] += 1
        mood = self.mood(verb, reference_of(request))
        if mood == "lost before":
            return Unknown("the request was lost")
        if mood == "not taken":
            return NotProcessed()
        if mood == "refuse":
            return self._refuse(request, "insufficient_funds")
        book[reference_of(request)] = request.amount
        return Unknown("the answer was lost") if mood == "lost after" else taken(request)

    def _report(self, book: dict[str, int], request: Charge | RefundRequest, verb: str) -> StatusResult:
        mood = self.mood(verb, reference_of(request))
        if mood == "silent":
            return Unknown("no answer")
        if mood == "wrong":
            return Succeeded(Hundredths(request.amount + 100), currency_of(request))
        if reference_of(request) not in book:
            return NotFound() if verb == "status" else self._refuse(request, "operator_unavailable")
        match self.decide(reference_of(request)):
            case True:
                return Succeeded(Hundredths(book[reference_of(request)]), currency_of(request))
            case False:
                return self._refuse(request, "rejected_by_payer")
            case _:
                return Accepted()

    def _refuse(self, request: Charge | RefundRequest, reason: RefusalReason) -> Refused:
        self.refusals.add(reference_of(request))
        return Refused(reason)
