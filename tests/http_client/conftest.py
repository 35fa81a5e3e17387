"""Hostile peers are met on both event loops, whose transports close in different ways.

Servers run on uvloop, commands on asyncio.
"""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    usual: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    if item.path.name == "test_hostile_servers.py":
        return {"asyncio": usual, "uvloop": uvloop.new_event_loop}
    return {"asyncio": usual}
