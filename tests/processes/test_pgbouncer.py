"""Behind PgBouncer in transaction mode: the same service, woken by polls, or through a direct address."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace

import aiohttp
import asyncpg
import pytest
from sqlalchemy import func, insert, select, text

from guichet.bootstrap import database, service
from guichet.db import migrate
from guichet.db.engine import Database
from guichet.db.schema import REQUIRED_REVISION, current_revision
from guichet.db.tables import merchants
from guichet.settings import Settings
from tests.cli.child import POLLS_EVERY
from tests.fakes.http_server import ScriptedServer
from tests.invariants import check_books
from tests.processes.bouncer import POOL, documented_pgbouncer, keeping_pgbouncer, pgbouncer
from tests.processes.fleet import Merchant, Receiver, execute, fleet_of, new_merchant, soon
from tests.processes.kept_clients import paying_all_along

ADD = insert(merchants).values(name="added", status="active", currency="XOF", created_at=1)
NOBODY_LISTENS = "postgresql://guichet@127.0.0.1:1/guichet"
ADDED = select(merchants.c.id).where(merchants.c.name == "added")
#: Statements that one connection of PgBouncer's planned once, for all values.
REUSED = text("SELECT sum(generic_plans) AS plans FROM pg_prepared_statements WHERE name LIKE 'PGBOUNCER%'")


@pytest.fixture
def direct(new_database: Callable[[], Settings]) -> Settings:
    return new_database()


@pytest.fixture
def bounced(direct: Settings) -> Iterator[Settings]:
    with pgbouncer(direct.database_url) as url:
        yield replace(direct, database_url=url, pgbouncer=True)


@asynccontextmanager
async def opened(direct: Settings, bouncer: str) -> AsyncIterator[Database]:
    db = database(replace(direct, database_url=bouncer, pgbouncer=True))
    await db.open()
    yield db
    await db.close()


async def test_payments_work_behind_pgbouncer_by_polls_and_by_announcements(
    direct: Settings, bounced: Settings
) -> None:
    key = await new_merchant(bounced)
    receiver = Receiver()
    async with aiohttp.ClientSession() as client, ScriptedServer(receiver) as scripted_server:
        merchant = Merchant(client, key)
        for way, listen_url in (("polls", ""), ("announcements", direct.database_url)):
            with fleet_of(
                bounced, GUICHET_RATE_LIMIT="0", GUICHET_PGBOUNCER="yes", GUICHET_LISTEN_URL=listen_url
            ) as fleet:
                # With a direct address a worker does without PgBouncer.
                bouncer = NOBODY_LISTENS if listen_url else bounced.database_url
                polls = {POLLS_EVERY: "3600"} if listen_url else {}
                server, worker = fleet.server("--no-worker"), fleet.worker(GUICHET_DATABASE_URL=bouncer, **polls)
                await asyncio.to_thread(fleet.ready, server, worker)
                await merchant.receive_at(server, scripted_server.url("127.0.0.1"))
                answers = await asyncio.gather(*(merchant.pay(server, f"{way}-{number}") for number in range(30)))
                assert {status for status, _ in answers} == {201}, server.log
                await soon(lambda way=way: sum(each.startswith(way) for each in receiver.delivery_ids) == 30)  # type: ignore[misc]
                status, refund = await merchant.call(server, "POST", f"/payments/{way}-0/refund", {})
                assert status == 201, refund
                assert worker.says("wakeups.listening") == bool(listen_url)
                assert not server.says("request.crashed"), server.log
                assert not worker.says("worker.failed"), worker.log
    assert set(receiver.most.values()) == {1}
    async with service(bounced) as served:
        await check_books(served.ctx.db)


async def _leave_no_search_path(settings: Settings) -> None:
    """On every connection of the pool, as `pg_dump` does on the one that it gets."""
    clients = [await asyncpg.connect(settings.database_url, statement_cache_size=0) for _ in range(POOL)]
    transactions = [client.transaction() for client in clients]
    for client, transaction in zip(clients, transactions, strict=True):
        await transaction.start()
        await client.execute("SELECT pg_catalog.set_config('search_path', '', false)")
    for client, transaction in zip(clients, transactions, strict=True):
        await transaction.commit()
        await client.close()


async def test_what_another_client_sets_on_a_connection_changes_nothing(bounced: Settings) -> None:
    key = await new_merchant(bounced)
    receiver = Receiver()
    await _leave_no_search_path(bounced)
    async with aiohttp.ClientSession() as client, ScriptedServer(receiver) as scripted_server:
        merchant = Merchant(client, key)
        with fleet_of(bounced, GUICHET_RATE_LIMIT="0", GUICHET_PGBOUNCER="yes") as fleet:
            server, worker = fleet.server("--no-worker"), fleet.worker()
            await asyncio.to_thread(fleet.ready, server, worker)
            await merchant.receive_at(server, scripted_server.url("127.0.0.1"))
            answers = await asyncio.gather(*(merchant.pay(server, f"order-{number}") for number in range(20)))
            assert {status for status, _ in answers} == {201}, server.log
            await soon(lambda: len(receiver.delivery_ids) == 20)
            status, refund = await merchant.call(server, "POST", "/payments/order-0/refund", {})
            assert status == 201, refund
            for path in ("/payments", "/refunds", "/webhooks/deliveries", "/balance"):
                status, listed = await merchant.call(server, "GET", path)
                assert status == 200, listed
            assert not worker.says("worker.failed"), worker.log
    async with service(bounced) as served:
        await check_books(served.ctx.db)


async def test_pgbouncer_is_restarted_without_a_lost_payment(direct: Settings) -> None:
    """As docs/operations/pgbouncer.md says: the servers move to a second PgBouncer and back, in rolling restarts. One
    that stops on a busy machine may cut a connection; its payment is repeated, as any client does."""
    key = await new_merchant(direct)
    with ExitStack() as first, pgbouncer(direct.database_url) as second_url:
        bounced = replace(direct, database_url=first.enter_context(pgbouncer(direct.database_url)))
        variables = {"GUICHET_RATE_LIMIT": "0", "GUICHET_PGBOUNCER": "yes"}
        with fleet_of(bounced, **variables) as fleet:
            servers = [fleet.server("--no-worker") for _ in range(2)]
            await asyncio.to_thread(fleet.ready, *servers)

            async def move(url: str) -> None:
                for index in range(len(servers)):
                    servers[index] = await fleet.restarted(servers[index], "--no-worker", GUICHET_DATABASE_URL=url)

            async with aiohttp.ClientSession() as client:
                async with paying_all_along(Merchant(client, key), servers):
                    await move(second_url)
                    await asyncio.to_thread(first.close)
                    await move(first.enter_context(pgbouncer(direct.database_url)))
                assert {server.log.count("request.crashed") for server in servers} == {0}
    async with service(direct) as served:
        await check_books(served.ctx.db)


async def test_guichet_works_behind_the_documented_file(direct: Settings) -> None:
    """With its password, and more statements at once than a process has connections."""
    name = direct.database_url.split("?", maxsplit=1)[0].rpartition("/")[2]
    await execute(
        direct,
        "DO $$ BEGIN CREATE ROLE guichet LOGIN SUPERUSER PASSWORD 'change-me'; "
        "EXCEPTION WHEN duplicate_object THEN END $$",
    )
    await execute(direct, f"ALTER DATABASE {name} OWNER TO guichet")
    with documented_pgbouncer(direct.database_url) as url:
        async with opened(direct, url) as db:
            await asyncio.gather(*(db.write(ADD) for _ in range(40)))
            assert {len(rows) for rows in await asyncio.gather(*(db.all(ADDED) for _ in range(20)))} == {40}


async def test_a_statement_is_one_transaction_of_the_server(direct: Settings) -> None:
    """Not another to describe it, and none of PgBouncer's own."""
    name = direct.database_url.split("?", maxsplit=1)[0].rpartition("/")[2]
    committed = f"SELECT xact_commit FROM pg_stat_database WHERE datname = '{name}'"
    watching = await asyncpg.connect(direct.database_url)
    with pgbouncer(direct.database_url, pool=1) as url:
        async with opened(direct, url) as db:

            async def reported() -> int:
                """What the only process that PgBouncer has there committed, with what we ask here."""
                await db.all(select(func.pg_stat_force_next_flush()))
                await db.all(ADDED)
                return int(await watching.fetchval(committed))

            before = await reported()
            for _ in range(20):
                await db.all(ADDED)
            assert await reported() - before < 30
    await watching.close()


async def test_statements_stay_prepared_where_pgbouncer_keeps_them(direct: Settings) -> None:
    with keeping_pgbouncer(direct.database_url) as url:
        async with opened(direct, url) as db:
            for _ in range(20):
                await asyncio.gather(*(db.all(ADDED) for _ in range(6)))
            assert (await db.all(REUSED))[0]["plans"] >= 1


async def test_every_statement_is_answered_when_pgbouncer_is_told_to_keep_none(direct: Settings) -> None:
    """The names that it gave are unknown from then on."""
    with keeping_pgbouncer(direct.database_url) as url:
        async with opened(direct, url) as db:
            await asyncio.gather(*(db.write(ADD) for _ in range(10)))
            console = await asyncpg.connect(f"{url.rpartition('/')[0]}/pgbouncer", statement_cache_size=0)
            await console.execute("SET max_prepared_statements = 0")
            await console.close()
            for turn in range(2, 5):
                await asyncio.gather(*(db.write(ADD) for _ in range(10)))
                async with db.transaction() as tx:
                    assert len(await tx.all(ADDED)) == 10 * turn
                found = await asyncio.gather(*(db.all(ADDED) for _ in range(6)))
                assert {len(rows) for rows in found} == {10 * turn}


async def test_the_schema_is_migrated_through_pgbouncer(bounced: Settings) -> None:
    for _ in range(3):
        assert await migrate.upgrade(bounced) == (REQUIRED_REVISION, REQUIRED_REVISION)
        assert await current_revision(bounced) == REQUIRED_REVISION
