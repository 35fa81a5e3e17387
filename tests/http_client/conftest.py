"""A certificate authority, and both event loops for the tests with hostile peers.

The transports of the two loops close in different ways. Servers run on uvloop, commands on asyncio.
"""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

from tests.fakes.certificates import CertificateAuthority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority.create(tmp_path_factory.mktemp("ca"))


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    usual: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    if item.path.name == "test_hostile_servers.py":
        return {"asyncio": usual, "uvloop": uvloop.new_event_loop}
    return {"asyncio": usual}
