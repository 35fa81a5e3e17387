"""The simulator on a real port for clients that we did not write. They block, so each call runs in a thread."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import pytest

from tests.guichet_simulator.conftest import Simulator, callback_receiver, open_simulator
from tests.patience import PATIENCE

__all__ = ["callback_receiver"]

T = TypeVar("T")


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    """With Wave's paths at the root too: its client drops the path of a base address."""
    async with open_simulator(at_root="wave") as opened:
        yield opened


async def until(simulator: Simulator, call: Callable[..., T], *arguments: Any, wanted: Callable[[T], bool]) -> T:
    """The first answer of `call` that is wanted."""
    async with asyncio.timeout(PATIENCE):
        while not wanted(answer := await asyncio.to_thread(call, *arguments)):
            await simulator.passing()
    return answer


async def customer(simulator: Simulator, reference: str, decision: str) -> None:
    """The customer's answer on the simulated phone."""
    [held] = (await simulator.truth(reference=reference))["transactions"]
    await simulator.press(held["id"], decision)
