"""The outcome of a payment on its way to the database."""

from dataclasses import dataclass

from guichet.clock import Instant
from guichet.domain.catalogue import Catalogue
from guichet.domain.payments import Payment, Transition


@dataclass(frozen=True, slots=True)
class Settlement:
    """An outcome to apply. `failure` and `provider_ref` as the payment is to keep them."""

    payment: Payment
    transition: Transition
    catalogue: Catalogue
    now: Instant
    failure: str | None = None
    provider_ref: str | None = None

    @property
    def succeeds(self) -> bool:
        return self.transition.target == "succeeded"
