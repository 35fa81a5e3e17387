"""`python -m reliability.machines` (`make machines`): a quarter of an hour, as root, on Debian 12.

Makes network namespaces, sets PostgreSQL up in them as docs/operations says, runs the trial, and removes everything,
also after Ctrl-C. Exit code 1 on any loss or wrong answer; the logs are then kept.
"""

import re
import sys
from pathlib import Path
from typing import Final

from reliability.machines.hosts import MOUNT_POINTS, network, prepare
from reliability.network import Network
from reliability.network_trial import NetworkTrial, main

_PROGRAMS: Final = {
    "ip": "iproute2",
    "setpriv": "util-linux",
    "/usr/lib/postgresql/15/bin/postgres": "postgresql-15",
    "pg_ctlcluster": "postgresql-common",
    "haproxy": "haproxy",
    "pgbouncer": "pgbouncer",
    "redis-server": "redis-server",
    "openssl": "openssl",
}
#: Seconds. The trial ends by itself; nothing may run for ever.
_LIMIT: Final = 25 * 60


async def _run(made: Network, folder: Path, seed: int, only: str | None) -> bool:
    from reliability.machines.scenarios import SCENARIOS
    from reliability.machines.trial import Trial

    scenarios = [scenario for scenario in SCENARIOS if re.search(only or "", scenario.name)]
    return await Trial(made, folder, seed).run(scenarios)


if __name__ == "__main__":
    sys.exit(
        main(NetworkTrial("machines", str(__doc__), "gm", _PROGRAMS, network, prepare, _run, _LIMIT, MOUNT_POINTS))
    )
