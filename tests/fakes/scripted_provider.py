"""A provider whose answers the test writes."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from guichet.providers.base import (
    Accepted,
    Charge,
    InitiationResult,
    Refused,
    Reversal,
    StatusResult,
    Succeeded,
)
from tests.fakes.silent_provider import SilentProvider

#: An answer, or what makes one of what was asked, at once or later.
Scripted = InitiationResult | Callable[[Any], InitiationResult | Awaitable[InitiationResult]]


def done(asked: Charge | Reversal) -> Succeeded:
    """The operator moved exactly what it was asked for."""
    return Succeeded(asked.amount, asked.currency, f"tx-{asked.reference[:8]}")


def taken(asked: Charge | Reversal) -> Accepted:
    return Accepted(provider_reference=f"op-{asked.reference[:8]}")


def refused(asked: Charge | Reversal) -> Refused:
    return Refused("rejected_by_payer" if isinstance(asked, Charge) else "refused")


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
class ScriptedProvider(SilentProvider):
    """A live connector whose answers the test writes: each verb has a list, the last one repeated.

    `calls` says what was asked, in order, as (verb, our reference). `charges` and `reversals` are what was to be
    debited and paid back.
    """

    remote: bool = True
    calls: list[tuple[str, str]] = field(default_factory=list)
    charges: list[Charge] = field(default_factory=list)
    reversals: list[Reversal] = field(default_factory=list)
    _scripts: dict[str, list[Scripted]] = field(default_factory=dict)

    def script(self, verb: str, *answers: Scripted) -> None:
        self._scripts[verb] = list(answers)

    def asked(self, verb: str) -> list[str]:
        return [reference for name, reference in self.calls if name == verb]

    async def initiate(self, charge: Charge) -> InitiationResult:
        self.charges.append(charge)
        answer: InitiationResult = await self._play("initiate", charge, taken)
        return answer

    async def status(self, charge: Charge) -> StatusResult:
        answer: StatusResult = await self._play("status", charge, Accepted())
        return answer

    async def refund(self, reversal: Reversal) -> InitiationResult:
        self.reversals.append(reversal)
        answer: InitiationResult = await self._play("refund", reversal, taken)
        return answer

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        answer: StatusResult = await self._play("refund_status", reversal, Accepted())
        return answer

    async def _play(self, verb: str, asked: Charge | Reversal, otherwise: Scripted) -> Any:
        self.calls.append((verb, asked.reference))
        script = self._scripts.get(verb) or [otherwise]
        return await _answer(script.pop(0) if len(script) > 1 else script[0], asked)
