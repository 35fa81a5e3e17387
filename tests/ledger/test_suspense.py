"""Suspended credits are released when their wallet is reopened, all of them, and nothing is looked for otherwise."""

import asyncio

import pytest
from sqlalchemy import func, select, text

from guichet.clock import SECOND, Instant
from guichet.db import tables as t
from guichet.db.engine import Database, Transaction, require
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency, Hundredths
from guichet.domain.posting_rules import COLLECTED, Movement, WalletStatus, collection
from guichet.ledger import postings, suspense, wallets
from tests.fakes.recording_database import RecordingDatabase
from tests.patience import PATIENCE

NOW = Instant(1_000 * SECOND)
WalletKey = tuple[MerchantId, Environment, Currency]
MINE: WalletKey = (MerchantId(1), "live", "XOF")
only_postgresql = pytest.mark.parametrize("settings", ["postgresql"], indirect=True)


async def set_status(db: Database, status: WalletStatus, currency: Currency = "XOF") -> None:
    async with db.transaction() as tx:
        await wallets.set_wallet_status(tx, MerchantId(1), "live", currency, status, NOW)


async def credit(tx: Transaction, number: int, frozen: set[WalletKey]) -> None:
    """What a settlement posts, once it has looked which wallets are frozen."""
    entries = collection("mtn", Hundredths(100), Hundredths(0), "XOF", to_suspense=MINE in frozen)
    await postings.post(tx, [Movement(MerchantId(1), "live", "XOF", COLLECTED, number, entries, NOW)])


async def settle(db: Database, number: int) -> None:
    async with db.transaction() as tx:
        await credit(tx, number, await postings.frozen_wallets(tx, [MerchantId(1)]))


async def suspended(db: Database) -> int:
    [(count,)] = await db.scan(select(func.count()).where(t.wallet_entries.c.suspended))
    return int(count)


async def release_all(db: Database, most: int = 3) -> int:
    released = 0
    while posted := await suspense.release_next(db, NOW, most):
        released += posted
    return released


async def somebody_waits_for_a_lock(db: Database) -> bool:
    return bool(await db.scan(text("SELECT 1 FROM pg_locks WHERE NOT granted")))


async def test_only_a_reopened_wallet_is_released_and_only_once(merchant_db: Database) -> None:
    await set_status(merchant_db, "Gelé")
    for number in range(7):
        await settle(merchant_db, number)
    assert (await release_all(merchant_db), await suspended(merchant_db)) == (0, 7)
    await set_status(merchant_db, "Actif")
    await set_status(merchant_db, "Fermé")
    assert (await release_all(merchant_db), await suspended(merchant_db)) == (0, 7), "frozen again before any release"
    await set_status(merchant_db, "Actif")
    assert (await release_all(merchant_db), await suspended(merchant_db)) == (7, 0)
    wallet = require(await wallets.wallet(merchant_db, *MINE))
    assert (wallet.balance, wallet.release_pending) == (700, False)


async def test_another_merchants_reopened_wallet_does_not_hold_up_mine(merchant_db: Database) -> None:
    """One without suspended credits is done with at the first look."""
    await set_status(merchant_db, "Gelé")
    await settle(merchant_db, 1)
    await set_status(merchant_db, "Actif", "EUR")
    await set_status(merchant_db, "Actif")
    assert [await suspense.release_next(merchant_db, NOW, 3) for _ in range(2)] == [0, 1]


async def test_without_a_reopened_wallet_one_look_is_all(merchant_db: Database) -> None:
    await set_status(merchant_db, "Gelé")
    await settle(merchant_db, 1)
    recording = RecordingDatabase(merchant_db)
    assert await suspense.release_next(recording, NOW, 3) == 0
    assert len(recording.seen) == 1


@only_postgresql
async def test_a_wallet_reopens_after_a_settlement_that_found_it_frozen(worker_dbs: list[Database]) -> None:
    """Before the lock, the flag was cleared between the look of the settlement and its credit: nobody released it."""
    settling, reopening, *_ = worker_dbs
    await set_status(settling, "Gelé")
    async with settling.transaction() as tx:
        frozen = await postings.frozen_wallets(tx, [MerchantId(1)])
        assert frozen == {MINE}
        reopened = asyncio.create_task(set_status(reopening, "Actif"))
        while not (reopened.done() or await somebody_waits_for_a_lock(worker_dbs[2])):
            await asyncio.sleep(0)
        await release_all(worker_dbs[2])
        await credit(tx, 1, frozen)
    await reopened
    assert await suspended(settling) == 1
    assert (await release_all(settling), await suspended(settling)) == (1, 0)


@only_postgresql
async def test_a_settlement_waits_for_a_wallet_that_is_being_reopened(worker_dbs: list[Database]) -> None:
    reopening, settling, *_ = worker_dbs
    await set_status(reopening, "Gelé")
    async with reopening.transaction() as tx:
        await wallets.set_wallet_status(tx, MerchantId(1), "live", "XOF", "Actif", NOW)
        settled = asyncio.create_task(settle(settling, 1))
        while not (settled.done() or await somebody_waits_for_a_lock(worker_dbs[2])):
            await asyncio.sleep(0)
        assert not settled.done()
    await settled
    assert await suspended(settling) == 0
    assert require(await wallets.wallet(settling, *MINE)).balance == 100


@only_postgresql
async def test_settlements_into_an_active_wallet_wait_for_nobody(worker_dbs: list[Database]) -> None:
    """Another process holds the row of the wallet, as a refund or the rollup does."""
    await set_status(worker_dbs[0], "Actif")
    async with worker_dbs[0].transaction() as tx:
        await wallets.lock(tx, *MINE, NOW)
        async with asyncio.timeout(PATIENCE):
            await settle(worker_dbs[1], 1)


async def test_no_credit_is_left_behind_however_the_wallet_is_frozen_and_reopened(worker_dbs: list[Database]) -> None:
    async def freeze_and_reopen() -> None:
        for _ in range(10):
            await set_status(worker_dbs[0], "Gelé")
            await set_status(worker_dbs[0], "Actif")

    async def settle_many(process: int) -> None:
        for number in range(20):
            await settle(worker_dbs[process], 100 * process + number)

    async def releases() -> None:
        for _ in range(40):
            await suspense.release_next(worker_dbs[3], NOW, 2)
            await wallets.roll_up(worker_dbs[3], 5)

    await asyncio.gather(freeze_and_reopen(), settle_many(1), settle_many(2), releases(), releases())
    await release_all(worker_dbs[0])
    assert await suspended(worker_dbs[0]) == 0
    wallet = require(await wallets.wallet(worker_dbs[0], *MINE))
    assert (wallet.balance, wallet.release_pending) == (4000, False)
