"""One real payment through one account and its refund, step by step, for `guichet providers try`.

Nothing of it stands in the ledger. So each reference is printed before the request that carries it is sent, and what is
open is known at any moment.
"""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Final, Literal

from msgspec import structs

from guichet.clock import SECOND, Clock, Instant, later
from guichet.db.references import new_reference
from guichet.domain.money import CURRENCIES, Hundredths, plain
from guichet.domain.payments import unstored_payment
from guichet.providers.base import (
    Accepted,
    Charge,
    InitiationResult,
    NotFound,
    Provider,
    RefundInitiationResult,
    RefundStatusResult,
    Refused,
    Reversal,
    StatusResult,
    Succeeded,
    Unknown,
)

Result = InitiationResult | StatusResult | RefundInitiationResult | RefundStatusResult


@dataclass(slots=True)
class Movement:
    """The payment or the refund as far as it came. It is open from before its request is sent."""

    what: str
    reference: str
    state: Literal["open", "succeeded", "failed"] = "open"
    provider_reference: str | None = None
    detail: str = ""


@dataclass(slots=True)
class Trial:
    """`say` prints a step, `progress` replaces the line of progress. `every` and `wait` are seconds: between two status
    calls, and until the payment or the refund is given up and stays open."""

    account: str
    provider: Provider
    clock: Clock
    say: Callable[[str], None]
    progress: Callable[[str], None]
    every: float
    wait: float
    movements: list[Movement] = field(default_factory=list)
    #: What `Accepted.provider_data` held, by our reference; and the pages that were shown.
    _data: dict[str, dict[str, str]] = field(default_factory=dict)
    _shown: set[str] = field(default_factory=set)

    async def run(self, charge: Charge) -> bool:
        """Whether the payment was made with the right amount, and given back as far as the account can."""
        amount = f"{plain(charge.amount)} {charge.payment.currency}"
        payment = self._start("payment", charge.payment.reference, f"asking {self.account} for {amount}")
        result = await self._until_final(
            payment,
            await self.provider.initiate(charge),
            lambda: self.provider.status(self._as_known(charge, payment)),
        )
        if not isinstance(result, Succeeded):
            return False
        if (result.amount, result.currency) != (charge.amount, charge.payment.currency):
            stated = "no amount" if result.amount is None else f"{plain(result.amount)} {result.currency}"
            self.say(f"✗ The provider states {stated} instead of {amount}: nothing is given back automatically.")
            return False
        self.say(f"✓ The provider states {amount}, as we asked for.")
        return await self._give_back(
            self._as_known(charge, payment), result.payer_number or charge.payment.phone_number
        )

    async def _give_back(self, charge: Charge, payee: str | None) -> bool:
        """`payee`: who paid as the provider states it, else the number of the person who tries the account."""
        if not self.provider.can_refund(charge.payment.operator, collected_here=True):
            self.say("– This account cannot refund: give it back by hand, or through another provider's payout.")
            return True
        reference = new_reference(self.clock.now())
        sent_at = self.clock.now()
        reversal = Reversal(
            reference, charge, charge.amount, charge.payment.currency, payee_number=payee, sent_at=sent_at
        )
        reversal = replace(reversal, provider_data=self.provider.prepare_refund(reversal))
        refund = self._start("refund", reference, f"giving it back through {self.account}")

        def status() -> Awaitable[RefundStatusResult]:
            data = {**reversal.provider_data, **self._data.get(refund.reference, {})}
            known = replace(reversal, provider_reference=refund.provider_reference, provider_data=data)
            return self.provider.refund_status(known)

        result = await self._until_final(refund, await self.provider.refund(reversal), status)
        if refund.state == "failed":
            self.say(f"! The customer still has to get {plain(charge.amount)} {charge.payment.currency} back, by hand.")
        return isinstance(result, Succeeded)

    def open_movements(self) -> list[Movement]:
        """What may have moved money, and whose end is not known."""
        return [each for each in self.movements if each.state == "open"]

    def as_rows(self) -> list[dict[str, object]]:
        return [asdict(each) for each in self.movements]

    def _start(self, what: str, reference: str, sentence: str) -> Movement:
        movement = Movement(what, reference)
        self.movements.append(movement)
        self.say(f"{len(self.movements)}. {what.capitalize()} {reference}: {sentence}…")
        return movement

    async def _until_final(
        self, movement: Movement, first: Result, ask: Callable[[], Awaitable[Result]]
    ) -> Result | None:
        """The final result; None when it is still open after `wait` seconds. `first`: the answer to the initiation,
        which alone can say that nothing was processed."""
        began = self.clock.now()
        deadline, result = later(began, int(self.wait * SECOND)), first
        while isinstance(result, Accepted | Unknown | NotFound):
            self._learn(movement, result)
            if self.clock.now() >= deadline:
                self.say(f"– The {movement.what} is still open after {self.wait:g} s.")
                return None
            self.progress(f"The {movement.what} is open, {(self.clock.now() - began) // SECOND} s… {movement.detail}")
            await self.clock.sleep(self.every)
            result = await ask()
        if isinstance(result, Succeeded):
            movement.state = "succeeded"
            movement.provider_reference = result.provider_reference or movement.provider_reference
            self.say(f"✓ The {movement.what} succeeded; the provider's reference: {movement.provider_reference}")
            return result
        movement.state, movement.detail = "failed", f"{_name(result)}: {result.raw}"
        self.say(f"✗ The {movement.what} failed. {movement.detail}")
        return result

    def _learn(self, movement: Movement, result: Accepted | Unknown | NotFound) -> None:
        """Keeps what the provider told; the customer's page is shown once."""
        if isinstance(result, Unknown | NotFound):
            movement.detail = f"unknown: {result.raw}"
            return
        movement.detail = ""
        movement.provider_reference = result.provider_reference or movement.provider_reference
        self._data.setdefault(movement.reference, {}).update(result.provider_data)
        if result.redirect_url and result.redirect_url not in self._shown:
            self._shown.add(result.redirect_url)
            self.say(f"   The customer confirms on this page: {result.redirect_url}")

    def _as_known(self, charge: Charge, payment: Movement) -> Charge:
        data = {**charge.provider_data, **self._data.get(payment.reference, {})}
        known = structs.replace(charge.payment, provider_reference=payment.provider_reference)
        return structs.replace(charge, payment=known, provider_data=data)


_NAMES: Final = {"NotProcessed": "not processed", "FloatEmpty": "our balance does not cover it"}


def _name(result: Result) -> str:
    reason = f" ({result.reason})" if isinstance(result, Refused) else ""
    return _NAMES.get(type(result).__name__, type(result).__name__.lower()) + reason


def trial_charge(
    *,
    now: Instant,
    operator: str,
    amount: int,
    currency: str,
    phone: str | None,
    otp: str | None,
    public_url: str,
    account: str,
    provider_merchant_id: str | None,
) -> Charge:
    """The debit of a trial; `amount` in main units."""
    reference = new_reference(now)
    payment = unstored_payment(
        reference=reference,
        operator=operator,
        total_amount=Hundredths(amount * 100),
        currency=next(known for known in CURRENCIES if known == currency),
        description="Essai",
        created_at=now,
        phone_number=phone,
        firstname="Essai",
        lastname="Guichet",
    )
    return Charge(
        payment,
        payment.total_amount,
        otp=otp,
        notify_url=f"{public_url}/providers/{account}/callback/{reference}",
        provider_merchant_id=provider_merchant_id,
    )
