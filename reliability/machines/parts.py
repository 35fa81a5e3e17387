"""What every scenario is given, and what most of them wait for."""

import asyncio
import time
from bisect import bisect_right
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from reliability.machines.app import App
from reliability.machines.hosts import Hosts
from reliability.machines.report import Result
from reliability.steady_traffic import SteadyTraffic

#: Seconds within which the first 201 must come after a promotion, a command must end, and a server must be ready.
PATIENCE: Final = 60.0


@dataclass
class Parts:
    hosts: Hosts
    app: App
    traffic: SteadyTraffic
    result: Result


@dataclass(frozen=True)
class Scenario:
    """`reads_go_on`: no read may fail, and `/readyz` answers (503 while no commit ends). `no_request_fails`: neither a
    read nor a payment."""

    name: str
    run: Callable[[Parts], Awaitable[None]]
    reads_go_on: bool = False
    no_request_fails: bool = False


async def first_201(parts: Parts, promoted: float) -> None:
    """Waits for the first 201 after this moment, when nothing was acknowledged for a while."""
    acknowledged = parts.traffic.acknowledged_at
    while time.monotonic() < promoted + PATIENCE:
        after = bisect_right(acknowledged, promoted)
        if after < len(acknowledged):
            parts.result.first_201 = acknowledged[after] - promoted
            return
        await asyncio.sleep(0.05)
    parts.result.faults.append(f"no 201 for {PATIENCE:g} s after the promotion")
