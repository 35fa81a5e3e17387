"""Several hosts of PostgreSQL: a silent one delays nobody, a promotion is found, and an old primary is never used."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from sqlalchemy import insert, select

from guichet.db import migrate
from guichet.db.errors import NoPrimary, OutdatedPrimary, StorageUnavailable
from guichet.db.postgres import database
from guichet.db.postgres.database import PostgresDatabase
from guichet.db.postgres.pool import RECONNECT_TIMEOUT
from guichet.db.tables import merchants
from guichet.settings import Settings
from tests.cli.conftest import Cli, CommandResult, clean_environ, cli_for
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.processes.failover import NAME, Cluster, cluster, run_sql, running, server_folder, silent_host
from tests.processes.fleet import fleet_of

ADD = insert(merchants).values(name="M", status="active", currency="XOF", created_at=1)
IDS = select(merchants.c.id)
ADD_BY_HAND = "INSERT INTO merchants (name, status, currency, created_at) VALUES ('M', 'active', 'XOF', 1)"
#: Seconds that tell "at once, on a slow machine" from the time limits of statements and connections.
SOON = 25.0


@pytest.fixture(scope="module")
def template(base_settings: Settings) -> Iterator[Path]:
    """The folder of a migrated server that was stopped, to be copied."""

    async def make(folder: Path) -> None:
        async with running(folder) as server:
            url = await server.create_database(NAME)
            await run_sql(server, f"CREATE ROLE {NAME} LOGIN; ALTER DATABASE {NAME} OWNER TO {NAME}")
            plain_role = url.replace("postgres@", f"{NAME}@")
            await migrate.upgrade(replace(base_settings, database_url=plain_role))

    with server_folder() as folder:
        asyncio.run(make(folder))
        yield folder


@pytest.fixture
async def pair(template: Path) -> AsyncIterator[Cluster]:
    with server_folder() as folder:
        async with cluster(template, folder) as started:
            yield started


@pytest.fixture(params=["accepts", "drops"])
def silent(request: pytest.FixtureRequest) -> Iterator[int]:
    with silent_host(request.param) as port:
        yield port


@asynccontextmanager
async def opened(url: str, timelines_file: Path | None = None) -> AsyncIterator[PostgresDatabase]:
    db = PostgresDatabase(url, timelines_file=timelines_file)
    await db.open()
    try:
        yield db
    finally:
        await db.close()


def newcomer(folder: Path, url: str) -> Cli:
    return Cli({**clean_environ(folder / "var"), "GUICHET_DATABASE_URL": url}, folder)


async def test_a_silent_host_delays_nobody(silent: int, pair: Cluster, base_settings: Settings, tmp_path: Path) -> None:
    url = pair.url.replace("@", f"@127.0.0.1:{silent},")
    began = time.monotonic()
    async with opened(url) as db:
        await asyncio.gather(*(db.all(IDS) for _ in range(40)))
        await db.write(ADD)
    settings = replace(base_settings, home=tmp_path, database_url=url)
    await migrate.upgrade(settings)
    cli = cli_for(settings)
    assert len((await asyncio.to_thread(cli, "merchant", "list", "--json")).json["merchants"]) == 1
    with fleet_of(settings) as fleet:
        await asyncio.to_thread(fleet.ready, fleet.server("--no-worker"), fleet.worker())
    assert time.monotonic() - began < 3 * SOON


def test_without_any_primary_every_command_names_each_host_and_ends(tmp_path: Path, silent: int) -> None:
    refusing = free_port()
    hosts = f"127.0.0.1:{silent},127.0.0.1:{refusing}"
    url = f"postgresql://guichet:pass-word@{hosts}/none?target_session_attrs=primary"

    def lost(command: str) -> CommandResult:
        (tmp_path / command).mkdir()
        return newcomer(tmp_path / command, url)(command)

    commands = ("serve", "worker", "doctor", "migrate")
    began = time.monotonic()
    with ThreadPoolExecutor(len(commands)) as beside_each_other:
        refusals = [result.refusal for result in beside_each_other.map(lost, commands)]
    assert time.monotonic() - began < SOON
    for refusal in refusals:
        assert "GUICHET_DATABASE_URL" in refusal
        assert f"127.0.0.1:{silent}: no answer within 2 s" in refusal
        assert f"127.0.0.1:{refusing}: connection refused" in refusal
        assert "pass-word" not in refusal


def test_an_address_that_cannot_be_read_shows_no_part_of_its_password(tmp_path: Path) -> None:
    for url in ("postgresql://guichet:12a/34@127.0.0.1/none", "postgresql://guichet:x@12a34@127.0.0.1:1/none"):
        refusal = newcomer(tmp_path, url)("migrate").refusal
        assert "12a" not in refusal
        assert "34" not in refusal


async def test_a_standby_alone_is_no_primary(pair: Cluster) -> None:
    await pair.first.kill()
    with pytest.raises(NoPrimary, match=f"127.0.0.1:{pair.ports[1]}: a standby"):
        async with opened(pair.url):
            """It cannot be opened."""


async def test_a_promotion_is_found_while_statements_hang_on_the_silent_primary(pair: Cluster) -> None:
    """The proxy goes on confirming packets, so the kernel does not end the old connections either."""
    async with opened(pair.url) as db:
        await asyncio.gather(*(db.all(IDS) for _ in range(20)))
        pair.proxies[0].silent = True
        hanging = [asyncio.create_task(db.write(ADD)) for _ in range(30)]
        await asyncio.sleep(0.5)
        await pair.promote()
        began = time.monotonic()
        outcomes = await asyncio.gather(*hanging, return_exceptions=True)
        failures = [each for each in outcomes if isinstance(each, BaseException)]
        assert all(isinstance(each, StorageUnavailable) for each in failures), failures
        assert len(failures) < len(outcomes), "what had not been sent was sent to the new primary"
        await db.write(ADD)
        assert time.monotonic() - began < SOON


async def test_a_primary_that_is_back_after_a_longer_outage_is_found_within_seconds(pair: Cluster) -> None:
    """A silent host and a standby: requests fail at once, until the standby is promoted."""
    async with opened(pair.url) as db:
        await pair.first.kill()
        pair.proxies[0].silent = True
        with pytest.raises(NoPrimary):
            await db.write(ADD)
        began = time.monotonic()
        for _ in range(10):
            failures = await asyncio.gather(*(db.write(ADD) for _ in range(10)), return_exceptions=True)
            assert {type(each) for each in failures} == {NoPrimary}
        assert time.monotonic() - began < 5 * RECONNECT_TIMEOUT, "later requests fail at once"
        await pair.promote()
        began = time.monotonic()
        while True:
            try:
                await db.write(ADD)
            except NoPrimary:
                await asyncio.sleep(0.05)
            else:
                break
        assert time.monotonic() - began < SOON


async def test_a_primary_that_was_replaced_but_still_answers_is_left(
    pair: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody stopped it: what is read there is out of date. Hosts are compared each second, not every ten."""
    monkeypatch.setattr(database, "_LOOK_INTERVAL", 1.0)
    async with opened(pair.url) as db:
        before = len(await db.all(IDS))
        await pair.promote()
        await run_sql(pair.second, ADD_BY_HAND)
        async with asyncio.timeout(PATIENCE):
            while len(await db.all(IDS)) == before:
                await asyncio.sleep(0.1)
        await db.write(ADD)
        assert len(await db.all(IDS)) == before + 2


async def test_of_two_primaries_the_newer_is_taken_and_the_older_refused_after_a_restart_too(
    pair: Cluster, base_settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "home" / "postgresql-timelines.json"
    await pair.promote()
    await run_sql(pair.second, ADD_BY_HAND)
    async with opened(pair.url, file) as db:
        assert len(await db.all(IDS)) == 1, "both answer, and nothing was known before"
        assert file.stat().st_mode & 0o777 == 0o600
        await pair.second.kill()
        with pytest.raises(OutdatedPrimary):
            await db.all(IDS)
    with pytest.raises(OutdatedPrimary, match=str(file)):
        async with opened(pair.url, file):
            """A new process remembers."""
    cli = cli_for(replace(base_settings, home=file.parent, database_url=pair.url))
    refused = await asyncio.to_thread(cli, "serve")
    assert refused.code == 1
    assert "Traceback" not in refused.err
    *logged, sentence = refused.err.splitlines()
    assert "timeline 1, but timeline 2 of the same database was seen" in sentence
    assert f"127.0.0.1:{pair.ports[1]}: " in sentence
    assert [line for line in logged if "database.outdated_primary" in line]
    file.unlink()
    async with opened(pair.url, file) as db:
        assert len(await db.all(IDS)) == 0, "somebody said that the older one is right"


async def test_a_server_that_does_not_tell_its_timeline_is_used_only_if_there_was_no_promotion(
    pair: Cluster, tmp_path: Path
) -> None:
    await run_sql(pair.first, "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    async with opened(pair.url, tmp_path / "timelines") as db:
        await db.write(ADD)
    (tmp_path / "timelines").write_text('{"1": 2}')
    with pytest.raises(OutdatedPrimary, match="does not tell its timeline"):
        async with opened(pair.url, tmp_path / "timelines"):
            """Whether it is the old one cannot be known."""


async def test_readiness_is_answered_in_time_and_comes_back_after_the_promotion(
    pair: Cluster, base_settings: Settings, tmp_path: Path
) -> None:
    settings = replace(base_settings, home=tmp_path, database_url=pair.url)
    with fleet_of(settings) as fleet:
        server = fleet.server("--no-worker")
        await asyncio.to_thread(fleet.ready, server)
        async with aiohttp.ClientSession() as client:

            async def status() -> int:
                began = time.monotonic()
                async with client.get(f"{server.url}/readyz") as answer:
                    assert time.monotonic() - began < SOON
                    return answer.status

            pair.proxies[0].silent = True
            async with asyncio.timeout(PATIENCE):  # What was found out just before is repeated for a second.
                while await status() != 503:
                    await asyncio.sleep(0.1)
            for _ in range(4):
                assert await status() == 503
                await asyncio.sleep(0.5)
            await pair.promote()
            async with asyncio.timeout(PATIENCE):
                while await status() != 200:
                    await asyncio.sleep(0.1)
