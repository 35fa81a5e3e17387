"""Fakes for what is not ours: operators. Each keeps books of its own, which a test may compare with ours."""

import asyncio
import inspect
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from guichet.domain.money import Hundredths
from guichet.providers.base import (
    Accepted,
    Callback,
    CallbackReference,
    Charge,
    InitiationResult,
    NotProcessed,
    RefusalReason,
    Refused,
    Reversal,
    StatusResult,
    Succeeded,
    Unknown,
)

#: An answer, or what makes one of what was asked, at once or later.
Scripted = InitiationResult | Callable[[Any], InitiationResult | Awaitable[InitiationResult]]


def done(asked: Charge | Reversal) -> Succeeded:
    """The operator moved exactly what it was asked for."""
    return Succeeded(asked.amount, asked.currency, f"tx-{asked.reference[:8]}")


def taken(asked: Charge | Reversal) -> Accepted:
    return Accepted(provider_reference=f"op-{asked.reference[:8]}")


def slow(answer: Scripted, seconds: float) -> Scripted:
    async def later(asked: Any) -> InitiationResult:
        await asyncio.sleep(seconds)
        told: InitiationResult = await _answer(answer, asked)
        return told

    return later


async def _answer(scripted: Scripted, asked: Any) -> Any:
    if not callable(scripted):
        return scripted
    answer = scripted(asked)
    return await answer if inspect.isawaitable(answer) else answer


@dataclass
class ScriptedOperator:
    """A live connector whose answers the test writes: each verb has a list, the last one repeated.

    `calls` says what was asked, in order, as (verb, our reference).
    """

    remote: bool = True
    calls: list[tuple[str, str]] = field(default_factory=list)
    _scripts: dict[str, list[Scripted]] = field(default_factory=dict)

    def script(self, verb: str, *answers: Scripted) -> None:
        self._scripts[verb] = list(answers)

    def asked(self, verb: str) -> list[str]:
        return [reference for name, reference in self.calls if name == verb]

    def first_poll_at(self, charge: Charge) -> int | None:
        return None

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return True

    async def probe(self) -> str:
        return "ok"

    async def initiate(self, charge: Charge) -> InitiationResult:
        answer: InitiationResult = await self._play("initiate", charge, taken)
        return answer

    async def status(self, charge: Charge) -> StatusResult:
        answer: StatusResult = await self._play("status", charge, Accepted())
        return answer

    async def refund(self, reversal: Reversal) -> InitiationResult:
        answer: InitiationResult = await self._play("refund", reversal, taken)
        return answer

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        answer: StatusResult = await self._play("refund_status", reversal, Accepted())
        return answer

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        return None

    async def _play(self, verb: str, asked: Charge | Reversal, otherwise: Scripted) -> Any:
        self.calls.append((verb, asked.reference))
        script = self._scripts.get(verb) or [otherwise]
        return await _answer(script.pop(0) if len(script) > 1 else script[0], asked)


@dataclass
class LyingOperator:
    """An operator with real books and bad manners: it debits at most once a reference, and what it *says* about it is
    drawn from `mood`: the truth (""), silence, or another amount than the one it moved. It never calls done what is
    not, for the right amount: that would be fraud, and no client can guard against it.

    `decide(reference)` gives the fate of a debit or a payout: True, False, or None (the customer has not answered).
    """

    decide: Callable[[str], bool | None]
    mood: Callable[[str, str], str]
    remote: bool = True
    debits: dict[str, int] = field(default_factory=dict)
    payouts: dict[str, int] = field(default_factory=dict)
    sends: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    #: What it explicitly refused, whenever it said so.
    refusals: set[str] = field(default_factory=set)

    def first_poll_at(self, charge: Charge) -> int | None:
        return None

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return True

    async def probe(self) -> str:
        return "ok"

    async def initiate(self, charge: Charge) -> InitiationResult:
        return self._take(self.debits, charge, "initiate")

    async def status(self, charge: Charge) -> StatusResult:
        return self._tell(self.debits, charge, "status")

    async def refund(self, reversal: Reversal) -> InitiationResult:
        return self._take(self.payouts, reversal, "refund")

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        return self._tell(self.payouts, reversal, "refund_status")

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        return None

    def moved(self, book: dict[str, int]) -> dict[str, int]:
        """What really changed hands: reference → hundredths."""
        return {reference: amount for reference, amount in book.items() if self.decide(reference)}

    def _take(self, book: dict[str, int], asked: Charge | Reversal, verb: str) -> InitiationResult:
        self.sends[asked.reference] += 1
        mood = self.mood(verb, asked.reference)
        if mood == "lost before":
            return Unknown("the request was lost")
        if mood == "not taken":
            return NotProcessed()
        if mood == "refuse":
            return self._refuse(asked, "insufficient_funds")
        book[asked.reference] = asked.amount
        return Unknown("the answer was lost") if mood == "lost after" else taken(asked)

    def _tell(self, book: dict[str, int], asked: Charge | Reversal, verb: str) -> StatusResult:
        mood = self.mood(verb, asked.reference)
        if mood == "silent":
            return Unknown("no answer")
        if mood == "wrong":
            return Succeeded(Hundredths(asked.amount + 100), asked.currency)
        if asked.reference not in book:
            # It never arrived: a real connector concludes that only with proof, which this operator gives.
            return self._refuse(asked, "operator_unavailable")
        match self.decide(asked.reference):
            case True:
                return Succeeded(Hundredths(book[asked.reference]), asked.currency)
            case False:
                return self._refuse(asked, "rejected_by_payer")
            case _:
                return Accepted()

    def _refuse(self, asked: Charge | Reversal, reason: RefusalReason) -> Refused:
        self.refusals.add(asked.reference)
        return Refused(reason)
