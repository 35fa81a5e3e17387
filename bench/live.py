"""Guichet's settings with all live routes leading to a simulator of the providers' APIs, a process beside."""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from bench import servers
from guichet.settings import Settings
from reliability.installation import Installation

#: Of a telephone number: the simulated provider takes the payment, which succeeds after two seconds, with a callback.
ENDING: Final = "9001"


@asynccontextmanager
async def simulator(
    home: Path, public_url: str, database: str | None = None, variables: Mapping[str, str] | None = None
) -> AsyncIterator[Settings]:
    """`public_url`: where providers send their callbacks. `variables`: more settings of Guichet."""
    port = servers.free_port()
    installation = Installation(home, port, [], database, public_url, dict(variables or {}))
    installation.settings.home.mkdir()
    # The simulator keeps its own file, as the providers would.
    environment = {**installation.environ, "GUICHET_HOME": str(home / "simulator")}
    command = [sys.executable, "-m", "guichet", "simulator", "--port", str(port)]
    async with servers.program(command, port, environment, home / "simulator.log"):
        yield installation.settings
