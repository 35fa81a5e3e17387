"""The simulator on a real port for clients that we did not write. They block, so each call runs in a thread."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import aiohttp
import pytest

from guichet.clock import SystemClock
from guichet_simulator.app import create_simulator
from tests.guichet_simulator.conftest import Simulator, callback_receiver, loopback, serve
from tests.patience import PATIENCE

__all__ = ["callback_receiver"]

T = TypeVar("T")


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    """With Wave's paths at the root too: its client drops the path of a base address."""
    sock, url = loopback()
    app = create_simulator(None, public_url=f"{url}/simulator", clock=SystemClock(), at_root="wave")
    async with serve(app, sock), aiohttp.ClientSession() as http:
        yield Simulator(f"{url}/simulator", http)


async def until(call: Callable[..., T], *arguments: Any, wanted: Callable[[T], bool]) -> T:
    """The first answer of `call` that is wanted."""
    async with asyncio.timeout(PATIENCE):
        while not wanted(answer := await asyncio.to_thread(call, *arguments)):
            await asyncio.sleep(0.05)
    return answer


async def customer(simulator: Simulator, reference: str, decision: str) -> None:
    """The customer's answer on the simulated phone."""
    [held] = (await simulator.truth(reference=reference))["transactions"]
    await simulator.press(held["id"], decision)
