"""The API families there are. A new one is a module here, a module in the simulator, and a line in each table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from guichet.clock import Clock
from guichet.egress import Egress
from guichet.operators import feexpay
from guichet.operators.base import Connector
from guichet.operators.calling import Connection


@dataclass(frozen=True, slots=True)
class Family:
    """How to build a connector, and the settings its connections must and may have."""

    build: Callable[[Connection, Egress, Clock], Connector]
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


FAMILIES: Final = {
    "feexpay": Family(feexpay.FeexPay, feexpay.REQUIRED),
}
