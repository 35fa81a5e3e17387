"""A provider whose answers the test writes."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from guichet.providers.base import (
    Accepted,
    Callback,
    CallbackReference,
    Charge,
    InitiationResult,
    NotFound,
    RefundInitiationResult,
    RefundRequest,
    RefundStatusResult,
    Refused,
    StatusResult,
    Succeeded,
)
from tests.fakes.silent_provider import SilentProvider

Result = RefundInitiationResult | NotFound
#: A result, or a function that makes one from the request, at once or later.
Scripted = Result | Callable[[Any], Result | Awaitable[Result]]


def done(request: Charge | RefundRequest) -> Succeeded:
    """The provider moved exactly the requested amount."""
    return Succeeded(request.amount, currency_of(request), f"tx-{reference_of(request)[:8]}")


def taken(request: Charge | RefundRequest) -> Accepted:
    return Accepted(provider_reference=f"op-{reference_of(request)[:8]}")


def reference_of(request: Charge | RefundRequest) -> str:
    """The reference of ours under which the provider knows the request."""
    return request.payment.reference if isinstance(request, Charge) else request.reference


def currency_of(request: Charge | RefundRequest) -> str:
    return request.payment.currency if isinstance(request, Charge) else request.currency


def refused(request: Charge | RefundRequest) -> Refused:
    return Refused("rejected_by_payer" if isinstance(request, Charge) else "refused")


def slow(answer: Scripted, seconds: float) -> Scripted:
    async def later(request: Any) -> Result:
        await asyncio.sleep(seconds)
        result: Result = await _answer(answer, request)
        return result

    return later


async def _answer(scripted: Scripted, request: Any) -> Any:
    if not callable(scripted):
        return scripted
    answer = scripted(request)
    return await answer if inspect.isawaitable(answer) else answer


@dataclass
class ScriptedProvider(SilentProvider):
    """A live provider whose results the test sets: each verb has a list, whose last one is repeated.

    `calls` lists the calls in order, as (verb, our reference). `charges` and `refund_requests` are what was to be
    debited and paid back.
    """

    remote: bool = True
    calls: list[tuple[str, str]] = field(default_factory=list)
    charges: list[Charge] = field(default_factory=list)
    refund_requests: list[RefundRequest] = field(default_factory=list)
    #: What was asked about, by `status` and `refund_status`.
    questions: list[Charge | RefundRequest] = field(default_factory=list)
    _scripts: dict[str, list[Scripted]] = field(default_factory=dict)

    def script(self, verb: str, *answers: Scripted) -> None:
        self._scripts[verb] = list(answers)

    def references_of(self, verb: str) -> list[str]:
        return [reference for name, reference in self.calls if name == verb]

    async def initiate(self, charge: Charge) -> InitiationResult:
        self.charges.append(charge)
        answer: InitiationResult = await self._play("initiate", charge, taken)
        return answer

    async def status(self, charge: Charge) -> StatusResult:
        self.questions.append(charge)
        answer: StatusResult = await self._play("status", charge, Accepted())
        return answer

    async def refund(self, request: RefundRequest) -> RefundInitiationResult:
        self.refund_requests.append(request)
        answer: RefundInitiationResult = await self._play("refund", request, taken)
        return answer

    async def refund_status(self, request: RefundRequest) -> RefundStatusResult:
        self.questions.append(request)
        answer: RefundStatusResult = await self._play("refund_status", request, Accepted())
        return answer

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        """A JSON object with `reference` (ours), `provider_reference` or both."""
        try:
            return msgspec.json.decode(callback.body, type=CallbackReference)
        except msgspec.DecodeError:
            return None

    async def _play(self, verb: str, request: Charge | RefundRequest, otherwise: Scripted) -> Any:
        self.calls.append((verb, reference_of(request)))
        script = self._scripts.get(verb) or [otherwise]
        return await _answer(script.pop(0) if len(script) > 1 else script[0], request)
