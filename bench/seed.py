"""Loads N payments of one merchant, spread over the last 365 days, with their deliveries and the counts of the lists.

    python -m bench seed 1000000 --database postgresql://…

One merchant holds everything, in the test environment: the worst case for its lists. 90 % succeeded, 7 % failed, 2 %
refunded, 1 % still pending (due in a day); one delivery for each that is final. Rows are copied past triggers and
foreign keys, with the plain indexes rebuilt afterwards; the counts are then filled from the rows themselves by one
GROUP BY, which is what the triggers and the worker would have added up. Postings are not made: `guichet ledger audit`
has nothing to say about such a database.
"""

import asyncio
import random
import sqlite3
import time
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

import asyncpg

from bench.servers import Merchant, prepare
from guichet.clock import DAY, HOUR, SECOND, Instant, SystemClock, earlier, later
from guichet.db.tables import payments, webhook_deliveries
from guichet.settings import Settings

SPAN: Final = 365 * DAY
_CHUNK: Final = 50_000
_OPERATORS: Final = ("mtn", "moov", "celtiis_bj", "mtn_ci", "wave_ci", "orange_ml", "togocom_tg")
_TABLES: Final = {"payments": payments, "webhook_deliveries": webhook_deliveries}
_NAMES: Final = {name: [column.name for column in table.c] for name, table in _TABLES.items()}
_COUNT: Final = """
INSERT INTO list_counts (merchant_id, env, list_name, level, bucket, status, row_count)
SELECT merchant_id, env, {name}, '{level}', created_at / {width}, {label}, COUNT(*) FROM {table} GROUP BY 1, 2, 3, 5, 6
"""
_COUNTS: Final = [
    _COUNT.format(table=table, name=name, level=level, width=width, label=label)
    for table, name, label in (
        ("payments", "'payments'", "status"),
        ("webhook_deliveries", "'webhook_deliveries'", "''"),
        ("webhook_deliveries", "'deliveries/' || event", "status"),
    )
    for level, width in (("hour", HOUR), ("day", DAY), ("all", 2**62))
]
_BALANCE: Final = """
UPDATE wallets SET balance = (SELECT COALESCE(SUM(amount), 0) FROM payments
  WHERE payments.merchant_id = wallets.merchant_id AND payments.env = wallets.env AND status = 'succeeded')
WHERE env = 'test' AND currency = 'XOF'
"""
_BODY: Final = (
    '{"id":"%s","event":"payment.succeeded","livemode":false,"created_at":"2026-01-01T00:00:00.000000Z","data":'
    '{"reference":"%s","identifier":"%010d","external_id":"order-%010d","status":"succeeded","amount":5000,'
    '"fee_amount":87.5,"total_amount":5087.5,"currency":"XOF","description":"Commande","payment_mode":{"id":1,"name":'
    '"MTN MoMo","type":"mobile_money","operator":"mtn","country":"Bénin","country_code":"BJ"},"customer":{"firstname":'
    '"Awa","lastname":"Diallo","email":"awa.diallo@example.com","phone_number":"22997000000"},"payment_url":null,'
    '"metadata":null,"created_at":"2026-01-01T00:00:00.000000Z","updated_at":"2026-01-01T00:00:00.000000Z",'
    '"debited_amount":5088,"failure":null,"payment_link":null}}'
)


def external_id(number: int) -> str:
    return f"order-{number:010d}"


async def seed(settings: Settings, count: int) -> Merchant:
    """The merchant that holds them; the database must be empty. Deterministic but for the time."""
    merchant = (await prepare(settings))[0]
    started = time.perf_counter()
    load = _load_sqlite if settings.embedded else _load_postgres
    await load(settings, count, merchant.id)
    print(f"  {count:,} payments in {time.perf_counter() - started:.0f} s", flush=True)
    return merchant


def _status(number: int) -> str:
    part = number * 2_654_435_761 % 100
    return "succeeded" if part < 90 else "failed" if part < 97 else "refunded" if part < 99 else "pending"


def _references(kind: int, first: int, count: int, total: int, start: Instant) -> list[UUID]:
    """Rising with time, as Guichet makes them."""
    chance = random.Random(kind * 2**40 + first)
    times = (_made_at(number, total, start) // 1000 for number in range(first, first + count))
    return [UUID(int=time << 80 | chance.getrandbits(80), version=4) for time in times]


def _made_at(number: int, total: int, start: Instant) -> Instant:
    return later(start, number * SPAN // total)


def _payments(first: int, count: int, total: int, start: Instant, merchant_id: int) -> Iterator[tuple[Any, ...]]:
    for offset, reference in enumerate(_references(1, first, count, total, start)):
        number = first + offset
        status = _status(number)
        amount = (500 + number % 200 * 100) * 100
        fee = amount * 175 // 10_000
        at = _made_at(number, total, start)
        settled = at if status == "pending" else at + 11 * SECOND
        operator = _OPERATORS[number % len(_OPERATORS)]
        # In the order of the table's columns.
        yield (
            *(number + 1, merchant_id, "test", reference, external_id(number), status, amount, fee, amount + fee),
            *("XOF", "Commande", operator, "22997000000", "Awa", "Diallo", "awa.diallo@example.com", None, None),
            *(None, None, None, None, None, at, settled, "sandbox", None, None, None),
            "refused" if status == "failed" else None,
            start + SPAN + DAY if status == "pending" else None,
            *(0, None, None, None, None, None, 0, 0, None, False, None),
        )


def _deliveries(first: int, count: int, total: int, start: Instant, merchant_id: int) -> Iterator[tuple[Any, ...]]:
    references = zip(*(_references(kind, first, count, total, start) for kind in (1, 2)), strict=True)
    for offset, (payment, reference) in enumerate(references):
        number = first + offset
        if (status := _status(number)) == "pending":
            continue
        at = _made_at(number, total, start) + 11 * SECOND
        event = "payment.failed" if status == "failed" else "payment.succeeded"
        body = _BODY % (reference, payment, number + 1, number)
        yield (
            *(number + 1, merchant_id, "test", reference, number + 1, event, "account"),
            *("https://shop.example/hook", "shop.example:443", body, "success", 1, 200, at, at + SECOND, at + SECOND),
            *(None, None),
        )


_ROWS: Final = {"payments": _payments, "webhook_deliveries": _deliveries}


async def _load_postgres(settings: Settings, count: int, merchant_id: int) -> None:
    connection = await asyncpg.connect(settings.database_url)
    start = earlier(SystemClock().now(), SPAN)
    try:
        await connection.execute("SET session_replication_role = replica; SET maintenance_work_mem = '512MB'")
        for table, rows in _ROWS.items():
            indexes = await connection.fetch(
                "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = $1 AND schemaname = current_schema() "
                "AND indexname NOT IN (SELECT conname FROM pg_constraint)",
                table,
            )
            for name, _ in indexes:
                await connection.execute(f"DROP INDEX {name}")
            for first in range(0, count, _CHUNK):
                chunk = list(rows(first, min(_CHUNK, count - first), count, start, merchant_id))
                await connection.copy_records_to_table(table, records=chunk, columns=_NAMES[table])
            for _, definition in indexes:
                await connection.execute(definition, timeout=3600)
            await connection.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {count + 1})")
        for statement in (
            *_COUNTS,
            _BALANCE,
            "VACUUM ANALYZE payments",
            "VACUUM ANALYZE webhook_deliveries",
            "ANALYZE list_counts",
        ):
            await connection.execute(statement, timeout=3600)
    finally:
        await connection.close()


async def _load_sqlite(settings: Settings, count: int, merchant_id: int) -> None:
    await asyncio.to_thread(_fill_sqlite, settings, count, merchant_id)


def _fill_sqlite(settings: Settings, count: int, merchant_id: int) -> None:
    connection = sqlite3.connect(settings.sqlite_path, isolation_level=None)
    sqlite3.register_adapter(UUID, str)
    start = earlier(SystemClock().now(), SPAN)
    connection.execute("PRAGMA synchronous = OFF")  # A database that is lost here is loaded again.
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    connection.execute("BEGIN")
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for table, rows in _ROWS.items():
        names = _NAMES[table]
        insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        connection.executemany(insert, rows(0, count, count, start, merchant_id))
    for statement in (*_COUNTS, _BALANCE, *(sql for _, sql in triggers)):
        connection.execute(statement)
    connection.execute("COMMIT")
    connection.execute("ANALYZE")
    connection.close()
