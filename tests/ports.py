"""Ports for processes that a test starts: below what the system hands out by itself, and never the same for two test
runners at once, so that no process answers on the port of another.
"""

import os
import socket
from itertools import count

_FIRST = 15_000
_EACH = 2_000
_RUNNER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8
#: Ports are given in threes: a fleet takes the two behind the one it was given.
_STEP = 3
_turns = count(os.getpid() % 500)


def free_port() -> int:
    """A free port, with two more behind it."""
    while True:
        first = _FIRST + _RUNNER * _EACH + next(_turns) * _STEP % (_EACH - _STEP)
        if all(_free(port) for port in range(first, first + _STEP)):
            return first


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
