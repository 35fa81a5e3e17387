"""The base class of the providers that are called over HTTP. Its methods are those of a provider with no extras."""

from abc import ABC, abstractmethod

from guichet.clock import Clock, Instant
from guichet.http_client import HttpClient
from guichet.providers.base import (
    Callback,
    CallbackReference,
    Charge,
    InitiationResult,
    Refused,
    Reversal,
    StatusResult,
    Unknown,
)
from guichet.providers.client import ProviderAccount, ProviderClient


class HttpProvider(ABC):
    """One account, its HTTP client and the clock. Without overrides: no refunds, no callbacks, usual poll intervals."""

    remote = True

    def __init__(self, account: ProviderAccount, http_client: HttpClient, clock: Clock) -> None:
        """Subclasses raise ValueError for settings that cannot work."""
        self._http = ProviderClient(http_client, account.base_url)
        self._clock = clock

    def first_poll_at(self, charge: Charge) -> Instant | None:
        return None

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return False

    @abstractmethod
    async def initiate(self, charge: Charge) -> InitiationResult: ...

    @abstractmethod
    async def status(self, charge: Charge) -> StatusResult: ...

    async def refund(self, reversal: Reversal) -> InitiationResult:
        return Refused("no_refund")

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        return Unknown("this provider has no refunds")

    @abstractmethod
    async def probe(self) -> str: ...

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        return None
