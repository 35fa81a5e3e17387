"""Which connector serves which payment: the sandbox in test, the operators' routes in production."""

from collections.abc import Mapping, Sequence
from typing import Final

from guichet.clock import Clock
from guichet.providers.base import (
    Callback,
    Charge,
    CodeAnswer,
    Connector,
    Hint,
    InitiateAnswer,
    NotTaken,
    Refused,
    Reversal,
    StatusAnswer,
    Unknown,
)
from guichet.providers.sandbox import Sandbox

SANDBOX: Final = "sandbox"
UNCONNECTED: Final = "unconnected"


class Unconnected:
    """Stands where no route leads: it refuses, so that nobody waits for a debit that nobody made."""

    remote = False

    def first_question(self, charge: Charge) -> None:
        return None

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        return False

    async def probe(self) -> str:
        return "not connected"

    async def initiate(self, charge: Charge) -> InitiateAnswer:
        return Refused("not_connected")

    async def send_code(self, charge: Charge) -> CodeAnswer:
        return Refused("not_connected")

    async def status(self, charge: Charge) -> StatusAnswer:
        return Refused("not_connected")

    async def refund(self, reversal: Reversal) -> InitiateAnswer:
        return Refused("not_connected")

    async def refund_status(self, reversal: Reversal) -> StatusAnswer:
        return Refused("not_connected")

    def read_callback(self, callback: Callback) -> Hint | None:
        return None


class Missing(Unconnected):
    """A connection that payments still name but the operators' file no longer does: nothing can be concluded."""

    remote = True

    def __init__(self, name: str) -> None:
        self._why = f"the connection {name} is no longer in the operators' file"

    async def initiate(self, charge: Charge) -> InitiateAnswer:
        return NotTaken("configuration", self._why)

    async def send_code(self, charge: Charge) -> CodeAnswer:
        return NotTaken("configuration", self._why)

    async def status(self, charge: Charge) -> StatusAnswer:
        return Unknown(self._why)

    async def refund(self, reversal: Reversal) -> InitiateAnswer:
        return NotTaken("configuration", self._why)

    async def refund_status(self, reversal: Reversal) -> StatusAnswer:
        return Unknown(self._why)


class Registry:
    """Connections by name, and for each operator code the ordered names of those that may serve it live."""

    def __init__(
        self,
        clock: Clock,
        connections: Mapping[str, Connector],
        routes: Mapping[str, Sequence[str]],
        families: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._connections: dict[str, Connector] = {
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
            connector = self._connections.get(name)
            if connector and connector.can_refund(operator, collected_here=name == collected_by):
                return name
        return None

    def connector(self, name: str) -> Connector:
        """A connection that was taken out of the file says nothing any more: what it holds stays pending."""
        return self._connections.get(name) or Missing(name)

    def listening(self, name: str) -> Mapping[str, Connector]:
        """Who may be meant by a notification: the connection of that name, or every connection of that family."""
        if name in self._connections:
            return {name: self._connections[name]}
        return {each: self._connections[each] for each in self._families.get(name, ())}
