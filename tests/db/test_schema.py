"""The schema: migrations make exactly the tables, rows are their classes, a constraint's name reaches us."""

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Table, create_engine, insert, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from guichet.bootstrap import create_merchant, database, service
from guichet.db import migrate
from guichet.db import tables as t
from guichet.db.engine import Database
from guichet.db.errors import ConstraintViolated
from guichet.db.schema_version import REQUIRED_REVISION, current_revision
from guichet.domain.catalogue import ModeOverride
from guichet.domain.events import Delivery, Endpoint
from guichet.domain.merchants import ApiKey, Merchant
from guichet.domain.payment_links import PaymentLink
from guichet.domain.payments import Payment, Refund
from guichet.domain.posting_rules import Wallet
from guichet.payments.incidents import Incident
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


def _differences(connection: Connection) -> list[Any]:
    options = {"compare_type": True}
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


async def test_the_migrations_make_the_tables(settings: Settings) -> None:
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


def test_autogenerate_does_not_look_at_checks_so_we_do_on_sqlite(sqlite_template: Path, tmp_path: Path) -> None:
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
    return {name: sorted(re.sub(r"\s+", " ", part).strip(" ,)") for part in sql.split("\n")) for name, sql in rows}


async def test_autogenerate_does_not_look_at_checks_so_we_do_on_postgresql(
    postgres_server: str, postgres_template: str
) -> None:
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
def test_a_row_is_its_class(table: Table, described: type) -> None:
    assert [column.name for column in table.columns] == _names(described)


def test_an_override_is_selected_in_the_order_of_its_class() -> None:
    columns = [column.name for column in t.payment_mode_overrides.columns if column.name != "id"]
    assert columns == [field.name for field in fields(ModeOverride)]


# --- constraint → name ------------------------------------------------------------------------------------------------


@pytest.fixture
async def db(settings: Settings) -> AsyncIterator[Database]:
    opened = database(settings)
    await opened.open()
    yield opened
    await opened.close()


PAYMENT = {
    "merchant_id": 1,
    "env": "test",
    "reference": "0d4f4a52-6f7e-4a5b-9f6d-2f1f0f1a8f10",
    "status": "pending",
    "amount": 500,
    "fee_amount": 5,
    "total_amount": 505,
    "currency": "XOF",
    "description": "d",
    "operator": "mtn",
    "created_at": 1,
    "updated_at": 1,
    "next_poll_at": 1,
    "poll_count": 0,
}
REFUND = {
    "merchant_id": 1,
    "env": "test",
    "reference": PAYMENT["reference"],
    "payment_id": 1,
    "payment_reference": PAYMENT["reference"],
    "amount": 505,
    "currency": "XOF",
    "status": "pending",
    "reason": "r",
    "created_at": 1,
    "held": True,
    "next_poll_at": 1,
    "poll_count": 0,
}
LINK = {
    "merchant_id": 1,
    "token": "t",
    "type": "permanent",
    "amount": 1,
    "currency": "XOF",
    "description": "d",
    "reserved_uses": 0,
    "completed_uses": 0,
    "created_at": 1,
}
DELIVERY = {
    "merchant_id": 1,
    "env": "test",
    "reference": PAYMENT["reference"],
    "event": "payment.succeeded",
    "target": "account",
    "url": "https://a.test/",
    "destination": "a.test:443",
    "body": "{}",
    "status": "pending",
    "attempts": 0,
    "created_at": 1,
    "next_attempt_at": 1,
}
POSTING = {
    "merchant_id": 1,
    "env": "test",
    "currency": "XOF",
    "cause": "payment.succeeded",
    "subject_id": 1,
    "leg": "amount",
    "source": "operator:mtn",
    "destination": "wallet",
    "amount": 1,
    "created_at": 1,
}
ENTRY = {
    "merchant_id": 1,
    "env": "test",
    "currency": "XOF",
    "amount": 1,
    "subject_id": 1,
    "suspended": False,
    "created_at": 1,
}
KEY = {"merchant_id": 1, "env": "test", "hash": "h", "preview": "p", "created_at": 1}
WALLET = {"merchant_id": 1, "env": "test", "currency": "XAF", "status": "Actif", "balance": 0, "updated_at": 1}
ENDPOINT = {"merchant_id": 1, "env": "test", "secret": "s", "updated_at": 1}
MERCHANT = {"name": "M", "status": "active", "currency": "XOF", "created_at": 1}
INCIDENT = {
    "merchant_id": 1,
    "env": "live",
    "kind": "stuck",
    "subject_type": "payment",
    "reference": PAYMENT["reference"],
    "detail": "d",
    "occurrences": 1,
    "opened_at": 1,
    "last_seen_at": 1,
}
LINK_OF_CHAIN = {
    "first_posting_id": 1,
    "last_posting_id": 2,
    "posting_ids": "1,2",
    "row_hashes": "m",
    "digest": "d",
    "created_at": 1,
}
COUNT = {
    "merchant_id": 1,
    "env": "test",
    "list_name": "payments",
    "level": "day",
    "bucket": 1,
    "status": "",
    "row_count": 1,
}
OVERRIDE = {"operator": "mtn", "active": True}
UUID = "11111111-2222-4333-8444-555555555555"

#: (table, a good row or none, the faulty row's difference from a good one, the constraint's name)
FAULTS: list[tuple[Table, dict[str, Any], dict[str, Any] | None, dict[str, Any], str]] = [
    (t.merchants, MERCHANT, None, {"status": "closed"}, "ck_merchants_status"),
    (t.api_keys, KEY, {}, {}, "uq_api_keys_hash"),
    (t.api_keys, KEY, None, {"env": "prod"}, "ck_api_keys_env"),
    (t.webhook_endpoints, ENDPOINT, None, {}, "pk_webhook_endpoints"),
    (t.webhook_endpoints, ENDPOINT, None, {"env": "prod"}, "ck_webhook_endpoints_env"),
    (t.payment_mode_overrides, OVERRIDE, {}, {}, "uq_payment_mode_overrides_all_merchants"),
    (
        t.payment_mode_overrides,
        OVERRIDE,
        {"merchant_id": 1},
        {"merchant_id": 1},
        "uq_payment_mode_overrides_merchant_id",
    ),
    (t.payment_mode_overrides, OVERRIDE, None, {"fee_percent": -1}, "ck_payment_mode_overrides_fee_percent"),
    (t.payment_mode_overrides, OVERRIDE, None, {"fee_fixed": -1}, "ck_payment_mode_overrides_fee_fixed"),
    (t.payment_links, LINK, {}, {}, "uq_payment_links_token"),
    (t.payment_links, LINK, None, {"type": "limite"}, "ck_payment_links_type"),
    (t.payment_links, LINK, None, {"amount": 0}, "ck_payment_links_amount"),
    (t.payment_links, LINK, None, {"max_uses": 0}, "ck_payment_links_max_uses"),
    (t.payment_links, LINK, None, {"max_uses": 2, "reserved_uses": 3}, "ck_payment_links_uses"),
    (t.payment_links, LINK, None, {"reserved_uses": 1, "completed_uses": 2}, "ck_payment_links_uses"),
    (t.payments, PAYMENT, {}, {}, "uq_payments_reference"),
    (t.payments, PAYMENT, {"external_id": "e"}, {"external_id": "e", "reference": UUID}, "uq_payments_external_id"),
    (
        t.payments,
        PAYMENT,
        {"checkout_token": "c"},
        {"checkout_token": "c", "reference": UUID},
        "uq_payments_checkout_token",
    ),
    (t.payments, PAYMENT, None, {"env": "prod"}, "ck_payments_env"),
    (t.payments, PAYMENT, None, {"status": "paid", "next_poll_at": None}, "ck_payments_status"),
    (t.payments, PAYMENT, None, {"amount": 0, "total_amount": 5}, "ck_payments_amount"),
    (t.payments, PAYMENT, None, {"fee_amount": -1, "total_amount": 499}, "ck_payments_amount"),
    (t.payments, PAYMENT, None, {"total_amount": 506}, "ck_payments_total"),
    (t.payments, PAYMENT, None, {"next_poll_at": None}, "ck_payments_next_poll_at"),
    (t.payments, PAYMENT, None, {"status": "failed"}, "ck_payments_next_poll_at"),
    (t.refunds, REFUND, {}, {"reference": UUID}, "uq_refunds_payment_id"),
    (t.refunds, REFUND, {}, {"payment_id": 2}, "uq_refunds_reference"),
    (t.refunds, REFUND, None, {"env": "prod"}, "ck_refunds_env"),
    (t.refunds, REFUND, None, {"status": "paid", "processed_at": 1, "next_poll_at": None}, "ck_refunds_status"),
    (t.refunds, REFUND, None, {"amount": 0}, "ck_refunds_amount"),
    (t.refunds, REFUND, None, {"processed_at": 1}, "ck_refunds_processed_at"),
    (t.refunds, REFUND, None, {"next_poll_at": None}, "ck_refunds_next_poll_at"),
    (t.webhook_deliveries, DELIVERY, {}, {}, "uq_webhook_deliveries_reference"),
    (t.webhook_deliveries, DELIVERY, None, {"env": "prod"}, "ck_webhook_deliveries_env"),
    (t.webhook_deliveries, DELIVERY, None, {"status": "sent", "next_attempt_at": None}, "ck_webhook_deliveries_status"),
    (t.webhook_deliveries, DELIVERY, None, {"target": "other"}, "ck_webhook_deliveries_target"),
    (t.webhook_deliveries, DELIVERY, None, {"attempts": 6}, "ck_webhook_deliveries_attempts"),
    (t.webhook_deliveries, DELIVERY, None, {"delivered_at": 1}, "ck_webhook_deliveries_delivered_at"),
    (t.webhook_deliveries, DELIVERY, None, {"next_attempt_at": None}, "ck_webhook_deliveries_next_attempt_at"),
    (t.postings, POSTING, {}, {"amount": 2}, "uq_postings_cause"),
    (t.postings, POSTING, None, {"env": "prod"}, "ck_postings_env"),
    (t.postings, POSTING, None, {"amount": 0}, "ck_postings_amount"),
    (t.postings, POSTING, None, {"source": "wallet"}, "ck_postings_accounts"),
    (t.wallets, WALLET, {}, {}, "pk_wallets"),
    (t.wallets, WALLET, None, {"env": "prod"}, "ck_wallets_env"),
    (t.wallets, WALLET, None, {"status": "Ouvert"}, "ck_wallets_status"),
    (t.wallet_entries, ENTRY, None, {"env": "prod"}, "ck_wallet_entries_env"),
    (t.incidents, INCIDENT, {}, {}, "uq_incidents_reference"),
    (t.incidents, INCIDENT, None, {"env": "prod"}, "ck_incidents_env"),
    (t.incidents, INCIDENT, None, {"subject_type": "link"}, "ck_incidents_subject_type"),
    (t.ledger_hash_chain, LINK_OF_CHAIN, {}, {}, "uq_ledger_hash_chain_first_posting_id"),
    (t.ledger_hash_chain, LINK_OF_CHAIN, None, {"last_posting_id": 0}, "ck_ledger_hash_chain_id_range"),
    (t.list_counts, COUNT, {}, {}, "pk_list_counts"),
    (t.list_counts, COUNT, None, {"level": "week"}, "ck_list_counts_level"),
]


def test_no_named_constraint_is_forgotten() -> None:
    named = {
        str(getattr(each, "name", None))
        for table in t.metadata.tables.values()
        for each in (*table.constraints, *(index for index in table.indexes if index.unique))
    }
    never_collide = {f"pk_{name}" for name in t.metadata.tables} - {
        "pk_wallets",
        "pk_webhook_endpoints",
        "pk_list_counts",
    }
    foreign = {name for name in named if name.startswith("fk_")}
    assert {fault[-1] for fault in FAULTS} == named - never_collide - foreign


async def test_a_constraint_says_its_name(db: Database, settings: Settings) -> None:
    async with service(settings) as opened:
        await create_merchant(opened.ctx, "M")
    for reference in (PAYMENT["reference"], UUID):
        await db.write(insert(t.payments).values({**PAYMENT, "env": "live", "reference": reference}))
    said = []
    for table, good, first, difference, _ in FAULTS:
        with pytest.raises(ConstraintViolated) as violated:  # noqa: PT012 - a good row before the faulty one
            async with db.transaction() as tx:
                if first is not None:
                    await tx.write(insert(table).values({**good, **first}))
                await tx.write(insert(table).values({**good, **difference}))
        said.append((table.name, difference, violated.value.name))
    assert said == [(table.name, difference, name) for table, _, _, difference, name in FAULTS]


async def test_a_row_of_nobody_is_refused(db: Database, settings: Settings) -> None:
    """PostgreSQL names the foreign key; SQLite only says that there was one."""
    with pytest.raises(ConstraintViolated) as violated:
        await db.write(insert(t.payments).values({**PAYMENT, "reference": str(uuid4())}))
    expected = "FOREIGN KEY constraint failed" if settings.embedded else "fk_payments_merchant_id"
    assert violated.value.name == expected


async def test_a_missing_value_is_refused(db: Database) -> None:
    with pytest.raises(ConstraintViolated):
        await db.write(insert(t.merchants).values({"name": "M", "status": "active", "created_at": 1}))


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
