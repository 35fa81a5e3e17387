"""Loads N payments of one merchant, spread over the last 365 days, with their deliveries, their postings, and the
counts of the lists and of the overview.

    python -m bench seed 1000000 --database postgresql://…

One merchant holds everything, in the test environment: the worst case for its lists. 90 % succeeded, 7 % failed, 2 %
refunded, 1 % still pending (due in a day); one delivery for each that is final, two postings for each that succeeded.
Every tenth payment is of the same customer, so that a search by number or name finds a million of ten; the others are
of customers with about twenty payments each. The database makes the rows itself, past triggers and foreign keys, with
the plain indexes rebuilt afterwards; the counts are then filled from the rows by one GROUP BY, which is what the
triggers and the worker would have added up. The hash chain is not made: `guichet ledger audit` has nothing to say about
such a database.
"""

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from typing import Final

import asyncpg

from bench.servers import Merchant, prepare
from guichet.clock import DAY, HOUR, SECOND, Instant, SystemClock, earlier
from guichet.domain import posting_rules
from guichet.settings import Settings

SPAN: Final = 365 * DAY
_OPERATORS: Final = ("mtn", "moov", "celtiis_bj", "mtn_ci", "wave_ci", "orange_ml", "togocom_tg")
_FIRST_NAMES: Final = ("Awa", "Kossi", "Afi", "Mariam", "Yao", "Chantal", "Ibrahim", "Fatou", "Sèna", "Moussa")
_LAST_NAMES: Final = ("Adjovi", "Kouassi", "Diallo", "Hounsou", "Traoré", "Koné", "Zinsou", "Mensah", "Dossou", "Ali")
#: The customer of every tenth payment: telephone number, first and last name.
FREQUENT: Final = ("22997000000", "Awa", "Diallo")
_BODY: Final = (
    '{"id":"%s","event":"payment.succeeded","livemode":false,"created_at":"2026-01-01T00:00:00.000000Z","data":'
    '{"reference":"%s","identifier":"%s","external_id":"%s","status":"succeeded","amount":5000,'
    '"fee_amount":87.5,"total_amount":5087.5,"currency":"XOF","description":"Commande","payment_mode":{"id":1,"name":'
    '"MTN MoMo","type":"mobile_money","operator":"mtn","country":"Bénin","country_code":"BJ"},"customer":{"firstname":'
    '"Awa","lastname":"Diallo","email":"awa.diallo@example.com","phone_number":"22997000000"},"payment_url":null,'
    '"metadata":null,"created_at":"2026-01-01T00:00:00.000000Z","updated_at":"2026-01-01T00:00:00.000000Z",'
    '"debited_amount":5088,"failure":null,"payment_link":null}}'
)
_COUNTED: Final = "INSERT INTO list_counts (merchant_id, env, list_name, level, bucket, status, row_count)"
_COUNTS: Final = [
    *(
        f"{_COUNTED} SELECT merchant_id, env, {name}, 'hour', created_at / {HOUR}, {label}, COUNT(*) FROM {table} "
        f"WHERE {counted} GROUP BY 1, 2, 3, 5, 6"
        for table, name in (("payments", "'payments'"), ("webhook_deliveries", "'deliveries/' || event"))
        for label, counted in (("''", "true"), ("status", "status <> 'pending'"))
    ),
    *(
        f"{_COUNTED} SELECT merchant_id, env, list_name, '{level}', {bucket}, status, SUM(row_count) FROM list_counts "
        "WHERE level = 'hour' GROUP BY 1, 2, 3, 5, 6"
        for level, bucket in (("day", f"bucket / {DAY // HOUR}"), ("all", "0 * bucket"))
    ),
]
_FIGURES: Final = f"""
INSERT INTO payment_figures
  (merchant_id, env, hour, operator, currency, status, payment_count, amount, validation_time)
SELECT merchant_id, env, created_at / {HOUR}, operator, currency, status, COUNT(*), SUM(amount),
  SUM(CASE WHEN status = 'succeeded' THEN updated_at - created_at ELSE 0 END)
FROM payments WHERE status <> 'pending' GROUP BY 1, 2, 3, 4, 5, 6
"""
_BALANCE: Final = """
UPDATE wallets SET balance = (SELECT COALESCE(SUM(amount), 0) FROM payments
  WHERE payments.merchant_id = wallets.merchant_id AND payments.env = wallets.env AND status = 'succeeded')
WHERE env = 'test' AND currency = 'XOF'
"""
_PLAIN: Final = [f"lower(replace(replace({part}, 'é', 'e'), 'è', 'e'))" for part in ("firstname", "lastname")]
#: The names that are searched, from each of their words on (`history/customer_names.py`).
_NAMES: Final = [
    f"""
    INSERT INTO customer_names (merchant_id, env, name, payment_id)
    SELECT merchant_id, env, CASE word WHEN 0 THEN first || ' ' || last WHEN 1 THEN last || ' ' || first
      ELSE substr(last, length(last) - 5) || ' ' || first || ' ' || substr(last, 1, length(last) - 7) END, id
    FROM (SELECT merchant_id, env, id, {_PLAIN[0]} AS first, {_PLAIN[1]} AS last FROM payments) AS named
    CROSS JOIN (SELECT 0 AS word UNION ALL SELECT 1 UNION ALL SELECT 2) AS words
    WHERE word < 2 OR last <> '{FREQUENT[2].lower()}'
    """,
    "INSERT INTO customer_names_head (name, payment_id, created_at) "
    "SELECT 'last', id, created_at FROM payments ORDER BY id DESC LIMIT 1",
]


def external_id(number: int) -> str:
    return f"order-{number:010d}"


def customer(number: int, total: int) -> tuple[str, str, str]:
    """Telephone number, first and last name of the customer of a payment, as the database makes them."""
    if number % 10 == 0:
        return FREQUENT
    who = number % max(1, total // 20)
    return f"22961{who:06d}", _FIRST_NAMES[who % 10], f"{_LAST_NAMES[who // 10 % 10]} {who:06d}"


def status_of(number: int) -> str:
    """Of a payment, as the database makes it."""
    part = number * 2_654_435_761 % 100
    return "succeeded" if part < 90 else "failed" if part < 97 else "refunded" if part < 99 else "pending"


async def seed(settings: Settings, count: int) -> Merchant:
    """The merchant that holds them; the database must be empty. Deterministic but for the time."""
    merchant = (await prepare(settings))[0]
    started = time.perf_counter()
    await load(settings, count, merchant.id)
    print(f"  {count:,} payments in {time.perf_counter() - started:.0f} s", flush=True)
    return merchant


async def load(settings: Settings, count: int, merchant_id: int, *, figures: bool = True) -> None:
    """`figures`: whether the schema has the counts of the overview."""
    start = earlier(SystemClock().now(), SPAN)
    counts = [*_COUNTS, *([_FIGURES] if figures else []), _BALANCE, *_NAMES]
    if settings.embedded:
        rows = dict(_rows(count, start, merchant_id, _SQLITE))
        await asyncio.to_thread(_load_sqlite, settings, rows, counts)
    else:
        await _load_postgres(settings, dict(_rows(count, start, merchant_id, _POSTGRES)), counts, 2 * count + 1)


#: What the databases write differently.
_SQLITE: Final = {
    "numbers": "WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {count})",
    "hexadecimal": "printf('%012x', {number})",
    "uuid": "{text}",
}
_POSTGRES: Final = {
    "numbers": "WITH numbers(n) AS (SELECT generate_series(0::bigint, {count} - 1))",
    "hexadecimal": "lpad(to_hex({number}), 12, '0')",
    "uuid": "CAST({text} AS uuid)",
}


def _rows(count: int, start: Instant, merchant_id: int, dialect: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Table and the statement that fills it. `n` counts the payments from 0."""
    numbers = dialect["numbers"].format(count=count)
    at = f"{start} + n * {SPAN // count}"
    milliseconds = dialect["hexadecimal"].format(number=f"({at}) / 1000")
    time_bits = f"substr({milliseconds}, 1, 8) || '-' || substr({milliseconds}, 9)"
    reference = f"{time_bits} || '-4000-8000-' || {_digits('n', 12)}"
    part, amount, who = "n * 2654435761 % 100", "(500 + n % 200 * 100) * 100", f"n % {max(1, count // 20)}"
    frequent, of = "CASE WHEN n % 10 = 0 THEN", [f"'{each}' ELSE" for each in FREQUENT]
    payment = {
        "id": "n + 1",
        "merchant_id": str(merchant_id),
        "env": "'test'",
        "reference": dialect["uuid"].format(text=f"({reference})"),
        "external_id": f"'order-' || {_digits('n', 10)}",
        "status": f"CASE WHEN {part} < 90 THEN 'succeeded' WHEN {part} < 97 THEN 'failed' "
        f"WHEN {part} < 99 THEN 'refunded' ELSE 'pending' END",
        "amount": amount,
        "fee_amount": f"{amount} / 50",  # Two percent: whole francs.
        "total_amount": f"{amount} + {amount} / 50",
        "currency": "'XOF'",
        "description": "'Commande'",
        "operator": _one_of(_OPERATORS, "n"),
        "phone_number": f"{frequent} {of[0]} '22961' || {_digits(who, 6)} END",
        "firstname": f"{frequent} {of[1]} {_one_of(_FIRST_NAMES, who)} END",
        "lastname": f"{frequent} {of[2]} {_one_of(_LAST_NAMES, f'{who} / 10')} || ' ' || {_digits(who, 6)} END",
        "email": "'awa.diallo@example.com'",
        "created_at": at,
        "updated_at": f"{at} + CASE WHEN {part} < 99 THEN {11 * SECOND} ELSE 0 END",
        "provider_account": "'sandbox'",
        "failure_reason": f"CASE WHEN {part} >= 90 AND {part} < 97 THEN 'refused' END",
        "next_poll_at": f"CASE WHEN {part} >= 99 THEN {start + SPAN + DAY} END",
        "poll_count": "0",
    }
    yield "payments", f"{_into('payments', payment)} {numbers} SELECT {', '.join(payment.values())} FROM numbers"
    yield "events", _events(dialect)
    yield "webhook_deliveries", _deliveries()
    yield "postings", _postings()


def _events(dialect: dict[str, str]) -> str:
    reference = f"(substr(CAST(reference AS TEXT), 1, 24) || {_digits('id', 12)})"
    pieces = _BODY.split("%s")
    body = [reference, "CAST(reference AS TEXT)", _digits("id", 10), "external_id"]
    event = {
        **{name: name for name in ("id", "merchant_id", "env")},
        "reference": dialect["uuid"].format(text=reference),
        "payment_id": "id",
        "event": "CASE status WHEN 'failed' THEN 'payment.failed' ELSE 'payment.succeeded' END",
        "body": " || ".join(f"'{piece}' || {value}" for piece, value in zip(pieces, body, strict=False))
        + f" || '{pieces[-1]}'",
        "created_at": "updated_at",
    }
    final = "FROM payments WHERE status <> 'pending' ORDER BY id"
    return f"{_into('events', event)} SELECT {', '.join(event.values())} {final}"


def _deliveries() -> str:
    delivery = {
        **{name: name for name in ("id", "merchant_id", "env", "reference", "payment_id", "event", "created_at")},
        "target": "'account'",
        "url": "'https://shop.example/hook'",
        "destination": "'shop.example:443'",
        "status": "'success'",
        "attempts": "1",
        "response_code": "200",
        "delivered_at": f"created_at + {SECOND}",
        "last_attempt_at": f"created_at + {SECOND}",
    }
    values = ", ".join(delivery.values())
    return f"{_into('webhook_deliveries', delivery)} SELECT {values} FROM events ORDER BY id"


def _postings() -> str:
    """Of the payments that succeeded, as `domain.posting_rules.collection` makes them."""
    posting = {
        "id": "2 * id + leg",
        **{name: name for name in ("merchant_id", "env", "currency")},
        "cause": f"'{posting_rules.COLLECTED}'",
        "subject_id": "id",
        "leg": "CASE leg WHEN 0 THEN 'amount' ELSE 'fee' END",
        "source": "'float:' || provider_account || '::' || currency",
        "destination": f"CASE leg WHEN 0 THEN '{posting_rules.WALLET}' ELSE '{posting_rules.FEES}' END",
        "amount": "CASE leg WHEN 0 THEN amount ELSE fee_amount END",
        "created_at": "updated_at",
    }
    return (
        f"{_into('postings', posting)} SELECT {', '.join(posting.values())} FROM payments "
        "CROSS JOIN (SELECT 0 AS leg UNION ALL SELECT 1) AS legs WHERE status = 'succeeded'"
    )


def _into(table: str, values: dict[str, str]) -> str:
    return f"INSERT INTO {table} ({', '.join(values)})"


def _digits(number: str, width: int) -> str:
    """The number with zeros in front."""
    return f"substr(CAST({10**width} + {number} AS TEXT), 2)"


def _one_of(texts: tuple[str, ...], number: str) -> str:
    choices = " ".join(f"WHEN {place} THEN '{text}'" for place, text in enumerate(texts))
    return f"CASE ({number}) % {len(texts)} {choices} END"


async def _load_postgres(settings: Settings, rows: dict[str, str], counts: list[str], next_id: int) -> None:
    connection = await asyncpg.connect(settings.database_url)
    try:
        await connection.execute("SET session_replication_role = replica; SET maintenance_work_mem = '512MB'")
        for table, filled in rows.items():
            indexes = await connection.fetch(
                "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = $1 AND schemaname = current_schema() "
                "AND indexname NOT IN (SELECT conname FROM pg_constraint)",
                table,
            )
            for name, _ in indexes:
                await connection.execute(f"DROP INDEX {name}")
            await connection.execute(filled, timeout=7200)
            for _, definition in indexes:
                await connection.execute(definition, timeout=3600)
            await connection.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {next_id})")
        vacuum = [f"VACUUM ANALYZE {table}" for table in rows]
        for statement in (*counts, *vacuum, "ANALYZE"):
            await connection.execute(statement, timeout=3600)
    finally:
        await connection.close()


def _load_sqlite(settings: Settings, rows: dict[str, str], counts: list[str]) -> None:
    connection = sqlite3.connect(settings.sqlite_path, isolation_level=None)
    # A database that is lost here is loaded again: no journal, which would become as large as the database.
    for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -400000", "ignore_check_constraints = 1"):
        connection.execute(f"PRAGMA {pragma}")
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    connection.execute("BEGIN")
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for table, filled in rows.items():
        indexes = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL", (table,)
        ).fetchall()
        for name, _ in indexes:
            connection.execute(f"DROP INDEX {name}")
        connection.execute(filled)
        for _, definition in indexes:
            connection.execute(definition)
    for statement in (*counts, *(sql for _, sql in triggers)):
        connection.execute(statement)
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA analysis_limit = 10000")
    connection.execute("ANALYZE")
    connection.close()
