"""`guichet ledger audit`: an untouched ledger is clean, and each kind of tampering is reported with its row."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from guichet.bootstrap import database
from guichet.clock import DAY, SystemClock
from guichet.db.engine import Database
from guichet.domain.messages import decode
from guichet.ledger.audit import audit
from guichet.settings import Settings
from tests.cli.conftest import Cli
from tests.invariants import check_books
from tests.ledger.ledger_history import RawSql, live, yesterday
from tests.patience import PATIENCE

TABLES = ("postings", "wallets", "wallet_entries", "ledger_hash_chain", "payments", "refunds")


async def test_the_audit_of_an_untouched_ledger_finds_nothing(settings: Settings, cli: Cli, raw_sql: RawSql) -> None:
    async with yesterday(settings) as service:
        await live(service)
        await service.run_worker(200)
        await service.merchant("Nobody yet")
        late = await service.merchant("Late")
        await late.pay("0000", amount=100)
        await service.run_worker(1)
        await check_books(service.ctx.db)
    report = cli("ledger", "audit", "--json").json
    assert report["clean"] is True
    assert set(report["checks"].values()) == {None}
    [(postings, payments, refunds)] = await raw_sql.run(
        "SELECT (SELECT count(*) FROM postings), (SELECT count(*) FROM payments), (SELECT count(*) FROM refunds)"
    )
    assert (report["postings"], report["payments"], report["refunds"]) == (postings, payments, refunds)
    [(head, last_chained)] = await raw_sql.run(
        "SELECT digest, last_posting_id FROM ledger_hash_chain ORDER BY id DESC LIMIT 1"
    )
    assert report["head"] == head
    assert 0 < last_chained < postings, "some postings are in the chain, some are not"
    owed = {(each["env"], each["currency"], each["account"], each["wallet"]): each["amount"] for each in report["owed"]}
    [(took,)] = await raw_sql.run(
        "SELECT sum(CASE WHEN source = 'float:op::XOF' THEN amount ELSE -amount END) FROM postings"
        " WHERE 'float:op::XOF' IN (source, destination) AND env = 'live' AND currency = 'XOF'"
    )
    assert owed["live", "XOF", "op", ""] == int(took) / 100
    assert owed["live", "EUR", "op", ""] > 12.34
    shown = cli("ledger", "audit", "--known-head", head)
    assert shown.code == 0
    assert head in shown.out
    assert await raw_sql.run("SELECT fault, head, postings FROM ledger_audits") == [(None, head, postings)] * 2


LINK = "Link 1 of the hash chain"
#: The SQL of a tampering, where {…} stands for the id of a row; then what the audit reports.
IN_THE_CHAIN = [
    (
        "UPDATE postings SET amount = amount + 100 WHERE id = {chained}",
        "Posting {chained} was changed. " + LINK,
    ),
    ("UPDATE postings SET created_at = created_at + 1 WHERE id = {chained}", "Posting {chained} was changed"),
    ("UPDATE postings SET source = 'float:moov::XOF' WHERE id = {chained}", "Posting {chained} was changed"),
    ("DELETE FROM postings WHERE id = {chained}", "Posting {chained} was removed. " + LINK),
    ("DELETE FROM postings WHERE id = {edge}", "Posting {edge} was removed. " + LINK),
    (
        "INSERT INTO postings (id, merchant_id, env, currency, cause, subject_id, leg, source, destination, amount,"
        " created_at) VALUES (0, {shop}, 'live', 'XOF', 'gift', 1, 'amount', 'float:op::XOF', 'wallet', 500000, 1)",
        "Posting 0 was inserted before the first link",
    ),
    (
        "UPDATE ledger_hash_chain SET row_hashes = replace(row_hashes, substr(row_hashes, 1, 16), 'ffffffffffffffff')",
        "Posting 1 was changed",
    ),
    (
        "UPDATE ledger_hash_chain SET posting_ids = '1-3' WHERE id = 1",
        LINK + " was rewritten: it has 3",
    ),
    ("UPDATE ledger_hash_chain SET posting_ids = 'nonsense' WHERE id = 1", LINK + " was rewritten"),
    (
        "UPDATE ledger_hash_chain SET digest = '{zeros}' WHERE id = 1",
        LINK + " was rewritten: its digest",
    ),
    (
        "DELETE FROM ledger_hash_chain WHERE id = 1",
        "A link of the hash chain is missing: link 2 begins at posting {second}, not 1",
    ),
]
AFTER_THE_CHAIN = [
    (
        "UPDATE postings SET amount = amount + 100 WHERE id = {open}",
        r"Payment {paid} \(live, succeeded\): posting {open} ",
    ),
    ("DELETE FROM postings WHERE id = {open}", r"Payment {paid} \(live, succeeded\): its posting payment.succeeded, "),
    (
        "INSERT INTO postings (merchant_id, env, currency, cause, subject_id, leg, source, destination, amount,"
        " created_at) VALUES ({shop}, 'live', 'XOF', 'gift', 1, 'amount', 'float:op::XOF', 'wallet', 500000, 1)",
        r"Posting \d+ \(gift\) belongs to no subject 1 ",
    ),
    (
        "INSERT INTO postings (merchant_id, env, currency, cause, subject_id, leg, source, destination, amount,"
        " created_at) VALUES ({other}, 'live', 'XOF', 'payment.succeeded', {paid_id}, 'amount', 'float:op::XOF',"
        " 'wallet', 500000, 1)",
        r"Posting \d+ \(payment.succeeded\) belongs to no payment {paid_id} ",
    ),
    (
        "INSERT INTO postings (merchant_id, env, currency, cause, subject_id, leg, source, destination, amount,"
        " created_at) VALUES ({shop}, 'live', 'XOF', 'payment.succeeded', {failed_id}, 'amount', 'float:op::XOF',"
        " 'wallet', 500000, 1)",
        r"Payment \S+ \(live, failed\): posting \d+ books it all the same",
    ),
    ("UPDATE postings SET env = 'test' WHERE id = {open}", "Payment {paid} .* is booked in test XOF"),
    (
        "UPDATE wallets SET balance = balance + 1 WHERE merchant_id = {shop} AND env = 'live' AND currency = 'XOF'",
        "The live XOF wallet of merchant {shop} is wrong: it and its entries hold [0-9.]+, its postings add up to",
    ),
    (
        "DELETE FROM wallets WHERE merchant_id = {shop} AND env = 'live' AND currency = 'XOF'",
        "The live XOF wallet of merchant {shop} is wrong: it and its entries hold [-0-9.]+, its",
    ),
    (
        "DELETE FROM wallet_entries WHERE NOT suspended AND subject_id = {paid_id}",
        "The live XOF wallet of merchant {shop} is wrong",
    ),
    (
        "DELETE FROM wallet_entries WHERE suspended AND subject_id = {waiting_id}",
        "The live XOF suspense of merchant {other} is wrong: the waiting entries hold 9100, "
        "its postings add up to 18100",
    ),
    (
        "UPDATE wallet_entries SET amount = 1 WHERE suspended AND subject_id = {waiting_id}",
        r"Wallet entry \d+ waits with 0.01, 9000 is in suspense",
    ),
    (
        "UPDATE wallet_entries SET subject_id = 1 WHERE suspended AND subject_id = {waiting_id}",
        r"Wallet entry \d+ waits for payment 1, which put nothing in suspense",
    ),
    ("UPDATE payments SET status = 'failed' WHERE id = {paid_id}", r"Payment {paid} \(live, failed\): posting"),
    (
        "UPDATE payments SET amount = amount + 100, total_amount = total_amount + 100 WHERE id = {paid_id}",
        "Payment {paid}",
    ),
    (
        "UPDATE payments SET env = 'test' WHERE id = {paid_id}",
        r"Payment {paid} \(test, succeeded\): .* booked in live XOF",
    ),
    (
        "UPDATE payments SET status = 'succeeded' WHERE id = {refunded_id}",
        r"Payment {refunded} \(live, succeeded\): its refund is succeeded",
    ),
    (
        "UPDATE refunds SET status = 'failed', processed_at = 1, next_poll_at = NULL WHERE payment_id = {returning_id}",
        r"Refund \S+ \(live, failed\): its posting refund.failed, amount is missing",
    ),
    ("UPDATE refunds SET amount = amount + 100 WHERE payment_id = {returning_id}", r"Refund \S+ .*: it returns"),
    ("UPDATE refunds SET held = NOT held WHERE payment_id = {returning_id}", r"Refund \S+ .*refund.requested, amount"),
    ("DELETE FROM refunds WHERE payment_id = {refunded_id}", r"Payment {refunded} .*: its refund is missing"),
]


@pytest.fixture
async def db(settings: Settings) -> AsyncIterator[Database]:
    opened = database(settings)
    await opened.open()
    yield opened
    await opened.close()


async def test_the_audit_names_each_tampered_row(settings: Settings, cli: Cli, db: Database, raw_sql: RawSql) -> None:
    async with yesterday(settings) as service:
        history = await live(service)
        await service.run_worker(200)
        await history.merchant.pay("0000")
        await service.run_worker(20)
        await service.run_worker(200)
        paid = await history.merchant.live.pay("0000", external_id="late")
        service.clock.advance(20)
        await history.merchant.live.get(f"/payments/{paid['reference']}")
    history.paid = paid
    names = await _names(raw_sql, history)
    assert len(names["links"]) == 2
    for table in TABLES:
        await raw_sql.keep(table)
    everything = [*IN_THE_CHAIN, *AFTER_THE_CHAIN]
    last_of_table = {_touched(statement): statement for statement, _ in everything}
    for statement, expected in everything:
        by_command = last_of_table[_touched(statement)] == statement
        # What an audit asks does not depend on what was changed: PostgreSQL meets one change of each table.
        if not (by_command or settings.embedded):
            continue
        done = statement.format(**names)
        await raw_sql.run(done)
        sentence = await _found(db, cli if by_command else None)
        assert re.match(expected.format(**names), sentence), (done, sentence)
        [(recorded,)] = await raw_sql.run("SELECT fault FROM ledger_audits ORDER BY id DESC LIMIT 1")
        assert sentence == str(decode(recorded))
        await raw_sql.restore(_touched(statement))
    assert cli("ledger", "audit", "--json").json["clean"] is True


async def _found(db: Database, cli: Cli | None) -> str:
    """The first fault, told by the command or by what it calls."""
    if cli is None:
        report = await audit(db, SystemClock(), lambda _: None)
        return str(report.fault)
    said = cli("ledger", "audit")
    assert said.code == 1
    return said.err.splitlines()[-1].removeprefix("✗ ")


def _touched(statement: str) -> str:
    words = statement.split()
    return words[1] if words[0] == "UPDATE" else words[2]


async def test_a_rewritten_hash_chain_contradicts_a_recorded_digest(
    settings: Settings, cli: Cli, raw_sql: RawSql
) -> None:
    async with yesterday(settings) as service:
        await live(service)
        await service.run_worker(200)
        known_head = cli("ledger", "audit", "--json").json["head"]
        await raw_sql.run("DELETE FROM ledger_hash_chain")
        await raw_sql.run("UPDATE postings SET created_at = created_at + 1")
        await service.run_worker(200)
    await raw_sql.run("DELETE FROM ledger_audits")
    await raw_sql.run("UPDATE published_heads SET published_at = NULL")
    assert cli("ledger", "audit").code == 0, "the new chain is sound in itself"
    said = cli("ledger", "audit", "--known-head", known_head)
    assert said.code == 1
    assert said.err.splitlines()[-1] == (
        f"✗ The hash chain does not contain the known head, digest {known_head}: it was cut short or rewritten."
    )


async def _names(raw_sql: RawSql, history: Any) -> dict[str, Any]:
    async def one(statement: str) -> Any:
        return (await raw_sql.run(statement))[0][0]

    links = await raw_sql.run("SELECT first_posting_id, last_posting_id FROM ledger_hash_chain ORDER BY id")
    ids = {
        f"{name}_id": await one(f"SELECT id FROM payments WHERE reference = '{getattr(history, name)['reference']}'")
        for name in ("paid", "refunded", "returning", "waiting")
    }
    return {
        **ids,
        "failed_id": await one("SELECT id FROM payments WHERE status = 'failed' AND env = 'live'"),
        "paid": history.paid["reference"],
        "refunded": history.refunded["reference"],
        "shop": history.merchant.id,
        "other": history.other.id,
        "links": links,
        "chained": links[0][0] + 4,
        "edge": links[0][1],
        "second": links[1][0],
        "open": await one(f"SELECT min(id) FROM postings WHERE id > {links[1][1]}"),
        "zeros": "0" * 64,
    }


async def test_the_audit_finds_nothing_while_the_service_runs(settings: Settings, cli: Cli) -> None:
    async with yesterday(settings) as service:
        history = await live(service)
        await service.run_worker(200)
        service.clock.advance(DAY)
        stopped = asyncio.Event()

        async def work() -> None:
            while not stopped.is_set():
                made = [
                    await merchant.pay("0000", amount=500)
                    for merchant in (history.merchant, history.merchant.live, history.other)
                    for _ in range(3)
                ]
                await service.run_worker(20)
                await history.merchant.post(f"/payments/{made[0]['reference']}/refund")
                await history.merchant.live.post(f"/payments/{made[3]['reference']}/refund")
                await service.worker.run_until_idle()

        working = asyncio.create_task(work())
        counts = list[int]()  # Postings of each audit.
        async with asyncio.timeout(PATIENCE):
            while len(counts) < 3 or len(set(counts)) == 1:  # Until it really was at work meanwhile.
                done = await asyncio.to_thread(cli, "ledger", "audit", "--json")
                assert done.code == 0, done
                counts.append(json.loads(done.out)["postings"])
        stopped.set()
        await working
