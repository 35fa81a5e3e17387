"""A provider where the test decides, as the customer would, what becomes of each debit."""

import asyncio
from dataclasses import dataclass, field

from guichet.domain.failures import RefusalReason
from guichet.providers.base import (
    Accepted,
    Charge,
    InitiationResult,
    OtpRequestResult,
    RefundRequest,
    Refused,
    StatusResult,
    Succeeded,
    Unknown,
)
from tests.fakes.silent_provider import SilentProvider


@dataclass
class ManualProvider(SilentProvider):
    """Serves every operator code. Accepts, and waits for the test to decide; a number ending in 0001 is refused."""

    remote: bool = True
    charges: dict[str, Charge] = field(default_factory=dict)
    decided: dict[str, StatusResult] = field(default_factory=dict)
    #: Future debits for which a code was requested, and the result of the request.
    codes: list[Charge] = field(default_factory=list)
    code_answer: OtpRequestResult = field(default_factory=Accepted)
    #: Seconds an answer takes.
    slowness: float = 0
    #: How often it was asked for a status.
    questions: int = 0
    #: Whether it gives money back at all, and what it gave back: our references.
    refundable: bool = True
    refunded: list[str] = field(default_factory=list)

    async def initiate(self, charge: Charge) -> InitiationResult:
        await asyncio.sleep(self.slowness)
        self.charges[charge.payment.reference] = charge
        if (charge.payment.phone_number or "").endswith("0001"):
            return Refused("insufficient_funds")
        if charge.payment.phone_number is None or charge.payment.operator.startswith("wave"):
            return Accepted(redirect_url=f"http://operator.test/confirm/{charge.payment.reference}")
        return Accepted()

    async def send_code(self, charge: Charge) -> OtpRequestResult:
        await asyncio.sleep(self.slowness)
        self.codes.append(charge)
        return self.code_answer

    async def status(self, charge: Charge) -> StatusResult:
        self.questions += 1
        await asyncio.sleep(self.slowness)
        return self.decided.get(charge.payment.reference, Unknown())

    def approve(self, reference: str) -> None:
        charge = self.charges[reference]
        self.decided[reference] = Succeeded(charge.amount, charge.payment.currency)

    def refuse(self, reference: str, reason: RefusalReason = "rejected_by_payer") -> None:
        self.decided[reference] = Refused(reason)

    @property
    def last(self) -> Charge:
        return list(self.charges.values())[-1]

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return collected_here and self.refundable

    async def refund(self, request: RefundRequest) -> InitiationResult:
        self.refunded.append(request.charge.payment.reference)
        return Succeeded(request.amount, request.currency)

    async def refund_status(self, request: RefundRequest) -> StatusResult:
        return Succeeded(request.amount, request.currency)
