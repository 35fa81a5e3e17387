"""Which connector serves which payment: the sandbox in test, the operators' routes in production."""

from collections.abc import Mapping, Sequence
from typing import Final

from guichet.clock import Clock
from guichet.operators.base import Callback, Charge, Connector, Hint, InitiateAnswer, Refused, Reversal, StatusAnswer
from guichet.operators.sandbox import Sandbox

SANDBOX: Final = "sandbox"
UNCONNECTED: Final = "unconnected"


class Unconnected:
    """Stands where no route leads: it refuses, so that nobody waits for a debit that nobody made."""

    remote = False

    def first_question(self, charge: Charge) -> None:
        return None

    async def initiate(self, charge: Charge) -> InitiateAnswer:
        return Refused("not_connected")

    async def status(self, charge: Charge) -> StatusAnswer:
        return Refused("not_connected")

    async def refund(self, reversal: Reversal) -> InitiateAnswer:
        return Refused("not_connected")

    async def refund_status(self, reversal: Reversal) -> StatusAnswer:
        return Refused("not_connected")

    def read_callback(self, callback: Callback) -> Hint | None:
        return None


class Registry:
    """Connections by name, and for each operator code the ordered names of those that may serve it live."""

    def __init__(self, clock: Clock, connections: Mapping[str, Connector], routes: Mapping[str, Sequence[str]]) -> None:
        self._connections: dict[str, Connector] = {
            SANDBOX: Sandbox(clock),
            UNCONNECTED: Unconnected(),
            **connections,
        }
        self._routes = routes

    def routes(self, env: str, operator: str) -> list[str]:
        """Names to try in order; never empty."""
        if env == "test":
            return [SANDBOX]
        return list(self._routes.get(operator, ())) or [UNCONNECTED]

    def connector(self, name: str) -> Connector:
        """A connection that was removed from the routes refuses nothing and knows nothing: KeyError is a bug."""
        return self._connections[name]

    def knows(self, name: str) -> bool:
        return name in self._connections
