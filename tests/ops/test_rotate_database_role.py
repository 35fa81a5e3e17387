"""docs/operations/runbook.md, "Rotating the database password": two roles take turns, and no payment fails."""

import asyncio
from dataclasses import replace

import aiohttp
import asyncpg
import pytest

from guichet.back_office.merchants import create_merchant
from guichet.bootstrap import service as open_database
from guichet.db import migrate
from guichet.settings import Settings
from tests.cli.conftest import cli_for
from tests.processes.fleet import Fleet, Merchant, ServiceProcess, execute, fleet_of

pytestmark = pytest.mark.parametrize("settings", ["postgresql"], indirect=True)


def as_role(settings: Settings, role: str) -> Settings:
    return replace(settings, database_url=settings.database_url.replace("//postgres", f"//{role}", 1))


async def test_the_roles_take_turns_while_payments_are_made(settings: Settings, postgres_server: str) -> None:
    connection = await asyncpg.connect(postgres_server)
    await connection.execute("CREATE ROLE turns_1 LOGIN")
    await connection.execute("CREATE DATABASE turns OWNER turns_1")
    url = postgres_server.replace("/postgres?", "/turns?")
    try:
        await _take_turns(replace(settings, database_url=url))
    finally:
        await connection.execute("DROP DATABASE turns WITH (FORCE)")
        await connection.execute("DROP ROLE IF EXISTS turns_2")
        await connection.execute("DROP ROLE turns_1")
        await connection.close()


async def _take_turns(owner: Settings) -> None:
    first, second = as_role(owner, "turns_1"), as_role(owner, "turns_2")
    await migrate.upgrade(first)
    async with open_database(first) as opened:
        _, keys = await create_merchant(opened.ctx, "M")
    with fleet_of(first) as fleet:
        async with aiohttp.ClientSession() as client:
            merchant = Merchant(client, keys["test"])
            one = await _started(fleet, first)
            answered = [await merchant.pay(one, "before")]
            await execute(owner, "CREATE ROLE turns_2 LOGIN IN ROLE turns_1")
            await execute(owner, "ALTER ROLE turns_2 SET role = 'turns_1'")

            two = await _started(fleet, second)
            answered += await asyncio.gather(merchant.pay(one, "both-1"), merchant.pay(two, "both-2"))
            await asyncio.to_thread(one.stop)
            assert await _sessions(owner, "turns_1") == 0
            await execute(owner, "ALTER ROLE turns_1 NOLOGIN")
            answered.append(await merchant.pay(two, "after"))
            assert cli_for(second)("migrate").code == 0
            assert cli_for(first)("merchant", "list").code == 1, "the old role is closed"
            assert await _owners(owner) == {"turns_1"}

            await execute(owner, "ALTER ROLE turns_1 LOGIN")  # The next rotation, back.
            three = await _started(fleet, first)
            await asyncio.to_thread(two.stop)
            await execute(owner, "ALTER ROLE turns_2 NOLOGIN")
            answered.append(await merchant.pay(three, "back"))
            await asyncio.to_thread(three.stop)
    assert {status for status, _ in answered} == {201}


async def _started(fleet: Fleet, settings: Settings) -> ServiceProcess:
    server = fleet.server(GUICHET_DATABASE_URL=settings.database_url)
    await asyncio.to_thread(fleet.ready, server)
    return server


async def _sessions(owner: Settings, role: str) -> int:
    connection = await asyncpg.connect(owner.database_url)
    try:
        question = "SELECT count(*) FROM pg_stat_activity WHERE usename = $1"
        return int(await connection.fetchval(question, role))
    finally:
        await connection.close()


async def _owners(owner: Settings) -> set[str]:
    """Who owns the tables."""
    connection = await asyncpg.connect(owner.database_url)
    try:
        return {
            row[0] for row in await connection.fetch("SELECT tableowner FROM pg_tables WHERE schemaname = 'public'")
        }
    finally:
        await connection.close()
