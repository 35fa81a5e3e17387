"""The plans of the statements that run often: none reads a whole table that grows."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg
from msgspec import structs
from sqlalchemy import Executable, text
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect

from guichet.availability import recent_attempts
from guichet.bootstrap import service
from guichet.clock import SECOND, Instant, later
from guichet.db.engine import Database, require
from guichet.db.lists.pages import ListScope, PageBounds, RowKey, status_counts
from guichet.db.lists.rollup import _DELETE_EMPTY
from guichet.db.postgres.pool import PLANNER_SETTINGS
from guichet.db.postgres.statements import ArrayStatements, PostgresDialect, encode_rows
from guichet.db.queues.fair_share import Shares
from guichet.db.statement_cache import CompiledStatement
from guichet.db.tables import payments as payments_table
from guichet.disputes import repository as disputes
from guichet.disputes.repository import DisputeFilter
from guichet.domain.accounts import UserId
from guichet.domain.events import Delivery
from guichet.domain.exports import ListFilter
from guichet.domain.ids import DeliveryId, LinkId, MerchantId, PaymentId
from guichet.domain.merchants import Environment
from guichet.domain.messages import encode, verbatim
from guichet.domain.money import Hundredths
from guichet.domain.payment_links import PaymentLink
from guichet.domain.payments import ApiPayment
from guichet.domain.reconciliation import Line
from guichet.history import staff_search
from guichet.history.cash_desk_sales import sales_between
from guichet.history.figures import DAYS, month_figures
from guichet.history.narrowed_list import narrowed_counts, narrowed_page
from guichet.history.payment_history import read_history
from guichet.history.search import search
from guichet.incidents import repository as incidents
from guichet.ledger import postings, suspense, wallets
from guichet.ledger import reconciliation_runs as runs
from guichet.ledger.reconciliation import _given_back, _subject_of_line
from guichet.ledger.wallets import held
from guichet.links import prompt_limits, session_repository
from guichet.links import repository as links
from guichet.links.repository import LinkList
from guichet.merchants import api_keys
from guichet.merchants import repository as merchants
from guichet.payments import lists as payment_lists
from guichet.payments import pending
from guichet.payments import repository as payments
from guichet.payments.lists import PaymentFilter
from guichet.provider_callbacks import repository as callbacks
from guichet.provider_callbacks import unmatched as unmatched_callbacks
from guichet.refunds import pending as pending_refunds
from guichet.refunds import repository as refunds
from guichet.refunds.repository import RefundFilter
from guichet.settings import Settings, load
from guichet.webhooks import deliveries, delivery_log, events
from guichet.webhooks.deliveries import EndedAttempt
from guichet.webhooks.delivery_log import DeliveryFilter
from guichet.webhooks.events import EventFilter
from guichet.webhooks.sender import Attempt
from tests.db.rows import DELIVERY, LINK, REFERENCE
from tests.fakes.recording_database import RecordingDatabase

NOW = Instant(1_000 * SECOND)
UNTIL = later(NOW, 30 * SECOND)
#: Nothing may be claimed, so all statements of a claim run.
SHARES = Shares({"1": 0}, 0, ["1"], 0)
MINE: tuple[MerchantId, Environment] = (MerchantId(1), "test")
KEY = RowKey(NOW, 1_000)
FIRST, NEXT = PageBounds(25), PageBounds(25, after=KEY)
OLDEST_FIRST = PageBounds(25, after=KEY, oldest_first=True)
TRIED = EndedAttempt(
    Delivery(
        **{**DELIVERY, **dict.fromkeys(("payment_id", "response_code", "delivered_at", "last_attempt_at"))},
        id=DeliveryId(1),
    ),
    Attempt(delivered=True, response_code=200),
    ended_at=NOW,
    duration=5,
)


#: A refund that a provider's statement names by its payment.
STATED = Line(1, "refund", (REFERENCE, "theirs"), None, None, "succeeded", NOW)


def _listed(**wanted: Any) -> Any:
    return lambda db: payment_lists.page(db, *MINE, ApiPayment, PaymentFilter(**wanted), FIRST)


async def _narrowed(db: Database, wanted: ListFilter) -> None:
    await narrowed_page(db, *MINE, wanted, ["mtn"], NOW, UNTIL, 25)


async def _frozen_wallets(db: Database) -> None:
    async with db.transaction() as tx:
        await postings.frozen_wallets(tx, [MerchantId(1)])


async def _reference_from_callback(db: Database) -> None:
    payment = require(await payments.by_id(db, PaymentId(1)))
    await payments.reference_from_callback(db, payment)


async def _read_story(db: Database) -> None:
    await read_history(db, require(await payments.by_id(db, PaymentId(20))))


async def _take_place(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.write_all(links._END_RESERVATIONS, link_id=1, now=NOW, most=2)


async def _check_prompts(db: Database) -> None:
    payment = structs.replace(
        require(await payments.by_id(db, PaymentId(1))), link_id=LinkId(1), phone_number="22990000001"
    )
    async with db.transaction() as tx:
        await prompt_limits.check(tx, load({}), payment)


async def _misconfigured_route(db: Database) -> None:
    await db.one(incidents._OPEN_OF_ACCOUNT, account="c", wanted_kind=incidents.MISCONFIGURED_ROUTE)


#: As many payments as the link allows hold a use of it.
FULL_LINK = PaymentLink(**{**LINK, "reserved_uses": 1}, id=LinkId(1), max_uses=1, starts_at=None, expires_at=None)


#: The statements that run often, through the functions that run them.
HOT: dict[str, Callable[[Database], Awaitable[Any]]] = {
    "claim payments": lambda db: pending.QUEUE.claim(db, NOW, UNTIL, 10, ["gone"]),
    "claim refunds": lambda db: pending_refunds.QUEUE.claim(db, NOW, UNTIL, 10, ["gone"]),
    "claim deliveries": lambda db: deliveries.delivery_queue().claim(db, NOW, UNTIL, 10, SHARES, ["a.test:443"]),
    "claim callbacks": lambda db: callbacks.QUEUE.claim(db, NOW, UNTIL, 10, ["gone"]),
    "open disputes": lambda db: disputes.open_of(db, *MINE),
    # More than a window is due in saturated partitions, so the second look is taken.
    "claim payments by partition": lambda db: pending.QUEUE.claim(db, NOW, UNTIL, 10, ["c"]),
    "claim refunds by partition": lambda db: pending_refunds.QUEUE.claim(db, NOW, UNTIL, 10, [""]),
    "claim callbacks by partition": lambda db: callbacks.QUEUE.claim(db, NOW, UNTIL, 10, ["c"]),
    "callback's reference": _reference_from_callback,
    # The sample of this account is full, so its oldest row is looked for.
    "unmatched callback": lambda db: unmatched_callbacks.keep_sample(
        db, provider_account="full", path="/", body=b"", reason="no_match", now=NOW
    ),
    "record outcomes": lambda db: deliveries.record(db, [TRIED]),
    "what deliveries carry": lambda db: deliveries.with_contents(db, [TRIED.delivery], NOW),
    "frozen wallets": _frozen_wallets,
    "reopened wallets": lambda db: suspense.release_next(db, NOW, 10),
    "exhausted deliveries": lambda db: deliveries.give_up_exhausted(db, NOW),
    "payment by reference": lambda db: payments.by_reference(db, *MINE, REFERENCE),
    "payment by external_id": lambda db: payments.by_external_id(db, *MINE, "e1"),
    "payment by token": lambda db: payments.by_token(db, "c"),
    "what a callback names by our reference": lambda db: callbacks.by_our_reference(db, "c", REFERENCE),
    "what a callback names by the provider's": lambda db: callbacks.by_provider_reference(db, "c", "p1"),
    "order number of any merchant": lambda db: db.scan(staff_search._BY_ORDER, term="e1"),
    "beginning of an order number of any merchant": lambda db: db.scan(
        staff_search._BY_BEGINNING, term="e1", end="e1\U0010ffff"
    ),
    "telephone number of any merchant": lambda db: db.scan(staff_search._BY_PHONE, term="2299000020"),
    "operator's reference of any account": lambda db: db.scan(
        staff_search._BY_PROVIDER_REFERENCE, accounts='["c"]', term="p1"
    ),
    "refund by reference": lambda db: refunds.by_reference(db, *MINE, REFERENCE),
    "link by token": lambda db: links.by_token(db, "t1"),
    "link by id": lambda db: links.by_id(db, MerchantId(1), "live", LinkId(1)),
    "link by external_id": lambda db: links.by_external_id(db, MerchantId(1), "live", "l1"),
    "test link by external_id": lambda db: links.by_external_id(db, MerchantId(1), "test", "l1"),
    "refund of a payment": lambda db: refunds.of_payment(db, MerchantId(1), PaymentId(1)),
    "open incident of an account": _misconfigured_route,
    "lapsed reservations of a link": lambda db: links.has_room(db, FULL_LINK, NOW),
    "place of a lapsed reservation": _take_place,
    "prompts of a link": _check_prompts,
    "list payments": _listed(),
    "list payments of a status": _listed(status="failed"),
    "list payments of a time": _listed(since=1, until=3_000),
    "list payments of an external_id": _listed(external_id="e1"),
    "walk payments of a status": lambda db: payment_lists.page(
        db, *MINE, ApiPayment, PaymentFilter(status="failed", until=NOW), OLDEST_FIRST
    ),
    "walk payments": lambda db: payment_lists.page(db, *MINE, ApiPayment, PaymentFilter(), NEXT),
    "list refunds": lambda db: refunds.page(db, *MINE, RefundFilter(), FIRST),
    "list refunds of a status": lambda db: refunds.page(db, *MINE, RefundFilter("failed"), FIRST),
    "sessions whose time has passed": lambda db: session_repository.due(db, NOW, 25, None),
    "a pending payment of a session": lambda db: session_repository.pending_payment(db, LinkId(1)),
    "list events": lambda db: events.page(db, *MINE, EventFilter(), 25, NOW),
    "list payments of a link": _listed(link_id=LinkId(1)),
    "list payments of a number": _listed(phone_numbers=("1", "2")),
    "list disputes": lambda db: disputes.page(db, *MINE, DisputeFilter(), FIRST),
    "walk refunds": lambda db: refunds.page(db, *MINE, RefundFilter(), NEXT),
    "walk links": lambda db: links.page(db, MerchantId(1), "live", NEXT),
    "list links": lambda db: links.page(db, MerchantId(1), "live", FIRST),
    "links of the console": lambda db: links.walk(db, LinkList(MerchantId(1), "live"), 25, LinkId(1_000)),
    "newer links of the console": lambda db: links.walk(db, LinkList(MerchantId(1), "live"), 25, LinkId(9), newer=True),
    "sales of the cash desk": lambda db: links.walk(db, LinkList(MerchantId(1), "live", cash_desk=True), 25),
    "sales of a cashier": lambda db: links.walk(
        db, LinkList(MerchantId(1), "live", True, UserId(1)), 25, LinkId(1_000)
    ),
    "sales of a day": lambda db: sales_between(db, MerchantId(1), "live", Instant(0), NOW),
    "payments of a link": lambda db: payments.of_link(db, LinkId(1), 25),
    "list deliveries": lambda db: delivery_log.page(db, *MINE, FIRST),
    "walk deliveries": lambda db: delivery_log.page(db, *MINE, NEXT),
    "deliveries of a status": lambda db: delivery_log.page(db, *MINE, FIRST, DeliveryFilter(status="pending")),
    "deliveries of an event": lambda db: delivery_log.page(
        db, *MINE, OLDEST_FIRST, DeliveryFilter(event="payment.failed")
    ),
    "deliveries of both": lambda db: delivery_log.page(db, *MINE, NEXT, DeliveryFilter("pending", "payment.failed")),
    "deliveries of a payment": lambda db: delivery_log.page(db, *MINE, FIRST, DeliveryFilter(payment_id=PaymentId(1))),
    "delivery by reference": lambda db: delivery_log.by_reference(db, *MINE, REFERENCE),
    "references of payments": lambda db: delivery_log.payment_references(
        db, [structs.replace(TRIED.delivery, payment_id=PaymentId(1))]
    ),
    "search for a telephone number": lambda db: search(db, *MINE, "97 00 00 20", ["2299000020"], NOW),
    "search for a name": lambda db: search(db, *MINE, "Awa Dia", [], NOW),
    "last four digits": lambda db: search(db, *MINE, "0020", [], NOW),
    "narrowed list": lambda db: _narrowed(db, ListFilter(operator="mtn")),
    "narrowed list of a status": lambda db: _narrowed(db, ListFilter(status="failed", least=Hundredths(1))),
    "counts of a narrowed list": lambda db: narrowed_counts(db, *MINE, ListFilter(operator="mtn"), ["mtn"], NOW, UNTIL),
    "counts by status": lambda db: status_counts(db, payments_table, ListScope(*MINE), NOW, UNTIL),
    "search for a number": lambda db: search(db, *MINE, "0000000020", [], NOW),
    "story of a payment": _read_story,
    "find what a statement names": lambda db: _subject_of_line(db, STATED, '["c"]'),
    "find the payment of a refund that is not ours": lambda db: _given_back(db, STATED, '["c"]'),
    "claim a reconciliation": lambda db: runs.claim(db, ["op"], NOW),
    "recent reconciliations": lambda db: runs.recent_runs(db, NOW),
    "attempts by operator": lambda db: recent_attempts(db, NOW),
    "key": lambda db: api_keys.caller_by_hash(db, "h"),
    "endpoint": lambda db: merchants.endpoint(db, *MINE),
    "balance": lambda db: wallets.wallet(db, *MINE, "XOF"),
    "held": lambda db: held(db, *MINE, "XOF"),
    "figures of a month": lambda db: month_figures(db, *MINE, range(0, 48 * DAYS + 1, 24), "XOF", 7, 0),
    "failed deliveries of a day": lambda db: delivery_log.failed_since(db, *MINE, Instant(0)),
    "payments that wait for long": lambda db: payment_lists.count_waiting(db, *MINE, NOW),
    "deliveries that are retried": lambda db: delivery_log.retried(db, *MINE),
}


#: Where any other index would read more than the rows that are wanted.
BY_INDEX = {
    "deliveries of a status": "ix_webhook_deliveries_event",
    "deliveries of an event": "ix_webhook_deliveries_event",
    "deliveries of a payment": "ix_webhook_deliveries_payment_id",
    "walk payments": "ix_payments_newest",
    "walk refunds": "ix_refunds_newest",
    "walk deliveries": "ix_webhook_deliveries_newest",
    "search for a telephone number": "ix_payments_phone_number",
    "search for a name": "customer_names",
    "last four digits": "ix_payments_newest",
    "narrowed list": "ix_payments_newest",
    "narrowed list of a status": "ix_payments_status",
    "counts of a narrowed list": "ix_payments_newest",
    "session of any merchant": "uq_payment_links_session_external_id",
    "telephone number of any merchant": "ix_payments_phone_number",
    "held": "ix_refunds_held",
    "figures of a month": "payment_figures",
    "payments that wait for long": "ix_payments_status",
    "deliveries that are retried": "ix_webhook_deliveries_retries",
    "exhausted deliveries": "ix_webhook_deliveries_exhausted",
    "reopened wallets": "ix_wallets_release_pending",
    "place of a lapsed reservation": "ix_payments_link_reserved_until",
    "lapsed reservations of a link": "ix_payments_link_reserved_until",
    "link by external_id": "uq_payment_links_external_id",
    "sales of a day": "ix_payment_links_sales",
    "sales of a cashier": "ix_payment_links_cashier",
    "payments of a link": "ix_payments_link",
    "list payments of a link": "ix_payments_link",
    "list payments of a number": "ix_payments_phone_number",
    "list events": "ix_events_place",
    "operator's reference of any account": "ix_payments_provider_reference",
    "open incident of an account": "ix_incidents_open_account",
}


BIG = (
    "payments|refunds|events|webhook_deliveries|payment_links|wallet_entries|postings|list_counts|list_count_changes|payment_figures|api_keys"
    "|provider_callbacks|unmatched_callbacks"
    "|reconciliation_runs|operator_attempts|incidents|disputes|late_results|late_returns|audit_log"
)


async def test_frequent_statements_use_indexes(settings: Settings) -> None:
    """A full scan of what grows is a fault, on both databases."""
    async with service(settings) as opened:
        db = opened.ctx.db
        await _load(db, embedded=settings.embedded)
        faults = []
        for name, run in HOT.items():
            recording_db = RecordingDatabase(db)
            await run(recording_db)
            assert recording_db.seen, name
            plans = [await _plan(db, *seen, embedded=settings.embedded) for seen in recording_db.seen]
            faults += [f"{name}\n{plan}" for plan in plans if _is_costly(plan, embedded=settings.embedded)]
            if not any(BY_INDEX.get(name, "") in plan for plan in plans):
                faults.append(f"{name} without {BY_INDEX[name]}\n" + "\n".join(plans))
    assert faults == [], "\n\n".join(faults)


#: PostgreSQL keeps a plan until its statistics change: these must be good for a table that was empty when it was made.
MANY: dict[str, tuple[Any, str]] = {
    "record": (deliveries._RECORD, "pk_webhook_deliveries"),
    "finish": (payments._FINISH.statement, "pk_payments"),
    "lease": (pending._LEASE.statement, "pk_payments"),
    "record_initiation": (pending._RECORD_INITIATION.statement, "pk_payments"),
    "schedule_next_poll": (pending._SCHEDULE_NEXT_POLL.statement, "pk_payments"),
    "create_payment": (payments._INSERT_LIVE, "pk_wallets"),
    "mark_asked": (callbacks._MARK_ASKED.statement, "pk_provider_callbacks"),
    "end_uses": (links._END_USES, "pk_payment_links"),
    "postings_about": (postings._ABOUT["payment"], "uq_postings_cause"),
    "incidents_about": (incidents._ABOUT, "uq_incidents_reference"),
    "delete_empty_counts": (_DELETE_EMPTY, "pk_list_counts"),
}


async def test_batch_statements_use_keys_on_empty_tables(postgres_server: str, postgres_template: str) -> None:
    server = await asyncpg.connect(postgres_server)
    await server.execute(f"CREATE DATABASE first_day TEMPLATE {postgres_template}")
    await server.close()
    kept = {**PLANNER_SETTINGS, "plan_cache_mode": "force_generic_plan"}
    connection = await asyncpg.connect(postgres_server.replace("/postgres?", "/first_day?"), server_settings=kept)
    unnested = ArrayStatements()
    for name, (statement, key) in MANY.items():
        written = statement if statement.is_select else unnested[statement]
        compiled = CompiledStatement(written, PostgresDialect())  # type: ignore[no-untyped-call]
        await connection.execute(f"PREPARE {name} AS {compiled.text}")
        unknown = ", ".join(["NULL"] * len(set(re.findall(r"\$\d+", compiled.text))))
        plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE {name}({unknown})"))
        assert f"Index Scan using {key} " in plan, plan
        assert " Join" not in plan, plan
    await connection.close()


async def test_a_statement_for_many_rows_is_planned_once(postgres_server: str, postgres_template: str) -> None:
    """By each connection, for any number of rows, after the five plans that PostgreSQL makes of every statement."""
    server = await asyncpg.connect(postgres_server)
    await server.execute(f"CREATE DATABASE planned_once TEMPLATE {postgres_template}")
    await server.close()
    url = postgres_server.replace("/postgres?", "/planned_once?")
    connection = await asyncpg.connect(url, server_settings=PLANNER_SETTINGS)
    for statement in (deliveries._RECORD, payments._FINISH.statement, pending._RECORD_INITIATION.statement):
        compiled = CompiledStatement(ArrayStatements()[statement], PostgresDialect())  # type: ignore[no-untyped-call]
        prepared = await connection.prepare(compiled.text)
        for _ in range(7):
            await prepared.fetch(*compiled.positional(encode_rows([])))
        used = "SELECT generic_plans FROM pg_prepared_statements WHERE statement = $1"
        assert await connection.fetchval(used, compiled.text) == 2, compiled.text
    await connection.close()


async def _plan(db: Database, statement: Executable, params: dict[str, Any], *, embedded: bool) -> str:
    """Explained as text, with the values in it: what the database would do with exactly this statement."""
    if embedded:
        compiled_statement = statement.compile(dialect=sqlite_dialect(paramstyle="named"))  # type: ignore[attr-defined]
        explain = text(f"EXPLAIN QUERY PLAN {compiled_statement}")
        return "\n".join(row[3] for row in await db.all(explain, **{**compiled_statement.params, **params}))
    compiled = CompiledStatement(statement, PostgresDialect())  # type: ignore[no-untyped-call]
    explain = text("EXPLAIN " + re.sub(r"\$(\d+)(::\w+)?", r":p\1", compiled.text).replace("::", r"\:\:"))
    async with db.transaction() as tx:
        # The tables are small: a scan that remains is one that no index could have spared.
        await tx.all(text("SET LOCAL enable_seqscan = off"))
        rows = await tx.all(_literally(explain, compiled.positional(params)))
        if not statement.is_select:  # The connections for writes plan without the values.
            await tx.all(text(f"PREPARE explained AS {compiled.text}".replace(":", r"\:")))
            unknown = ", ".join(["NULL"] * len(set(re.findall(r"\$\d+", compiled.text))))
            rows += await tx.all(text(f"EXPLAIN EXECUTE explained{unknown and f'({unknown})'}"))
            await tx.all(text("DEALLOCATE explained"))
    return "\n".join(row[0] for row in rows)


def _literally(explain: Any, values: Sequence[Any]) -> Executable:
    """With literals in place of the parameters."""
    literal_sql = str(explain)
    for number in range(len(values), 0, -1):
        value = values[number - 1]
        quoted = "'" + str(value).replace("'", "''") + "'"
        literal = "NULL" if value is None else str(value) if isinstance(value, int) else quoted
        literal_sql = re.sub(rf":p{number}\b", literal.replace("\\", r"\\"), literal_sql)
    return text(re.sub(r"(?<!\\):(?=\w)", r"\:", literal_sql.replace(r"\:\:", "::")).replace("::", r"\:\:"))


def _is_costly(plan: str, *, embedded: bool) -> bool:
    if embedded:
        return any(
            re.match(rf"SCAN ({BIG})\b", line) and not re.search(r"_suspended|USING INTEGER PRIMARY KEY", line)
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
        "status, attempts, created_at, next_attempt_at) "
        "SELECT merchant_id, env, reference, id, 'payment.failed', 'account', 'u', 'd:443', status, 0, id, "
        "next_poll_at FROM payments",
        "INSERT INTO events (merchant_id, env, reference, payment_id, event, body, created_at) "
        "SELECT merchant_id, env, reference, id, 'payment.failed', '{}', id FROM payments",
        "INSERT INTO provider_callbacks (merchant_id, env, subject_type, subject_id, provider_account, received_at, "
        "received_count, status, due_at) SELECT merchant_id, env, 'payment', id, 'c', id, 1, "
        "CASE WHEN status = 'pending' THEN 'pending' ELSE 'asked' END, next_poll_at FROM payments",
        "INSERT INTO unmatched_callbacks (provider_account, path, body, reason, received_at) "
        f"SELECT CASE WHEN n % 2 = 0 THEN 'full' ELSE 'a' || n END, '/', '', 'no_match', n FROM {number.format(rows)}",
        "INSERT INTO payment_links (merchant_id, token, type, amount, currency, description, reserved_uses, "
        "completed_uses, created_at, external_id) "
        f"SELECT 1 + n % 50, 't' || n, 'permanent', 1, 'XOF', 'd', 0, 0, 1, 'l' || n FROM {number.format(rows)}",
        "INSERT INTO incidents (merchant_id, env, kind, subject_type, reference, provider_account, detail, "
        "occurrences, opened_at, last_seen_at, closed_at) "
        f"SELECT merchant_id, 'live', 'stuck', 'payment', reference, 'c', '{encode(verbatim('d'))}', 1, 1, 1, "
        "CASE WHEN id % 3 = 0 THEN 1 END FROM payments",
        "INSERT INTO wallet_entries (merchant_id, env, currency, amount, subject_id, suspended, created_at) "
        f"SELECT 1 + n % 50, 'live', 'XOF', 1, n, {no}, 1 FROM {number.format(rows)}",
        "INSERT INTO payment_figures (merchant_id, env, hour, operator, currency, status, payment_count, amount, "
        f"validation_time) SELECT 1 + n % 50, 'test', n, 'mtn', 'XOF', 'failed', 1, 1, 0 FROM {number.format(rows)}",
        "UPDATE payments SET link_id = 1 + id % 50, phone_number = '22990000' || id % 100, link_reserved_until = 1000 "
        "WHERE id % 20 = 0",
    )
    await _run(db, "ANALYZE")


async def _run(db: Database, *statements: str) -> None:
    async with db.transaction() as tx:
        for statement in statements:
            await tx.all(text(statement))
