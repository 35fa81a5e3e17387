"""Which connector serves which payment: the sandbox in test, the operators' routes in production."""

from collections.abc import Mapping, Sequence
from typing import Final

from guichet.clock import Clock
from guichet.providers.base import (
    Callback,
    CallbackReference,
    Charge,
    InitiationResult,
    NotProcessed,
    OtpRequestResult,
    Provider,
    Refused,
    Reversal,
    StatusResult,
    Unknown,
)
from guichet.providers.sandbox import Sandbox

SANDBOX: Final = "sandbox"
UNCONNECTED: Final = "unconnected"


class Unconnected:
    """Stands where no route leads: it refuses, so that nobody waits for a debit that nobody made."""

    remote = False

    def first_poll_at(self, charge: Charge) -> None:
        return None

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return False

    async def probe(self) -> str:
        return "not connected"

    async def initiate(self, charge: Charge) -> InitiationResult:
        return Refused("not_connected")

    async def send_code(self, charge: Charge) -> OtpRequestResult:
        return Refused("not_connected")

    async def status(self, charge: Charge) -> StatusResult:
        return Refused("not_connected")

    async def refund(self, reversal: Reversal) -> InitiationResult:
        return Refused("not_connected")

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        return Refused("not_connected")

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        return None


class Missing(Unconnected):
    """A connection that payments still name but the operators' file no longer does: nothing can be concluded."""

    remote = True

    def __init__(self, name: str) -> None:
        self._why = f"the connection {name} is no longer in the operators' file"

    async def initiate(self, charge: Charge) -> InitiationResult:
        return NotProcessed("configuration", self._why)

    async def send_code(self, charge: Charge) -> OtpRequestResult:
        return NotProcessed("configuration", self._why)

    async def status(self, charge: Charge) -> StatusResult:
        return Unknown(self._why)

    async def refund(self, reversal: Reversal) -> InitiationResult:
        return NotProcessed("configuration", self._why)

    async def refund_status(self, reversal: Reversal) -> StatusResult:
        return Unknown(self._why)


class Registry:
    """Connections by name, and for each operator code the ordered names of those that may serve it live."""

    def __init__(
        self,
        clock: Clock,
        connections: Mapping[str, Provider],
        routes: Mapping[str, Sequence[str]],
        families: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._connections: dict[str, Provider] = {
            SANDBOX: Sandbox(clock),
            UNCONNECTED: Unconnected(),
            **connections,
        }
        self._routes = routes
        self._families = families or {}

    def routes(self, env: str, operator: str) -> list[str]:
        """Names to try in order; never empty."""
        if env == "test":
            return [SANDBOX]
        return list(self._routes.get(operator, ())) or [UNCONNECTED]

    def refund_route(self, env: str, operator: str, collected_by: str) -> str | None:
        """Who gives the money back: who took it, else another route that pays out to the same operator (or None)."""
        for name in (collected_by, *self.routes(env, operator)):
            provider = self._connections.get(name)
            if provider and provider.can_refund(operator, collected_here=name == collected_by):
                return name
        return None

    def provider(self, name: str) -> Provider:
        """A connection that was taken out of the file says nothing any more: what it holds stays pending."""
        return self._connections.get(name) or Missing(name)

    def listening(self, name: str) -> Mapping[str, Provider]:
        """Who may be meant by a notification: the connection of that name, or every connection of that family."""
        if name in self._connections:
            return {name: self._connections[name]}
        return {each: self._connections[each] for each in self._families.get(name, ())}
