"""A settlement: the final result of a payment or refund that is to be applied once."""

from dataclasses import dataclass

from guichet.clock import Instant
from guichet.domain.audit_log import Act
from guichet.domain.catalogue import Catalogue
from guichet.domain.payments import Payment, Refund, Transition


@dataclass(frozen=True, slots=True)
class Settlement:
    """What `payments/settlement.py` and `refunds/settlement.py` apply: `transition` to `refund` if there is one,
    otherwise to `payment`, which is the refunded payment when `refund` is given.

    `failure_reason` (a key of `REFUSAL_REASONS`),
    `provider_reference` and `payer_number` are what the settled row keeps. `act`: what a person did, when a person
    settles. `overrides`: against the provider's answer, so that nothing is posted to the operator's account.
    """

    payment: Payment
    transition: Transition
    catalogue: Catalogue
    now: Instant
    failure_reason: str | None = None
    provider_reference: str | None = None
    act: Act | None = None
    overrides: bool = False
    #: A provider was asked to move the money, so it may still do so after a failure.
    was_sent: bool = False
    payer_number: str | None = None
    refund: Refund | None = None

    @property
    def succeeds(self) -> bool:
        return self.transition.target == "succeeded"
