"""What merchants generate from /openapi.json compiles and works, and the linters have nothing to say about it.

Go and Java are left to `make clients`. Where the tools are not installed the tests are skipped, loudly;
GUICHET_REQUIRE_CLIENTS=1 fails them instead.
"""

import os
from collections.abc import Iterator
from typing import Final

import pytest

from clients import linters
from clients.demo import Demo, running_demo
from clients.generators import CLIENTS, Client, build_and_run
from clients.linters import LINTERS, lint
from tests.ports import free_port

KEPT: Final = [client for client in CLIENTS if client.name not in ("go", "java")]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    with running_demo(free_port()) as running:
        yield running


def _require(missing: list[str], what: str) -> None:
    if missing:
        message = f"{what} was NOT checked, {', '.join(missing)} is not installed"
        if os.environ.get("GUICHET_REQUIRE_CLIENTS"):
            pytest.fail(message)
        pytest.skip(message)


@pytest.mark.parametrize("client", KEPT, ids=lambda client: client.name)
def test_generated_clients_compile_and_refund_a_payment(client: Client, demo: Demo) -> None:
    _require(client.missing(), f"the generated client {client.name}")

    build_and_run(client, demo)


@pytest.mark.parametrize("name", LINTERS)
def test_linters_report_nothing(name: str, demo: Demo) -> None:
    _require(linters.missing(), f"the OpenAPI document by {name}")

    lint(name, demo)
