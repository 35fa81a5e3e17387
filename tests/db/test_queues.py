"""Claims by several workers, plans of the hot statements, the short memory, the vault."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from cryptography.fernet import Fernet
from msgspec import structs
from sqlalchemy import Executable, insert, select, text, update
from sqlalchemy.dialects.postgresql.asyncpg import dialect as postgresql_dialect
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect

from guichet.bootstrap import create_merchant, database, service
from guichet.clock import SECOND
from guichet.db import list_counts as counts
from guichet.db import tables as t
from guichet.db.array_statements import ArrayStatements
from guichet.db.batching import Batching
from guichet.db.engine import Database, require
from guichet.db.postgres_pool import PLANNER_SETTINGS
from guichet.db.read_cache import ReadCache
from guichet.db.statement_cache import CompiledStatement
from guichet.db.work_queue import Claim
from guichet.db.work_queue_statements import ROWS_PER_PARTITION, WINDOW
from guichet.domain.events import Delivery
from guichet.domain.posting_rules import Movement, collection
from guichet.ledger import postings, wallets
from guichet.merchants import api_keys
from guichet.merchants import repository as merchants
from guichet.merchants.vault import UnreadableSecret, Vault
from guichet.payments import link_repository as links
from guichet.payments import refund_repository as refunds
from guichet.payments import repository as payments
from guichet.payments.repository import PaymentFilter
from guichet.settings import Settings
from guichet.webhooks import deliveries
from guichet.webhooks.deliveries import AttemptResult
from tests.fakes.clock import ManualClock
from tests.fakes.recording_database import WatchedDatabase

ROWS = 60
NOW = 1_000 * SECOND
UNTIL = NOW + 30 * SECOND


@pytest.fixture
async def db(settings: Settings) -> AsyncIterator[Database]:
    async with service(settings) as opened:
        await create_merchant(opened.ctx, "M")
        yield opened.ctx.db


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
    "provider_account": "sandbox",
    "created_at": 1,
    "updated_at": 1,
    "next_poll_at": 1,
    "poll_count": 0,
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
    "next_poll_at": 1,
    "poll_count": 0,
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
    "next_attempt_at": 1,
}


async def fill(db: Database, rows: int = ROWS) -> None:
    async with db.transaction() as tx:
        for number in range(1, rows + 1):
            row = {"reference": str(uuid4()), "next_poll_at": number}
            delivery = {"reference": row["reference"], "next_attempt_at": number}
            await tx.write(insert(t.payments).values({**PAYMENT, **row, "external_id": f"e{number}"}))
            await tx.write(insert(t.refunds).values({**REFUND, **row, "payment_id": number}))
            await tx.write(insert(t.webhook_deliveries).values({**DELIVERY, **delivery}))


CLAIMS: dict[str, Callable[..., Awaitable[Claim[Any]]]] = {
    "payments": payments.claim_due,
    "refunds": refunds.claim_due,
    "deliveries": deliveries.claim_due,
}


async def claimed_of(queue: str, db: Database, most: int, saturated: Sequence[Sequence[str]] = ()) -> Sequence[Any]:
    return (await CLAIMS[queue](db, NOW, UNTIL, most, saturated)).jobs


@pytest.mark.parametrize("queue", CLAIMS)
async def test_no_row_is_claimed_twice(db: Database, workers: list[Database], queue: str) -> None:
    await fill(db)
    claimed: Counter[int] = Counter()

    async def work(mine: Database) -> None:
        while rows := await claimed_of(queue, mine, 7):
            assert len(rows) <= 7
            claimed.update(row.id for row in rows)

    await asyncio.gather(*(work(each) for each in workers))
    for each in workers:  # What was locked by another at the last look is not lost.
        claimed.update(row.id for row in await claimed_of(queue, each, ROWS))
    assert set(claimed.values()) == {1}
    assert len(claimed) == ROWS


@pytest.mark.parametrize("queue", CLAIMS)
async def test_a_claim_takes_the_oldest_and_never_more_than_asked(db: Database, queue: str) -> None:
    """On fresh tables, whose statistics say nothing, as after `guichet migrate`."""
    await fill(db)
    assert sorted(row.id for row in await claimed_of(queue, db, 5)) == [1, 2, 3, 4, 5]
    assert sorted(row.id for row in await claimed_of(queue, db, 5)) == [6, 7, 8, 9, 10]


async def test_a_claim_comes_back_when_its_lease_runs_out(db: Database) -> None:
    await fill(db, 3)
    for queue in CLAIMS:
        assert len(await claimed_of(queue, db, 9)) == 3
        assert await claimed_of(queue, db, 9) == []
    again = {queue: (await claim(db, UNTIL, UNTIL + 1, 9)).jobs for queue, claim in CLAIMS.items()}
    assert [len(jobs) for jobs in again.values()] == [3, 3, 3]
    assert [row.attempts for row in again["deliveries"]] == [2, 2, 2]


async def test_what_waits_in_a_closed_lane_hides_nothing(db: Database) -> None:
    """However much it is, and although it is older."""
    crowd = [{"due": number, "closed": True} for number in range(1, 2 * WINDOW)]
    others = [{"due": 5_000 + number, "closed": False} for number in range(3)]
    async with db.transaction() as tx:
        for number, row in enumerate([*crowd, *others]):
            reference = str(uuid4())
            polled = {"reference": reference, "next_poll_at": row["due"]}
            delivery = {"reference": reference, "next_attempt_at": row["due"]}
            partition_key = "closed" if row["closed"] else f"open{number}"
            await tx.write(insert(t.payments).values({**PAYMENT, **polled, "provider_account": partition_key}))
            refund = {"payment_id": number + 1, "provider_account": partition_key if row["closed"] else None}
            await tx.write(insert(t.refunds).values({**REFUND, **polled, **refund}))
            await tx.write(insert(t.webhook_deliveries).values({**DELIVERY, **delivery, "destination": partition_key}))
    for queue in CLAIMS:
        found = [*await claimed_of(queue, db, 2, [["closed"], []]), *await claimed_of(queue, db, 2, [["closed"], []])]
        assert sorted(row.id for row in found) == [2 * WINDOW, 2 * WINDOW + 1, 2 * WINDOW + 2], queue
        assert await claimed_of(queue, db, 9, [["closed"], []]) == []
        assert len(await claimed_of(queue, db, 9)) == 9, "open again"


async def test_a_merchant_with_many_destinations_is_a_lane_too(db: Database) -> None:
    async with db.transaction() as tx:
        merchant = {"name": "N", "status": "active", "currency": "XOF", "created_at": 1}
        await tx.write(insert(t.merchants).values(merchant))
    async with db.transaction() as tx:
        for number in range(2 * WINDOW):
            common = {"reference": str(uuid4()), "next_attempt_at": 1 + number, "destination": f"host{number}"}
            await tx.write(insert(t.webhook_deliveries).values({**DELIVERY, **common}))
        for number in range(ROWS_PER_PARTITION + 2):
            common = {
                "reference": str(uuid4()),
                "next_attempt_at": 5_000 + number,
                "destination": "host1",
                "merchant_id": 2,
            }
            await tx.write(insert(t.webhook_deliveries).values({**DELIVERY, **common}))
    found = await claimed_of("deliveries", db, 50, [[], ["1"]])
    assert [row.merchant_id for row in found] == [2] * ROWS_PER_PARTITION, "the head of its lane"
    assert len(await claimed_of("deliveries", db, 50, [[], ["1"]])) == 2
    assert await claimed_of("deliveries", db, 50, [["host1"], ["1"]]) == []


async def test_a_claim_says_when_to_look_again(db: Database) -> None:
    await fill(db, 3)
    for claim in CLAIMS.values():
        assert (await claim(db, 2, UNTIL, 9)).next_due == 2, "there may be more"
        assert (await claim(db, 2, UNTIL, 9)).next_due == 3, "the third comes due"
        assert (await claim(db, 3, UNTIL, 9)).next_due == 3
        assert (await claim(db, 3, UNTIL, 9)).next_due == UNTIL, "the leases end"
    async with db.transaction() as tx:
        await tx.write(update(t.payments).values(status="failed", next_poll_at=None))
    assert (await payments.claim_due(db, UNTIL, UNTIL, 2)).next_due is None


async def test_an_event_waits_until_the_one_before_it_was_tried(db: Database) -> None:
    """Also where only the second look would find it."""
    async with db.transaction() as tx:
        for number in range(2 * WINDOW):
            crowd = {"reference": str(uuid4()), "next_attempt_at": 1 + number, "destination": "closed"}
            await tx.write(insert(t.webhook_deliveries).values({**DELIVERY, **crowd}))
        for due in (9_000, 9_001):
            pair = {"reference": str(uuid4()), "next_attempt_at": due, "destination": "open", "payment_id": 7}
            await tx.write(insert(t.webhook_deliveries).values({**DELIVERY, **pair}))
    (first,) = await claimed_of("deliveries", db, 9, [["closed"], []])
    assert await claimed_of("deliveries", db, 9, [["closed"], []]) == []
    await deliveries.record(db, [AttemptResult(first, False, 500, NOW, next_due=UNTIL)])
    (second,) = await claimed_of("deliveries", db, 9, [["closed"], []])
    assert second.id > first.id


async def test_outcomes_are_recorded_together(db: Database) -> None:
    await fill(db, 4)
    one, two, three, four = await claimed_of("deliveries", db, 4)
    outcomes = [
        AttemptResult(one, True, 204, NOW),
        AttemptResult(two, False, 500, NOW, next_due=UNTIL),
        AttemptResult(three, False, None, NOW),
        AttemptResult(structs.replace(four, attempts=0), False, 500, NOW),
    ]
    await deliveries.record(db, outcomes)
    found, _ = await deliveries.page(db, 1, "test", 10, 0)
    states = {
        row.id: (row.status, row.response_code, row.delivered_at, row.last_attempt_at, row.next_attempt_at)
        for row in found
    }
    assert states == {
        one.id: ("success", 204, NOW, NOW, None),
        two.id: ("pending", 500, None, NOW, UNTIL),
        three.id: ("failed", None, None, NOW, None),
        four.id: ("pending", None, None, None, UNTIL),  # Another attempt was claimed since.
    }


async def test_what_comes_together_is_written_together() -> None:
    written: list[list[int]] = []
    gate = asyncio.Event()

    async def write(items: list[int]) -> list[int]:
        written.append(items)
        await gate.wait()
        if 7 in items:
            raise ValueError("7")
        return [10 * item for item in items]

    batches = Batching(write, most=3)
    alone = asyncio.create_task(batches.add(1))
    while not written:
        await asyncio.sleep(0)
    others = [asyncio.create_task(batches.add(item)) for item in (2, 3, 4, 5, 6, 7)]
    await asyncio.sleep(0)
    others[1].cancel()
    gate.set()
    results = await asyncio.gather(alone, *others, return_exceptions=True)
    assert written == [[1], [2, 3, 4], [5, 6, 7]]
    assert [result if isinstance(result, int) else type(result) for result in results] == [
        10, 20, asyncio.CancelledError, 40, ValueError, ValueError, ValueError,
    ]  # fmt: skip
    assert await batches.add(8) == 80, "an error is over with its batch"


async def test_a_lease_has_one_holder(db: Database, workers: list[Database]) -> None:
    await fill(db, 1)
    for leasing in (payments.lease, refunds.lease):
        held = await asyncio.gather(*(leasing(each, 1, NOW, UNTIL) for each in workers for _ in range(5)))
        assert sum(row is not None for row in held) == 1
        assert await leasing(db, 1, UNTIL - 1, UNTIL) is None
        assert await leasing(db, 1, UNTIL, UNTIL + 1) is not None


async def test_folding_by_several_workers_keeps_the_balance(db: Database, workers: list[Database]) -> None:
    async def credit(number: int) -> None:
        posting = collection("mtn", 100 * number, 0, "XOF")
        async with workers[number % 4].transaction() as tx:
            await postings.post(tx, [Movement(1, "live", "XOF", "payment.succeeded", number, posting, number)])

    async def fold(each: Database) -> None:
        for _ in range(10):
            await wallets.roll_up(each, 7)
            wallet = await wallets.wallet(each, 1, "live", "XOF")
            assert wallet is not None

    await asyncio.gather(*(credit(number) for number in range(1, 41)), *(fold(each) for each in workers))
    while await wallets.roll_up(db, 100):
        pass
    wallet = require(await wallets.wallet(db, 1, "live", "XOF"))
    assert wallet.balance == 100 * sum(range(1, 41))
    assert await db.scan(select(t.wallet_entries)) == []


# --- plans ------------------------------------------------------------------------------------------------------------

REFERENCE = "0d4f4a52-6f7e-4a5b-9f6d-2f1f0f1a8f10"
MINE = (1, "test")


TRIED = AttemptResult(
    Delivery(
        **{**DELIVERY, **dict.fromkeys(("payment_id", "response_code", "delivered_at", "last_attempt_at"))},
        id=1,
        reference="",
    ),
    delivered=True,
    response_code=200,
    ended_at=NOW,
)


def _listed(**wanted: Any) -> Any:
    return lambda db: payments.page(db, *MINE, PaymentFilter(**wanted), 25, 0)


#: What is asked often, through the very functions that ask it.
HOT: dict[str, Callable[[Database], Awaitable[Any]]] = {
    "claim payments": lambda db: payments.claim_due(db, NOW, UNTIL, 10, [["gone"]]),
    "claim refunds": lambda db: refunds.claim_due(db, NOW, UNTIL, 10, [["gone"]]),
    "claim deliveries": lambda db: deliveries.claim_due(db, NOW, UNTIL, 10, [["a.test:443"], []]),
    # More than a window is due in closed lanes, so the second look is taken.
    "claim payments by lane": lambda db: payments.claim_due(db, NOW, UNTIL, 10, [["c"]]),
    "claim refunds by lane": lambda db: refunds.claim_due(db, NOW, UNTIL, 10, [[""]]),
    "claim deliveries by lane": lambda db: deliveries.claim_due(db, NOW, UNTIL, 10, [["d:443"], []]),
    "record outcomes": lambda db: deliveries.record(db, [TRIED]),
    "endpoints": lambda db: merchants.endpoints_of(db, [1]),
    "frozen wallets": lambda db: wallets.frozen_wallets(db, [1]),
    "exhausted deliveries": lambda db: deliveries.give_up_exhausted(db, NOW),
    "payment by reference": lambda db: payments.by_reference(db, *MINE, REFERENCE),
    "payment by external_id": lambda db: payments.by_external_id(db, *MINE, "e1"),
    "payment by token": lambda db: payments.by_token(db, "c"),
    "payment by operator's reference": lambda db: payments.by_provider_reference(db, "c", "p1"),
    "refund by reference": lambda db: refunds.by_reference(db, *MINE, REFERENCE),
    "link by token": lambda db: links.by_token(db, "t1"),
    "link by id": lambda db: links.by_id(db, 1, 1),
    "list payments": _listed(),
    "list payments of a status": _listed(status="failed"),
    "list payments of a time": _listed(since=1, until=3_000),
    "list payments of an external_id": _listed(external_id="e1"),
    "list refunds": lambda db: refunds.page(db, *MINE, 25, 0),
    "list links": lambda db: links.page(db, 1, 25, 0),
    "list deliveries": lambda db: deliveries.page(db, *MINE, 25, 0),
    "key": lambda db: api_keys.caller_by_hash(db, "h"),
    "endpoint": lambda db: merchants.endpoint(db, *MINE),
    "balance": lambda db: wallets.wallet(db, *MINE, "XOF"),
}
#: Where more than the right rows would be read by any other index.
BY_INDEX = {"exhausted deliveries": "ix_webhook_deliveries_exhausted"}
BIG = (
    "payments|refunds|webhook_deliveries|payment_links|wallet_entries|postings|list_counts|list_count_changes|api_keys"
)


async def test_plans_use_indexes(settings: Settings) -> None:
    """A full scan of what grows is a fault, on both databases."""
    async with service(settings) as opened:
        db = opened.ctx.db
        await _load(db, embedded=settings.embedded)
        faults = []
        for name, ask in HOT.items():
            watched = WatchedDatabase(db)
            await ask(watched)
            assert watched.seen, name
            for statement, params in watched.seen:
                plan = await _plan(db, statement, params, embedded=settings.embedded)
                if _is_costly(plan, embedded=settings.embedded) or BY_INDEX.get(name, "") not in plan:
                    faults.append(f"{name}\n{plan}")
    assert faults == [], "\n\n".join(faults)


#: PostgreSQL keeps a plan until its statistics change: these must be good for a table that was empty when it was made.
MANY: dict[str, tuple[Any, str]] = {
    "record": (deliveries._RECORD, "pk_webhook_deliveries"),
    "finish": (payments._FINISH, "pk_payments"),
    "complete": (links._COMPLETE, "pk_payment_links"),
    "forget": (counts._FORGET, "pk_list_counts"),
}


async def test_many_rows_are_reached_by_their_keys_from_the_first_day(
    postgres_server: str, postgres_template: str
) -> None:
    server = await asyncpg.connect(postgres_server)
    await server.execute(f"CREATE DATABASE first_day TEMPLATE {postgres_template}")
    await server.close()
    kept = {**PLANNER_SETTINGS, "plan_cache_mode": "force_generic_plan"}
    connection = await asyncpg.connect(postgres_server.replace("/postgres?", "/first_day?"), server_settings=kept)
    unnested = ArrayStatements()
    for name, (statement, key) in MANY.items():
        compiled = CompiledStatement(unnested[statement], postgresql_dialect())  # type: ignore[no-untyped-call]
        await connection.execute(f"PREPARE {name} AS {compiled.text}")
        unknown = ", ".join(["NULL"] * len(set(re.findall(r"\$\d+", compiled.text))))
        plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE {name}({unknown})"))
        assert f"Index Scan using {key} " in plan, plan
        assert " Join" not in plan, plan
    await connection.close()


async def _plan(db: Database, statement: Executable, params: dict[str, Any], *, embedded: bool) -> str:
    """Explained as text, with the values in it: what the database would do with exactly this question."""
    if embedded:
        asked = statement.compile(dialect=sqlite_dialect(paramstyle="named"))  # type: ignore[attr-defined]
        explain = text(f"EXPLAIN QUERY PLAN {asked}")
        return "\n".join(row[3] for row in await db.all(explain, **{**asked.params, **params}))
    compiled = CompiledStatement(statement, postgresql_dialect())  # type: ignore[no-untyped-call]
    explain = text("EXPLAIN " + re.sub(r"\$(\d+)(::\w+)?", r":p\1", compiled.text).replace("::", r"\:\:"))
    async with db.transaction() as tx:
        # The tables are small: a scan that remains is one that no index could have spared.
        await tx.all(text("SET LOCAL enable_seqscan = off"))
        rows = await tx.all(_literally(explain, compiled.positional(params)))
    return "\n".join(row[0] for row in rows)


def _literally(explain: Any, values: Sequence[Any]) -> Executable:
    """With literals in place of the parameters."""
    told = str(explain)
    for number in range(len(values), 0, -1):
        value = values[number - 1]
        literal: str = "NULL" if value is None else str(value) if isinstance(value, int) else "'" + value + "'"
        told = re.sub(rf":p{number}\b", literal.replace("\\", r"\\"), told)
    return text(re.sub(r"(?<!\\):(?=\w)", r"\:", told.replace(r"\:\:", "::")).replace("::", r"\:\:"))


def _is_costly(plan: str, *, embedded: bool) -> bool:
    if embedded:
        return any(
            re.match(rf"SCAN ({BIG})\b", line) and not re.search(r"_due|_suspended|USING INTEGER PRIMARY KEY", line)
            for line in plan.split("\n")
        )
    return re.search(rf"Seq Scan on ({BIG})\b", plan) is not None


async def _load(db: Database, *, embedded: bool, rows: int = 3000) -> None:
    """Fifty merchants; every tenth payment, refund and delivery is pending, most of them not due yet."""
    number = "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {}) SELECT n FROM s) AS s"
    uuid = "printf('%036d', n)" if embedded else "gen_random_uuid()"
    no = "0" if embedded else "false"
    due = "CASE WHEN n % 10 = 0 THEN 1000 * n END"
    state = "CASE WHEN n % 10 = 0 THEN 'pending' ELSE 'failed' END"
    await _run(
        db,
        "INSERT INTO merchants (name, status, currency, created_at) "
        f"SELECT 'M', 'active', 'XOF', 1 FROM {number.format(50)}",
        "INSERT INTO webhook_endpoints (merchant_id, env, secret, updated_at) SELECT id, 'test', 's', 1 FROM merchants",
        f"INSERT INTO api_keys (merchant_id, env, hash, preview, created_at) "
        f"SELECT 1 + n % 50, 'test', 'h' || n, 'p', 1 FROM {number.format(rows)}",
        "INSERT INTO payments (merchant_id, env, reference, external_id, status, amount, fee_amount, total_amount, "
        "currency, description, operator, provider_account, provider_reference, created_at, updated_at, "
        "next_poll_at, poll_count) "
        f"SELECT 1 + n % 50, 'test', {uuid}, 'e' || n, {state}, 100, 0, 100, 'XOF', 'd', 'mtn', 'c', 'p' || n, n, n, "
        f"{due}, 0 FROM {number.format(rows)}",
        "INSERT INTO refunds (merchant_id, env, reference, payment_id, payment_reference, amount, currency, status, "
        "reason, created_at, processed_at, held, next_poll_at, poll_count) "
        "SELECT merchant_id, env, reference, id, reference, "
        f"100, 'XOF', status, 'r', id, CASE WHEN status <> 'pending' THEN 1 END, {no}, next_poll_at, 0 FROM payments",
        "INSERT INTO webhook_deliveries (merchant_id, env, reference, payment_id, event, target, url, destination, "
        "body, status, attempts, created_at, next_attempt_at) "
        "SELECT merchant_id, env, reference, id, 'payment.failed', 'account', 'u', 'd:443', '{}', status, 0, id, "
        "next_poll_at FROM payments",
        "INSERT INTO payment_links (merchant_id, token, type, amount, currency, description, reserved_uses, "
        "completed_uses, created_at) "
        f"SELECT 1 + n % 50, 't' || n, 'permanent', 1, 'XOF', 'd', 0, 0, 1 FROM {number.format(rows)}",
        "INSERT INTO wallet_entries (merchant_id, env, currency, amount, subject_id, suspended, created_at) "
        f"SELECT 1 + n % 50, 'live', 'XOF', 1, n, {no}, 1 FROM {number.format(rows)}",
    )
    await _run(db, "ANALYZE")


async def _run(db: Database, *statements: str) -> None:
    async with db.transaction() as tx:
        for statement in statements:
            await tx.all(text(statement))


# --- the short memory, the vault --------------------------------------------------------------------------------------


async def test_a_change_is_seen_within_a_second() -> None:
    clock, stored = ManualClock(), {"key": 1}
    asked = 0

    async def load(key: str) -> int | None:
        nonlocal asked
        asked += 1
        return stored.get(key)

    memory = ReadCache(clock, load)
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

    memory = ReadCache(ManualClock(), load)
    assert await memory.get("new") is None
    stored["new"] = 1
    assert await memory.get("new") == 1


async def test_a_clock_that_goes_back_freezes_nothing() -> None:
    clock, stored = ManualClock(), {"key": 1}

    async def load(key: str) -> int | None:
        return stored[key]

    memory = ReadCache(clock, load)
    assert await memory.get("key") == 1
    stored["key"] = 2
    clock.advance(-3600)
    assert await memory.get("key") == 2


async def test_the_memory_is_bounded() -> None:
    async def load(key: int) -> int | None:
        return key

    memory = ReadCache(ManualClock(), load)
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
            await wallets.set_wallet_status(tx, 1, "live", "XOF", status, NOW)
    rows = await db.scan(select(t.wallets.c.status).where(t.wallets.c.env == "live"))
    assert [row[0] for row in rows] == ["Gelé"]
    await db.write(update(t.wallets).values(status="Actif").where(t.wallets.c.env == "live"))
