"""What merchants generate from /openapi.json compiles and works, and the linters have nothing to say about it.

Go, Java and a third TypeScript are left to `make clients`. Where the tools are not installed the tests are skipped,
loudly; GUICHET_REQUIRE_CLIENTS=1 fails them instead.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from clients import linters
from clients.demo import Demo
from clients.generators import CLIENTS, Client, build_and_run, generate
from clients.linters import LINTERS, lint
from tests.cli.demonstration import demonstrated
from tests.ports import free_port
from tests.sdks.conftest import DemoServer

__all__ = ["demonstrated"]

KEPT: Final = [client for client in CLIENTS if client.name not in ("go", "java", "typescript-axios")]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, demonstrated: Path) -> Iterator[Demo]:
    home = shutil.copytree(demonstrated, tmp_path_factory.mktemp("demo") / "var")
    server = DemoServer(home, free_port(), {"GUICHET_RATE_LIMIT": "0"})
    server.start()
    try:
        yield Demo(f"http://127.0.0.1:{server.port}", server.keys["test"])
    finally:
        server.kill()


def _require(missing: list[str], what: str) -> None:
    if missing:
        message = f"{what} was NOT checked, {', '.join(missing)} is not installed"
        if os.environ.get("GUICHET_REQUIRE_CLIENTS"):
            pytest.fail(message)
        pytest.skip(message)


@pytest.fixture(scope="module")
def generated(demo: Demo) -> None:
    generate((client for client in KEPT if not client.missing()), demo)


@pytest.mark.parametrize("client", KEPT, ids=lambda client: client.name)
@pytest.mark.usefixtures("generated")
def test_generated_clients_compile_and_refund_a_payment(client: Client, demo: Demo) -> None:
    _require(client.missing(), f"the generated client {client.name}")

    build_and_run(client, demo)


@pytest.mark.parametrize("name", LINTERS)
def test_linters_report_nothing(name: str, demo: Demo) -> None:
    _require(linters.missing(), f"the OpenAPI document by {name}")

    lint(name, demo)
