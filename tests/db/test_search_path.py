"""Statements mean the same whatever `search_path` a connection has: behind PgBouncer others leave theirs."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count
from typing import Any

import asyncpg
import pytest

from guichet.bootstrap import service
from guichet.db import migrate
from guichet.db.errors import UnknownSchema
from guichet.db.postgres.statements import PostgresDialect
from guichet.db.schema import REQUIRED_REVISION, current_revision
from guichet.db.statement_cache import CompiledStatement
from guichet.db.tables import metadata
from guichet.ledger.audit import audit
from guichet.settings import Settings
from tests.db.module_statements import module_statements
from tests.db.test_query_plans import HOT, _load
from tests.invariants import check_books
from tests.service_fixture import open_service

_numbers = count(1)
on_postgresql = pytest.mark.parametrize("settings", ["postgresql"], indirect=True)


async def _execute(settings: Settings, *statements: str) -> None:
    connection = await asyncpg.connect(settings.database_url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def _empty_path(settings: Settings) -> None:
    """As `pg_dump` leaves it on a connection, on every connection that is made from now on."""
    name = settings.database_url.split("?", maxsplit=1)[0].rpartition("/")[2]
    await _execute(settings, f"ALTER DATABASE {name} SET search_path = ''")


@pytest.fixture
async def new(base_settings: Settings, postgres_server: str) -> AsyncIterator[Settings]:
    """A database without any table."""
    name = f"search_path_{next(_numbers)}"
    server = replace(base_settings, database_url=postgres_server)
    await _execute(server, f"CREATE DATABASE {name}")
    yield replace(base_settings, database_url=postgres_server.replace("/postgres?", f"/{name}?"))
    await _execute(server, f"DROP DATABASE {name} WITH (FORCE)")


def test_every_statement_names_the_schema_of_its_tables() -> None:
    names = "|".join(metadata.tables)
    without_schema = re.compile(rf"\b(FROM|JOIN|INTO|UPDATE)\s+({names})\b")
    seen, faults = 0, []
    for name, statement in module_statements():
        seen += 1
        text = CompiledStatement(statement, PostgresDialect()).text  # type: ignore[no-untyped-call]
        if without_schema.search(text):
            faults.append(f"{name}: {text}")
    assert seen > 100
    assert not faults, "\n".join(faults)


@on_postgresql
async def test_frequent_statements_need_no_search_path(settings: Settings) -> None:
    async with service(settings) as opened:
        await _load(opened.ctx.db, embedded=False, rows=300)
    await _empty_path(settings)
    async with service(settings) as opened:
        for run in HOT.values():
            await run(opened.ctx.db)


@on_postgresql
async def test_a_payment_lives_without_a_search_path(settings: Settings) -> None:
    await _empty_path(settings)
    async with open_service(settings) as opened:
        merchant = await opened.merchant()
        await merchant.put("/webhooks/endpoint", {"url": "https://localhost:9/hook"})
        paid = await merchant.pay("0000")
        await opened.run_worker()
        assert (await merchant.get(f"/payments/{paid['reference']}")).data["status"] == "succeeded"
        assert (await merchant.post(f"/payments/{paid['reference']}/refund")).status == 201
        await opened.run_worker()
        totals = {"/payments": 1, "/payments?status=refunded": 1, "/refunds": 1, "/webhooks/deliveries": 3}
        for path, total in totals.items():
            listed: Any = (await merchant.get(path)).body
            assert listed["meta"]["total"] == total, path
        assert (await opened.call("GET", "/readyz")).status == 200
        report = await audit(opened.ctx.db, opened.ctx.clock, lambda _: None)
        assert not [check for check in report.checks if check.fault is not None]
        await check_books(opened.ctx.db, events_queued=True)


async def test_a_new_schema_is_made_without_a_search_path(new: Settings) -> None:
    await _empty_path(new)
    assert await migrate.upgrade(new) == (None, REQUIRED_REVISION)
    assert await current_revision(new) == REQUIRED_REVISION
    connection = await asyncpg.connect(new.database_url)
    bodies = await connection.fetch("SELECT prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace")
    await connection.close()
    counting = [body for (body,) in bodies if "list_count_changes" in body]
    assert len(counting) == 18
    assert all("INSERT INTO list_count_changes" not in body for body in counting)


async def test_tables_in_another_schema_are_not_hidden_by_new_ones(new: Settings) -> None:
    name = new.database_url.split("?", maxsplit=1)[0].rpartition("/")[2]
    await _execute(
        new,
        "CREATE SCHEMA elsewhere",
        "CREATE TABLE elsewhere.list_count_changes ()",
        f"ALTER DATABASE {name} SET search_path = elsewhere, public",
    )
    with pytest.raises(UnknownSchema, match="elsewhere"):
        await migrate.upgrade(new)
    assert await current_revision(new) is None


async def test_the_schema_is_migrated_by_the_direct_address(new: Settings) -> None:
    """A transaction of minutes would hold a connection of PgBouncer."""
    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    bounced = replace(new, database_url=nowhere, pgbouncer=True, listen_url=new.database_url)
    assert await migrate.upgrade(bounced) == (None, REQUIRED_REVISION)
