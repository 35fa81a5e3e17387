"""Databases and servers that a test of processes may break."""

import asyncio
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import asyncpg
import pytest

from guichet.settings import Settings

_numbers = count(1)


@pytest.fixture(scope="session")
def new_database(
    base_settings: Settings, postgres_server: str, postgres_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Settings]:
    """Settings of a fresh, migrated PostgreSQL database with a data folder of its own."""

    async def create(name: str) -> None:
        connection = await asyncpg.connect(postgres_server)
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {postgres_template}")
        await connection.close()

    def make() -> Settings:
        name = f"fleet_{next(_numbers)}"
        asyncio.run(create(name))
        url = postgres_server.replace("/postgres?", f"/{name}?")
        return replace(base_settings, home=tmp_path_factory.mktemp(name), database_url=url)

    return make


class Redis:
    """A real server on a free port, that a test may stop and start again."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = int(probe.getsockname()[1])
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--save", "", "--dir", str(self._folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("redis-server did not start")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    if shutil.which("redis-server") is None:
        pytest.skip("LOUD: redis-server is not installed, the shared rate limit is not tested")
    server = Redis(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()
