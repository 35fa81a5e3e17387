"""The schema: migrations make exactly the tables, and a row has the fields of its class."""

import asyncio
import re
import sqlite3
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Table, create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from guichet.bootstrap import database
from guichet.db import migrate
from guichet.db import tables as t
from guichet.db.schema import REQUIRED_REVISION, current_revision
from guichet.domain.catalogue import ModeOverride
from guichet.domain.events import Delivery, Endpoint
from guichet.domain.merchants import ApiKey, Merchant
from guichet.domain.payment_links import PaymentLink
from guichet.domain.payments import Payment, Refund
from guichet.domain.posting_rules import Wallet
from guichet.incidents.repository import Incident
from guichet.settings import Settings

CLASSES = {
    t.merchants: Merchant,
    t.api_keys: ApiKey,
    t.webhook_endpoints: Endpoint,
    t.payment_links: PaymentLink,
    t.payments: Payment,
    t.refunds: Refund,
    t.webhook_deliveries: Delivery,
    t.wallets: Wallet,
    t.incidents: Incident,
}


def _names(described: Any) -> list[str]:
    return list(getattr(described, "__struct_fields__", None) or (field.name for field in fields(described)))


#: Over expressions, or on one of the databases only: the definitions that the databases state are compared below.
_NOT_COMPARABLE = (
    "ix_payments_first_name",
    "ix_payments_last_name",
    "ix_list_count_changes_list_name",
    "uq_list_count_changes",
)


def _is_comparable(item: Any, name: str | None, kind: str, *_: Any) -> bool:
    return not (kind == "index" and name in _NOT_COMPARABLE)


def _differences(connection: Connection) -> list[Any]:
    options = {"compare_type": True, "include_object": _is_comparable}
    found: list[Any] = compare_metadata(MigrationContext.configure(connection, opts=options), t.metadata)
    return found


async def _in_connection(settings: Settings, work: Any) -> Any:
    if settings.embedded:
        engine = create_engine(settings.database_url, poolclass=NullPool)
        try:
            with engine.begin() as connection:
                return work(connection)
        finally:
            engine.dispose()
    url = settings.database_url.replace("postgresql://", "postgresql+asyncpg://", 1)
    asynchronous = create_async_engine(url, poolclass=NullPool)
    try:
        async with asynchronous.begin() as opened:
            return await opened.run_sync(work)
    finally:
        await asynchronous.dispose()


async def test_migrations_create_exactly_the_tables(settings: Settings) -> None:
    assert await _in_connection(settings, _differences) == []


def test_the_required_revision_is_the_last_migration() -> None:
    assert ScriptDirectory.from_config(migrate.alembic_config()).get_current_head() == REQUIRED_REVISION


async def test_migrating_twice_is_harmless(settings: Settings) -> None:
    assert await migrate.upgrade(settings) == (REQUIRED_REVISION, REQUIRED_REVISION)
    assert await current_revision(settings) == REQUIRED_REVISION


async def test_two_processes_may_migrate_at_once(postgres_server: str, base_settings: Settings) -> None:
    connection = await asyncpg.connect(postgres_server)
    await connection.execute("CREATE DATABASE migrated_twice")
    await connection.close()
    url = postgres_server.replace("/postgres?", "/migrated_twice?")
    fresh = replace(base_settings, database_url=url)
    both = await asyncio.gather(*(migrate.upgrade(fresh) for _ in range(2)))
    assert sorted(before or "" for before, _ in both) == ["", REQUIRED_REVISION]


def test_migrated_checks_equal_the_tables_on_sqlite(sqlite_template: Path, tmp_path: Path) -> None:
    made = tmp_path / "made.db"
    engine = create_engine(f"sqlite:///{made}", poolclass=NullPool)
    t.metadata.create_all(engine)
    engine.dispose()
    assert _sqlite_schema(sqlite_template) == _sqlite_schema(made)


def _sqlite_schema(path: Path) -> dict[str, list[str]]:
    """Each object's definition, as a sorted list of its parts: their order within a table says nothing."""
    connection = sqlite3.connect(path)
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'index') AND sql IS NOT NULL "
        "AND name NOT LIKE 'sqlite%' AND name <> 'alembic_version'"
    ).fetchall()
    connection.close()
    return {name: sorted(_parts(re.sub(r"\s+", " ", sql))) for name, sql in rows}


def _parts(definition: str) -> list[str]:
    """What stands before the outer parentheses, each item inside them, and what follows."""
    parts, depth = [""], 0
    for character in definition:
        depth += {"(": 1, ")": -1}.get(character, 0)
        outer = (character, depth) in (("(", 1), (")", 0))
        if outer or (character == "," and depth == 1):
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


async def test_migrated_checks_equal_the_tables_on_postgresql(postgres_server: str, postgres_template: str) -> None:
    connection = await asyncpg.connect(postgres_server)
    await connection.execute("CREATE DATABASE made_from_tables")
    await connection.close()
    made = postgres_server.replace("/postgres?", "/made_from_tables?")
    engine = create_async_engine(made.replace("postgresql://", "postgresql+asyncpg://", 1), poolclass=NullPool)
    async with engine.begin() as opened:
        await opened.run_sync(t.metadata.create_all)
    await engine.dispose()
    migrated = postgres_server.replace("/postgres?", f"/{postgres_template}?")
    assert await _postgres_schema(migrated) == await _postgres_schema(made)


async def _postgres_schema(url: str) -> set[tuple[str, str, str]]:
    connection = await asyncpg.connect(url)
    rows = await connection.fetch(
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = 'public'::regnamespace "
        "UNION SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' "
        "UNION SELECT table_name, column_name, concat_ws(' ', ordinal_position, data_type, "
        "character_maximum_length, is_nullable, is_identity, column_default) "
        "FROM information_schema.columns WHERE table_schema = 'public'"
    )
    await connection.close()
    return {tuple(row) for row in rows if row[0] != "alembic_version"}


@pytest.mark.parametrize(("table", "described"), CLASSES.items(), ids=lambda x: getattr(x, "name", ""))
def test_row_columns_are_the_fields_of_its_class(table: Table, described: type) -> None:
    assert [column.name for column in table.columns] == _names(described)


def test_overrides_are_selected_in_the_field_order_of_their_class() -> None:
    columns = [column.name for column in t.payment_mode_overrides.columns if column.name != "id"]
    assert columns == _names(ModeOverride)


async def test_the_embedded_database_is_durable_and_strict(sqlite_settings: Settings) -> None:
    db = database(sqlite_settings)
    await db.open()
    async with db.transaction() as tx:
        found = {
            name: (await tx.one(text(f"PRAGMA {name}")) or [None])[0]
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    await db.close()
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
