"""Claims by several workers, plans of the hot statements, the short memory, the vault."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from cryptography.fernet import Fernet
from sqlalchemy import Executable, insert, select, text, update
from sqlalchemy.dialects.postgresql.asyncpg import dialect as postgresql_dialect
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect

from guichet.bootstrap import create_merchant, database, service
from guichet.clock import SECOND
from guichet.settings import Settings
from guichet.storage import deliveries, ledger, links, merchants, payments, refunds
from guichet.storage import tables as t
from guichet.storage.cached import ShortLived
from guichet.storage.engine import Compiled, Database, given
from guichet.storage.payments import PaymentFilter
from guichet.storage.vault import UnreadableSecret, Vault
from tests.house import ManualClock

ROWS = 60
NOW = 1_000 * SECOND
UNTIL = NOW + 30 * SECOND


@pytest.fixture
async def db(settings: Settings) -> AsyncIterator[Database]:
    async with service(settings) as opened:
        await create_merchant(opened.core, "M")
        yield opened.core.db


@pytest.fixture
async def workers(settings: Settings, db: Database) -> AsyncIterator[list[Database]]:
    """Several processes' databases: on SQLite there is only one process."""
    opened = [database(settings) for _ in range(1 if settings.embedded else 4)]
    for each in opened:
        await each.open()
    yield opened * (4 // len(opened))
    for each in opened:
        await each.close()


PAYMENT: dict[str, Any] = {
    "merchant_id": 1,
    "env": "test",
    "status": "pending",
    "amount": 500,
    "fee_amount": 5,
    "total_amount": 505,
    "currency": "XOF",
    "description": "d",
    "operator": "mtn",
    "connection": "sandbox",
    "created_at": 1,
    "updated_at": 1,
    "due_at": 1,
    "asked": 0,
}
REFUND: dict[str, Any] = {
    "merchant_id": 1,
    "env": "test",
    "payment_reference": str(uuid4()),
    "amount": 505,
    "currency": "XOF",
    "status": "pending",
    "reason": "r",
    "created_at": 1,
    "held": True,
    "due_at": 1,
    "asked": 0,
}
DELIVERY: dict[str, Any] = {
    "merchant_id": 1,
    "env": "test",
    "event": "payment.succeeded",
    "target": "account",
    "url": "https://a.test/",
    "destination": "a.test:443",
    "body": "{}",
    "status": "pending",
    "attempts": 0,
    "created_at": 1,
    "due_at": 1,
}


async def fill(db: Database, rows: int = ROWS) -> None:
    async with db.transaction() as tx:
        for number in range(1, rows + 1):
            row = {"reference": str(uuid4()), "due_at": number}
            await tx.write(insert(t.payments).values({**PAYMENT, **row, "external_id": f"e{number}"}))
            await tx.write(insert(t.refunds).values({**REFUND, **row, "payment_id": number}))
            await tx.write(insert(t.deliveries).values({**DELIVERY, **row}))


CLAIMS = {
    "payments": lambda db, most: payments.claim_due(db, NOW, UNTIL, most),
    "refunds": lambda db, most: refunds.claim_due(db, NOW, UNTIL, most),
    "deliveries": lambda db, most: deliveries.claim_due(db, NOW, UNTIL, most, ["elsewhere:443"]),
}


@pytest.mark.parametrize("queue", CLAIMS)
async def test_no_row_is_claimed_twice(db: Database, workers: list[Database], queue: str) -> None:
    await fill(db)
    claimed: Counter[int] = Counter()

    async def work(mine: Database) -> None:
        while rows := await CLAIMS[queue](mine, 7):
            assert len(rows) <= 7
            claimed.update(row.id for row in rows)

    await asyncio.gather(*(work(each) for each in workers))
    for each in workers:  # What was locked by another at the last look is not lost.
        claimed.update(row.id for row in await CLAIMS[queue](each, ROWS))
    assert set(claimed.values()) == {1}
    assert len(claimed) == ROWS


@pytest.mark.parametrize("queue", CLAIMS)
async def test_a_claim_takes_the_oldest_and_never_more_than_asked(db: Database, queue: str) -> None:
    """On fresh tables, whose statistics say nothing, as after `guichet migrate`."""
    await fill(db)
    assert sorted(row.due_at and row.id for row in await CLAIMS[queue](db, 5)) == [1, 2, 3, 4, 5]
    assert sorted(row.id for row in await CLAIMS[queue](db, 5)) == [6, 7, 8, 9, 10]


async def test_a_claim_comes_back_when_its_lease_runs_out(db: Database) -> None:
    await fill(db, 3)
    for claim in CLAIMS.values():
        assert len(await claim(db, 9)) == 3
        assert await claim(db, 9) == []
    assert len(await payments.claim_due(db, UNTIL, UNTIL + 1, 9)) == 3
    assert len(await refunds.claim_due(db, UNTIL, UNTIL + 1, 9)) == 3
    again = await deliveries.claim_due(db, UNTIL, UNTIL + 1, 9, [])
    assert [row.attempts for row in again] == [2, 2, 2]


async def test_a_lease_has_one_holder(db: Database, workers: list[Database]) -> None:
    await fill(db, 1)
    for leasing in (payments.lease, refunds.lease):
        held = await asyncio.gather(*(leasing(each, 1, NOW, UNTIL) for each in workers for _ in range(5)))
        assert sum(row is not None for row in held) == 1
        assert await leasing(db, 1, UNTIL - 1, UNTIL) is None
        assert await leasing(db, 1, UNTIL, UNTIL + 1) is not None


async def test_folding_by_several_workers_keeps_the_balance(db: Database, workers: list[Database]) -> None:
    mine = {"merchant_id": 1, "env": "live", "currency": "XOF"}

    async def credit(number: int) -> None:
        posting = ledger.ledger.collection("mtn", 100 * number, 0, "XOF")
        async with workers[number % 4].transaction() as tx:
            await ledger.post(tx, *mine.values(), "payment.succeeded", number, posting, number)  # type: ignore[arg-type]

    async def fold(each: Database) -> None:
        for _ in range(10):
            await ledger.fold(each, 7)
            wallet = await ledger.wallet(each, **mine)  # type: ignore[arg-type]
            assert wallet is not None

    await asyncio.gather(*(credit(number) for number in range(1, 41)), *(fold(each) for each in workers))
    while await ledger.fold(db, 100):
        pass
    wallet = given(await ledger.wallet(db, **mine))  # type: ignore[arg-type]
    assert wallet.balance == 100 * sum(range(1, 41))
    assert await db.scan(select(t.wallet_entries)) == []


# --- plans ------------------------------------------------------------------------------------------------------------

REFERENCE = str(uuid4())
MINE = {"merchant_id": 1, "env": "test"}
PAGE = {"most": 25, "skipped": 0}
CLAIM = {"now": NOW, "until": UNTIL, "most": 10, "busy": json.dumps(["a.test:443"])}


def _filtered(**given: Any) -> Any:
    return payments._filtered(frozenset(PaymentFilter(**given).given()), counting=False)


HOT: dict[str, tuple[Executable, dict[str, Any]]] = {
    "claim payments": (payments._CLAIM, CLAIM),
    "claim refunds": (refunds._CLAIM, CLAIM),
    "claim deliveries": (deliveries._CLAIM, CLAIM),
    "next payment": (payments._NEXT_DUE, {"busy": "[]"}),
    "next refund": (refunds._NEXT_DUE, {"busy": "[]"}),
    "next delivery": (deliveries._NEXT_DUE, {"busy": "[]"}),
    "given up deliveries": (deliveries._EXPIRE, {"now": NOW}),
    "payment by reference": (payments._BY_REFERENCE, {**MINE, "reference": REFERENCE}),
    "payment by external_id": (payments._BY_EXTERNAL_ID, {**MINE, "external_id": "e1"}),
    "payment by token": (payments._BY_TOKEN, {"token": "c"}),
    "payment by operator's reference": (payments._BY_CALLBACK, {"connection": "c", "provider_ref": "p"}),
    "refund by reference": (refunds._BY_REFERENCE, {**MINE, "reference": REFERENCE}),
    "link by token": (links._BY_TOKEN, {"token": "t"}),
    "link by id": (links._BY_ID, {"merchant_id": 1, "id": 1}),
    "list payments": (_filtered(), {**MINE, **PAGE}),
    "list payments of a status": (_filtered(status="failed"), {**MINE, **PAGE, "status": "failed"}),
    "list payments of a time": (_filtered(since=1, until=2), {**MINE, **PAGE, "since": 1, "until": 2}),
    "list payments of an external_id": (_filtered(external_id="e1"), {**MINE, **PAGE, "external_id": "e1"}),
    "list refunds": (refunds._PAGE, {**MINE, **PAGE}),
    "list links": (links._PAGE, {"merchant_id": 1, **PAGE}),
    "list deliveries": (deliveries._PAGE, {"merchant_id": 1, "environment": "test", **PAGE}),
    "key": (merchants._CALLER, {"hash": "h"}),
    "endpoint": (merchants._ENDPOINT, {"merchant": 1, "environment": "test"}),
    "balance": (ledger._WALLET, {**MINE, "currency": "XOF"}),
}


@pytest.mark.parametrize("name", HOT)
async def test_embedded_plans_use_indexes(sqlite_settings: Settings, name: str) -> None:
    statement, params = HOT[name]
    db = database(sqlite_settings)
    await db.open()
    try:
        compiled = Compiled(statement, sqlite_dialect(paramstyle="named"))
        explain = text("EXPLAIN QUERY PLAN " + compiled.text)
        plan = [row[3] for row in await db.all(explain, **compiled.named(params))]
    finally:
        await db.close()
    scanned = [line for line in plan if re.match(r"SCAN (payments|refunds|deliveries|payment_links|wallet|api)", line)]
    # A scan along a partial index of what is pending is a probe of its first rows.
    assert [line for line in scanned if "USING" not in line or "_due" not in line] == [], plan
    # A claim sorts at most what is due; a page is read in the order of its index.
    assert not any("TEMP B-TREE" in line for line in plan), plan


async def test_postgresql_plans_use_indexes(
    postgres_server: str, postgres_template: str, base_settings: Settings
) -> None:
    """With enough rows, and their statistics, that a full scan would be a choice and not a shortcut."""
    connection = await asyncpg.connect(postgres_server)
    await connection.execute(f"CREATE DATABASE plans TEMPLATE {postgres_template}")
    await connection.close()
    connection = await asyncpg.connect(postgres_server.replace("/postgres?", "/plans?"))
    try:
        await _load(connection)
        faults = {}
        for name, (statement, params) in HOT.items():
            compiled = Compiled(statement, postgresql_dialect())  # type: ignore[no-untyped-call]
            rows = await connection.fetch("EXPLAIN " + compiled.text, *compiled.positional(params))
            plan = "\n".join(row[0] for row in rows)
            if re.search(r"Seq Scan on (payments|refunds|deliveries|payment_links|wallet_entries)", plan):
                faults[name] = plan
            if "Sort" in plan and name.startswith("list") and "external_id" not in name:
                faults[name] = plan
        assert faults == {}, "\n\n".join(f"{name}\n{plan}" for name, plan in faults.items())
    finally:
        await connection.close()


async def _load(connection: Any, rows: int = 5000) -> None:
    await connection.execute(
        "INSERT INTO merchants (name, status, currency, created_at) SELECT 'M', 'active', 'XOF', 1 "
        "FROM generate_series(1, 50)"
    )
    await connection.execute(
        "INSERT INTO payments (merchant_id, env, reference, external_id, status, amount, fee_amount, total_amount, "
        "currency, description, operator, connection, provider_ref, created_at, updated_at, due_at, asked) "
        "SELECT 1 + n % 50, 'test', gen_random_uuid(), 'e' || n, CASE WHEN n % 10 = 0 THEN 'pending' ELSE 'failed' END, "
        "100, 0, 100, 'XOF', 'd', 'mtn', 'c', 'p' || n, n, n, CASE WHEN n % 10 = 0 THEN 1000 * n END, 0 "
        f"FROM generate_series(1, {rows}) n"
    )
    await connection.execute(
        "INSERT INTO refunds (merchant_id, env, reference, payment_id, payment_reference, amount, currency, status, "
        "reason, created_at, processed_at, held, due_at, asked) SELECT merchant_id, env, gen_random_uuid(), id, "
        "reference, 100, 'XOF', status, 'r', 1, CASE WHEN status <> 'pending' THEN 1 END, false, due_at, 0 FROM payments"
    )
    await connection.execute(
        "INSERT INTO deliveries (merchant_id, env, reference, payment_id, event, target, url, destination, body, "
        "status, attempts, created_at, due_at) SELECT merchant_id, env, gen_random_uuid(), id, 'payment.failed', "
        "'account', 'u', 'd:443', '{}', status, 0, 1, due_at FROM payments"
    )
    await connection.execute(
        "INSERT INTO payment_links (merchant_id, token, type, amount, currency, description, reserved, completed, "
        "created_at) SELECT 1 + n % 50, 't' || n, 'permanent', 1, 'XOF', 'd', 0, 0, 1 "
        f"FROM generate_series(1, {rows}) n"
    )
    await connection.execute(
        "INSERT INTO wallet_entries (merchant_id, env, currency, amount, subject_id, suspended, created_at) "
        f"SELECT 1 + n % 50, 'live', 'XOF', 1, n, false, 1 FROM generate_series(1, {rows}) n"
    )
    await connection.execute("ANALYZE")


# --- the short memory, the vault --------------------------------------------------------------------------------------


async def test_a_change_is_seen_within_a_second() -> None:
    clock, stored = ManualClock(), {"key": 1}
    asked = 0

    async def load(key: str) -> int | None:
        nonlocal asked
        asked += 1
        return stored.get(key)

    memory = ShortLived(clock, load)
    assert [await memory.get("key") for _ in range(5)] == [1] * 5
    assert asked == 1
    stored["key"] = 2
    clock.advance(0.89)
    assert await memory.get("key") == 1
    clock.advance(0.02)
    assert await memory.get("key") == 2
    clock.advance(1)
    del stored["key"]
    assert await memory.get("key") is None


async def test_what_does_not_exist_is_not_remembered() -> None:
    stored: dict[str, int] = {}

    async def load(key: str) -> int | None:
        return stored.get(key)

    memory = ShortLived(ManualClock(), load)
    assert await memory.get("new") is None
    stored["new"] = 1
    assert await memory.get("new") == 1


async def test_a_clock_that_goes_back_freezes_nothing() -> None:
    clock, stored = ManualClock(), {"key": 1}

    async def load(key: str) -> int | None:
        return stored[key]

    memory = ShortLived(clock, load)
    assert await memory.get("key") == 1
    stored["key"] = 2
    clock.advance(-3600)
    assert await memory.get("key") == 2


async def test_the_memory_is_bounded() -> None:
    async def load(key: int) -> int | None:
        return key

    memory = ShortLived(ManualClock(), load)
    for key in range(10_050):
        await memory.get(key)
    assert len(memory._values) == 10_000


def test_keys_are_rotated_twice() -> None:
    first, second, third = (Fernet.generate_key().decode() for _ in range(3))
    oldest = Vault([first]).encrypt("whsec_1")
    middle = Vault([second, first])
    assert middle.decrypt(oldest) == "whsec_1"
    newer = middle.encrypt("whsec_2")
    newest = Vault([third, second, first])
    assert [newest.decrypt(each) for each in (oldest, newer, newest.encrypt("whsec_3"))] == [
        "whsec_1",
        "whsec_2",
        "whsec_3",
    ]
    assert Vault([third]).decrypt(newest.encrypt("x")) == "x", "the newest key encrypts"
    assert Vault([second]).decrypt(newer) == "whsec_2"
    with pytest.raises(UnreadableSecret):
        Vault([third, second]).decrypt(oldest)


async def test_a_wallet_row_is_one_per_currency_however_often_it_is_frozen(db: Database) -> None:
    for status in ("Gelé", "Actif", "Gelé", "Gelé"):
        async with db.transaction() as tx:
            await ledger.set_wallet_status(tx, 1, "live", "XOF", status, NOW)
    rows = await db.scan(select(t.wallets.c.status).where(t.wallets.c.env == "live"))
    assert [row[0] for row in rows] == ["Gelé"]
    await db.write(update(t.wallets).values(status="Actif").where(t.wallets.c.env == "live"))
