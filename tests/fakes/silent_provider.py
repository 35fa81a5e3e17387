"""What every fake provider has in common."""

from guichet.clock import MINUTE
from guichet.domain.money import Currency
from guichet.providers.base import PROVIDER_TIMEOUT, Charge, InitiationResult, Provider, StatusResult, Unknown


class SilentProvider(Provider):
    """Never calls back, can refund everything (by a payout what another account collected), and leaves the polling
    times to Guichet."""

    fingerprint: str | None = None
    identified_by_key: bool = False
    #: False: it gives money back by payouts only, even what it collected itself.
    own_refunds: bool = True
    initiation_timeout: float = PROVIDER_TIMEOUT
    prompt_lasts: int = 5 * MINUTE
    needs_merchant_id: bool = False
    #: The currencies that it debits; None: all of them.
    currencies: tuple[Currency, ...] | None = None

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return True

    def pays_out(self, operator: str, *, collected_here: bool) -> bool:
        return not (collected_here and self.own_refunds)

    async def initiate(self, charge: Charge) -> InitiationResult:
        return Unknown()

    async def status(self, charge: Charge) -> StatusResult:
        return Unknown()

    async def probe(self) -> str:
        return "ok"

    def takes(self, operator: str, currency: Currency) -> bool:
        return self.currencies is None or currency in self.currencies
