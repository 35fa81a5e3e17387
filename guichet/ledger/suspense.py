"""Suspended credits: released when their wallet is `Actif` again (D24).

Reopening a wallet sets `release_pending` in its row, in the same transaction; whoever releases its last suspended
credit clears it. So nothing is looked for as long as no wallet was reopened.

No suspended credit can come after the flag was cleared: a settlement that finds a wallet frozen keeps its row locked
until it has committed (`postings.frozen_wallets`), and reopening changes that row. So either the settlement commits
first and its credit is released with the others, or it finds the wallet `Actif` and suspends nothing.
"""

from typing import Final

from sqlalchemy import bindparam, delete, select, text, update

from guichet.clock import Instant
from guichet.db.engine import Database, Transaction
from guichet.db.sql_functions import equal
from guichet.db.tables import wallet_entries, wallets
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency
from guichet.domain.posting_rules import UNSUSPENDED, Movement, suspense_release
from guichet.ledger import postings
from guichet.ledger.wallets import THIS_WALLET

#: In the words of its partial index, which SQLite would not use for `release_pending = 1`.
_RELEASE_PENDING: Final = text("wallets.release_pending")
_REOPENED: Final = (
    select(wallets.c.merchant_id, wallets.c.env, wallets.c.currency)
    .where(_RELEASE_PENDING)
    .order_by(wallets.c.merchant_id, wallets.c.env, wallets.c.currency)
    .limit(1)
)
_LOCK: Final = select(wallets.c.status).where(*THIS_WALLET, wallets.c.release_pending).with_for_update()
_SUSPENDED: Final = (
    select(wallet_entries.c.id)
    .where(*equal(wallet_entries, "merchant_id", "env", "currency"), wallet_entries.c.suspended)
    .order_by(wallet_entries.c.id)
    .limit(bindparam("most"))
)
_TAKE: Final = (
    delete(wallet_entries)
    .where(wallet_entries.c.id.in_(_SUSPENDED))
    .returning(wallet_entries.c.amount, wallet_entries.c.subject_id)
)
_ALL_RELEASED: Final = update(wallets).where(*THIS_WALLET).values(release_pending=False)


async def release_next(db: Database, now: Instant, most: int) -> int:
    """Releases up to `most` suspended credits of one reopened wallet; how many. Run by the worker.

    Cost while no wallet was reopened: a look into an index that is empty.
    """
    reopened = await db.one(_REOPENED)
    if reopened is None:
        return 0
    merchant_id, env, currency = reopened
    async with db.transaction() as tx:
        return await release(tx, merchant_id, env, currency, now, most)


async def release(
    tx: Transaction, merchant_id: MerchantId, env: Environment, currency: Currency, now: Instant, most: int
) -> int:
    """Releases up to `most` suspended credits of this wallet, the oldest first, if it was reopened; how many.

    The wallet's row stays locked until the transaction ends, so that each credit is released once.
    """
    wallet = {"merchant_id": merchant_id, "env": env, "currency": currency}
    if await tx.one(_LOCK, **wallet) is None:
        return 0
    rows = await tx.write_all(_TAKE, **wallet, most=most)
    movements = [
        Movement(merchant_id, env, currency, UNSUSPENDED, subject_id, suspense_release(amount), now)
        for amount, subject_id in rows
    ]
    await postings.post(tx, movements)
    if len(rows) < most:
        await tx.write(_ALL_RELEASED, **wallet)
    return len(rows)
