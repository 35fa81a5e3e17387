"""Databases and servers that a test of processes may break."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import asyncpg
import pytest

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
