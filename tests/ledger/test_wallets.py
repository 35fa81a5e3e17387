"""Wallets under several workers: the balance is exact, and a row exists once."""

import asyncio

from sqlalchemy import select, update

from guichet.clock import SECOND, Instant
from guichet.db import tables as t
from guichet.db.engine import Database, require
from guichet.domain.ids import MerchantId
from guichet.domain.money import Hundredths
from guichet.domain.posting_rules import Movement, collection, float_account
from guichet.ledger import postings, wallets

NOW = Instant(1_000 * SECOND)


async def test_rollup_by_several_workers_keeps_the_balance(merchant_db: Database, worker_dbs: list[Database]) -> None:
    async def credit(number: int) -> None:
        posting = collection(float_account("live", "", "XOF"), Hundredths(100 * number), Hundredths(0), "XOF")
        async with worker_dbs[number % 4].transaction() as tx:
            await postings.post(
                tx, [Movement(MerchantId(1), "live", "XOF", "payment.succeeded", number, posting, Instant(number))]
            )

    async def roll_up(each: Database) -> None:
        for _ in range(10):
            await wallets.roll_up(each, 7)
            wallet = await wallets.wallet(each, MerchantId(1), "live", "XOF")
            assert wallet is not None

    await asyncio.gather(*(credit(number) for number in range(1, 41)), *(roll_up(each) for each in worker_dbs))
    while await wallets.roll_up(merchant_db, 100):
        pass
    wallet = require(await wallets.wallet(merchant_db, MerchantId(1), "live", "XOF"))
    assert wallet.balance == 100 * sum(range(1, 41))
    assert await merchant_db.scan(select(t.wallet_entries)) == []


async def test_what_a_transaction_moves_is_one_entry_of_each_wallet(merchant_db: Database) -> None:
    """Its instant is that of the newest movement. A suspended credit is an entry of its own."""
    credit, fees = Hundredths(500_00), Hundredths(10_00)
    free, waiting = (
        collection(float_account("live", "", "XOF"), credit, fees, "XOF", to_suspense=suspended)
        for suspended in (False, True)
    )
    movements = [
        *(
            Movement(MerchantId(1), "live", "XOF", "payment.succeeded", place, free, Instant(9 - place))
            for place in (1, 2)
        ),
        Movement(MerchantId(1), "test", "XOF", "payment.succeeded", 3, free, Instant(3)),
        *(Movement(MerchantId(1), "live", "XOF", "payment.succeeded", place, waiting, NOW) for place in (4, 5)),
    ]
    async with merchant_db.transaction() as tx:
        await postings.post(tx, movements)
    columns = (t.wallet_entries.c[name] for name in ("env", "suspended", "amount", "created_at"))
    entries = sorted(tuple(row) for row in await merchant_db.scan(select(*columns)))
    kept = free[0].amount
    assert entries == [
        ("live", False, 2 * kept, 8),
        ("live", True, kept, NOW),
        ("live", True, kept, NOW),
        ("test", False, kept, 3),
    ]
    wallet = require(await wallets.wallet(merchant_db, MerchantId(1), "live", "XOF"))
    assert wallet.balance == 2 * kept
    assert len(await merchant_db.scan(select(t.postings))) == 2 * len(movements)


async def test_repeated_freezing_keeps_one_wallet_row_per_currency(merchant_db: Database) -> None:
    for status in ("Gelé", "Actif", "Gelé", "Gelé"):
        async with merchant_db.transaction() as tx:
            await wallets.set_wallet_status(tx, MerchantId(1), "live", "XOF", status, NOW)
    rows = await merchant_db.scan(select(t.wallets.c.status).where(t.wallets.c.env == "live"))
    assert [row[0] for row in rows] == ["Gelé"]
    await merchant_db.write(update(t.wallets).values(status="Actif").where(t.wallets.c.env == "live"))
