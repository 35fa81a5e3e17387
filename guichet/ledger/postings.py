"""Postings and wallets. A wallet is its folded balance plus its unfolded entries, so that a credit is one INSERT that
locks nothing; a debit locks the wallet row, so that two of them cannot spend the same money.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select, true, update
from sqlalchemy.dialects.postgresql import insert as upsert

from guichet.clock import Instant
from guichet.db.engine import Database, Reader, Row, Transaction, require
from guichet.db.sql_functions import json_numbers
from guichet.db.tables import postings, wallet_entries, wallets
from guichet.domain import posting_rules as ledger
from guichet.domain.posting_rules import ACTIVE, Movement, Posting, Wallet

_INSERT_POSTING: Final = insert(postings).values(
    {column.name: bindparam(column.name) for column in postings.c if column.name != "id"}
)
#: Postings that payments make, and those that refunds make.
OF_PAYMENTS: Final = or_(*(postings.c.cause == cause for cause in ledger.PAYMENT_CAUSES))
OF_REFUNDS: Final = or_(*(postings.c.cause == cause for cause in ledger.REFUND_CAUSES))

_INSERT_ENTRY: Final = insert(wallet_entries).values(
    {column.name: bindparam(column.name) for column in wallet_entries.c if column.name != "id"}
)
_MINE: Final = (
    wallets.c.merchant_id == bindparam("merchant_id"),
    wallets.c.env == bindparam("env"),
    wallets.c.currency == bindparam("currency"),
)
_MY_ENTRIES: Final = (
    wallet_entries.c.merchant_id == bindparam("merchant_id"),
    wallet_entries.c.env == bindparam("env"),
    wallet_entries.c.currency == bindparam("currency"),
    wallet_entries.c.suspended.is_(False),
)
_ENTRIES: Final = (
    select(
        func.coalesce(func.sum(wallet_entries.c.amount), 0).label("total"),
        func.max(wallet_entries.c.created_at).label("latest"),
    )
    .where(*_MY_ENTRIES)
    .subquery()
)
#: One statement, so that folding in between is never half seen.
_WALLET: Final = select(
    wallets.c.status, wallets.c.balance, wallets.c.updated_at, _ENTRIES.c.total, _ENTRIES.c.latest
).select_from(_ENTRIES.outerjoin(wallets, and_(true(), *_MINE)))
_WALLETS_OF: Final = (
    select(wallets.c.env, wallets.c.currency)
    .where(wallets.c.merchant_id == bindparam("merchant_id"))
    .union(
        select(wallet_entries.c.env, wallet_entries.c.currency).where(
            wallet_entries.c.merchant_id == bindparam("merchant_id")
        )
    )
    .order_by("env", "currency")
)
_STATUS: Final = select(wallets.c.status).where(*_MINE)
_NOT_ACTIVE: Final = select(wallets.c.merchant_id, wallets.c.env, wallets.c.currency).where(
    wallets.c.merchant_id.bool_op("IN")(json_numbers(bindparam("ids"))), wallets.c.status != ACTIVE
)
_LOCK: Final = select(wallets.c.status, wallets.c.balance).where(*_MINE).with_for_update()
_UNFOLDED: Final = select(_ENTRIES.c.total)

_NEW_WALLET: Final = upsert(wallets).values(
    merchant_id=bindparam("merchant_id"),
    env=bindparam("env"),
    currency=bindparam("currency"),
    status=bindparam("status"),
    balance=bindparam("balance"),
    updated_at=bindparam("now"),
)
_ENSURE: Final = _NEW_WALLET.on_conflict_do_nothing()
_SET_STATUS: Final = _NEW_WALLET.on_conflict_do_update(
    index_elements=["merchant_id", "env", "currency"], set_={"status": _NEW_WALLET.excluded.status}
)
_FOLD: Final = _NEW_WALLET.on_conflict_do_update(
    index_elements=["merchant_id", "env", "currency"],
    set_={
        "balance": wallets.c.balance + _NEW_WALLET.excluded.balance,
        "updated_at": _NEW_WALLET.excluded.updated_at,
    },
)
_OLDEST_ENTRIES: Final = (
    select(wallet_entries.c.id)
    .where(wallet_entries.c.suspended.is_(False))
    .order_by(wallet_entries.c.id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
    .cte("oldest")
)
_TAKE_ENTRIES: Final = (
    delete(wallet_entries).where(wallet_entries.c.id.in_(select(_OLDEST_ENTRIES.c.id))).returning(*wallet_entries.c)
)
_SUSPENDED: Final = (
    select(wallet_entries.c.id)
    .join(
        wallets,
        and_(
            wallets.c.merchant_id == wallet_entries.c.merchant_id,
            wallets.c.env == wallet_entries.c.env,
            wallets.c.currency == wallet_entries.c.currency,
        ),
    )
    .where(wallet_entries.c.suspended, wallets.c.status == ACTIVE)
    .order_by(wallet_entries.c.id)
    .limit(bindparam("most"))
)
_RELEASE: Final = (
    update(wallet_entries)
    .where(wallet_entries.c.id.in_(_SUSPENDED), wallet_entries.c.suspended)
    .values(suspended=False, created_at=bindparam("now"))
    .returning(*wallet_entries.c)
)


async def post(tx: Transaction, movements: Sequence[Movement]) -> None:
    """Writes postings and their effect on the wallets; a cause told twice violates `uq_postings_cause`."""
    rows: list[dict[str, object]] = []
    effects: list[dict[str, object]] = []
    for movement in movements:
        subject = {
            "merchant_id": movement.merchant_id,
            "env": movement.env,
            "currency": movement.currency,
            "created_at": movement.created_at,
            "subject_id": movement.subject_id,
        }
        rows += [_posting(subject, movement.cause, entry) for entry in movement.entries]
        waiting = sum(entry.amount for entry in movement.entries if entry.destination == ledger.SUSPENSE)
        effect = ledger.wallet_movement(movement.entries)
        effects += [{**subject, "amount": waiting, "suspended": True}] if waiting else []
        effects += [{**subject, "amount": effect, "suspended": False}] if effect else []
    await tx.execute_many(_INSERT_POSTING, rows)
    await tx.execute_many(_INSERT_ENTRY, effects)


def _posting(subject: dict[str, object], cause: str, entry: Posting) -> dict[str, object]:
    return {
        **subject,
        "cause": cause,
        "leg": entry.leg,
        "source": entry.source,
        "destination": entry.destination,
        "amount": entry.amount,
    }


async def wallet(db: Reader, merchant_id: int, env: str, currency: str) -> Wallet | None:
    """The wallet as of now; None when it never moved and was never made. Cost: one row and its unfolded entries."""
    row = require(await db.one(_WALLET, merchant_id=merchant_id, env=env, currency=currency))
    status, balance, updated_at, unfolded, latest = row
    if status is None and latest is None:
        return None
    moved_at = max(instant for instant in (updated_at, latest) if instant is not None)
    return Wallet(merchant_id, env, currency, status or ACTIVE, int((balance or 0) + unfolded), moved_at)


async def wallets_of(db: Database, merchant_id: int) -> list[Wallet]:
    found = [
        await wallet(db, merchant_id, env, currency)
        for env, currency in await db.all(_WALLETS_OF, merchant_id=merchant_id)
    ]
    return [each for each in found if each is not None]


async def wallet_status(db: Reader, merchant_id: int, env: str, currency: str) -> str:
    """A wallet without a row was never frozen."""
    row = await db.one(_STATUS, merchant_id=merchant_id, env=env, currency=currency)
    return row[0] if row else ACTIVE


async def frozen_wallets(db: Reader, merchant_ids: Collection[int]) -> set[tuple[int, str, str]]:
    """Of these merchants, the wallets (merchant, environment, currency) that take no movement. Cost: their wallets."""
    rows = await db.all(_NOT_ACTIVE, ids=json.dumps(sorted(merchant_ids)))
    return {tuple(row) for row in rows}


async def set_wallet_status(
    tx: Transaction, merchant_id: int, env: str, currency: str, status: str, now: Instant
) -> None:
    await tx.write(_SET_STATUS, merchant_id=merchant_id, env=env, currency=currency, status=status, balance=0, now=now)


async def lock_balance(tx: Transaction, merchant_id: int, env: str, currency: str, now: Instant) -> int:
    """The balance in hundredths, with the wallet row locked until the transaction ends: ask before every debit."""
    mine = {"merchant_id": merchant_id, "env": env, "currency": currency}
    await tx.write(_ENSURE, **mine, status=ACTIVE, balance=0, now=now)
    _, balance = require(await tx.one(_LOCK, **mine))
    (unfolded,) = require(await tx.one(_UNFOLDED, **mine))
    return int(balance + unfolded)


async def fold(db: Database, most: int) -> int:
    """Moves up to `most` entries into their wallets; how many it moved. Run by the worker."""
    async with db.transaction() as tx:
        taken = await tx.all(_TAKE_ENTRIES, most=most)
        for (merchant_id, env, currency), (amount, latest) in sorted(_sums(taken).items()):
            await tx.write(
                _FOLD, merchant_id=merchant_id, env=env, currency=currency, status=ACTIVE, balance=amount, now=latest
            )
    return len(taken)


async def release_suspended(db: Database, now: Instant, most: int) -> int:
    """Posts up to `most` credits whose wallet is `Actif` again (D24); how many it posted. Run by the worker."""
    async with db.transaction() as tx:
        released = await tx.all(_RELEASE, now=now, most=most)
        rows = []
        for _, merchant_id, env, currency, amount, subject_id, _, _ in released:
            mine = {"merchant_id": merchant_id, "env": env, "currency": currency, "created_at": now}
            subject = {**mine, "subject_id": subject_id}
            rows += [_posting(subject, ledger.UNSUSPENDED, entry) for entry in ledger.suspense_release(amount)]
        await tx.execute_many(_INSERT_POSTING, rows)
    return len(released)


def _sums(entries: Iterable[Row]) -> dict[tuple[int, str, str], tuple[int, Instant]]:
    sums: dict[tuple[int, str, str], tuple[int, Instant]] = defaultdict(lambda: (0, 0))
    for _, merchant_id, env, currency, amount, _, _, created_at in entries:
        total, latest = sums[merchant_id, env, currency]
        sums[merchant_id, env, currency] = total + amount, max(latest, created_at)
    return sums
