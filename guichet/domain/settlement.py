"""The outcome of a payment on its way to the database."""

from dataclasses import dataclass

from guichet.clock import Instant
from guichet.domain.catalogue import Catalogue
from guichet.domain.payments import Payment, Transition


@dataclass(frozen=True, slots=True)
class Settlement:
    """An outcome to apply. `failure_reason` and `provider_reference` as the payment is to keep them."""

    payment: Payment
    transition: Transition
    catalogue: Catalogue
    now: Instant
    failure_reason: str | None = None
    provider_reference: str | None = None

    @property
    def succeeds(self) -> bool:
        return self.transition.target == "succeeded"
