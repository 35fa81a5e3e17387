"""Wallets: what each merchant is owed.

A wallet's balance is its row plus its entries that are not added up yet. A credit is therefore one INSERT that locks
nothing. A debit locks the wallet's row, so that two of them cannot spend the same money. The worker rolls entries up
into their wallets.

What a merchant owns and cannot spend is not in the balance: refunds that are not paid yet, and credits of a wallet that
is not active.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from sqlalchemy import BigInteger, and_, bindparam, cast, delete, func, select, text, true

from guichet.clock import Instant
from guichet.db.engine import Database, Reader, Row, Transaction, require
from guichet.db.sql_functions import columns, equal, params, upsert
from guichet.db.tables import payments, refunds, wallet_entries, wallets
from guichet.domain.audit_log import ActRefused
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.messages import Amount
from guichet.domain.money import Currency, Hundredths
from guichet.domain.payments import Payment
from guichet.domain.posting_rules import ACTIVE, Wallet, WalletStatus
from guichet.domain.records import Record
from guichet.domain.refusals import Refusal

THIS_WALLET: Final = equal(wallets, "merchant_id", "env", "currency")
_MY_ENTRIES: Final = (
    *equal(wallet_entries, "merchant_id", "env", "currency"),
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
#: One statement, so that a rollup is never seen half done.
_WALLET: Final = select(
    *columns(wallets, "status", "balance", "updated_at", "release_pending"),
    _ENTRIES.c.total,
    _ENTRIES.c.latest,
).select_from(_ENTRIES.outerjoin(wallets, and_(true(), *THIS_WALLET)))
#: What a wallet holds now, as a column of another statement, which so sees it together with its postings.
CURRENT_BALANCE: Final = func.coalesce(select(wallets.c.balance).where(*THIS_WALLET).scalar_subquery(), 0) + cast(
    select(_ENTRIES.c.total).scalar_subquery(), BigInteger
)
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
#: For a statement with these parameters. A wallet without a row was never frozen. A count, because PostgreSQL may plan
#: NOT EXISTS as a walk through all wallets.
accepts_movements: Final = (
    select(func.count()).select_from(wallets).where(*THIS_WALLET, wallets.c.status != ACTIVE).scalar_subquery() == 0
)
_STATUS: Final = select(wallets.c.status).where(*THIS_WALLET)
_ALL_NOT_ACTIVE: Final = (
    select(wallets.c.merchant_id, wallets.c.env, wallets.c.currency, wallets.c.status)
    .where(wallets.c.status != ACTIVE)
    .order_by(wallets.c.merchant_id, wallets.c.currency)
    .limit(200)
)
_LOCK: Final = (
    select(wallets.c.status, wallets.c.release_pending, wallets.c.balance).where(*THIS_WALLET).with_for_update()
)
_ENTRIES_TOTAL: Final = select(_ENTRIES.c.total)

_NEW_WALLET: Final = upsert(wallets).values(
    **params("merchant_id", "env", "currency", "status", "balance"),
    updated_at=bindparam("now"),
)
_ENSURE: Final = _NEW_WALLET.on_conflict_do_nothing()
_NEW_STATUS: Final = _NEW_WALLET.values(release_pending=bindparam("release_pending"))
_SET_STATUS: Final = _NEW_STATUS.on_conflict_do_update(
    index_elements=["merchant_id", "env", "currency"],
    set_={"status": _NEW_STATUS.excluded.status, "release_pending": _NEW_STATUS.excluded.release_pending},
)
_ADD_TO_BALANCE: Final = _NEW_WALLET.on_conflict_do_update(
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


async def wallet(db: Reader, merchant_id: MerchantId, env: Environment, currency: Currency) -> Wallet | None:
    """The wallet as of now; None when it never moved and was never made. Cost: one row and its entries."""
    row = require(await db.one(_WALLET, merchant_id=merchant_id, env=env, currency=currency))
    status, balance, updated_at, release_pending, entries_total, latest = row
    if status is None and latest is None:
        return None
    moved_at = max(instant for instant in (updated_at, latest) if instant is not None)
    total = Hundredths(int((balance or 0) + entries_total))
    return Wallet(merchant_id, env, currency, status or ACTIVE, total, moved_at, bool(release_pending))


async def wallets_of(db: Database, merchant_id: MerchantId) -> list[Wallet]:
    wallets = [
        await wallet(db, merchant_id, env, currency)
        for env, currency in await db.all(_WALLETS_OF, merchant_id=merchant_id)
    ]
    return [existing for existing in wallets if existing is not None]


async def wallet_status(db: Reader, merchant_id: MerchantId, env: Environment, currency: Currency) -> WalletStatus:
    """A wallet without a row was never frozen."""
    row = await db.one(_STATUS, merchant_id=merchant_id, env=env, currency=currency)
    return row[0] if row else ACTIVE


async def not_active(db: Database) -> list[tuple[MerchantId, Environment, Currency, WalletStatus]]:
    """Wallets that are frozen or closed, at most 200. Reads the table: one row for each wallet."""
    return [tuple(row) for row in await db.scan(_ALL_NOT_ACTIVE)]


async def set_wallet_status(
    tx: Transaction, merchant_id: MerchantId, env: Environment, currency: Currency, status: WalletStatus, now: Instant
) -> None:
    """Freezes, closes or reopens a wallet. Reopening flags it, so that its suspended credits are released."""
    await tx.write(
        _SET_STATUS,
        merchant_id=merchant_id,
        env=env,
        currency=currency,
        status=status,
        release_pending=status == ACTIVE,
        balance=0,
        now=now,
    )


async def lock(tx: Transaction, merchant_id: MerchantId, env: Environment, currency: Currency, now: Instant) -> Wallet:
    """The wallet, with its row locked until the transaction ends: ask before every debit."""
    key = {"merchant_id": merchant_id, "env": env, "currency": currency}
    await tx.write(_ENSURE, **key, status=ACTIVE, balance=0, now=now)
    status, release_pending, balance = require(await tx.one(_LOCK, **key))
    (entries_total,) = require(await tx.one(_ENTRIES_TOTAL, **key))
    total = Hundredths(int(balance + entries_total))
    return Wallet(merchant_id, env, currency, status, total, now, release_pending)


async def roll_up(db: Database, most: int) -> int:
    """Adds up to `most` entries to their wallets, the oldest first; how many. Run by the worker."""
    async with db.transaction() as tx:
        rows = await tx.write_all(_TAKE_ENTRIES, most=most)
        for (merchant_id, env, currency), (amount, latest) in sorted(_sums(rows).items()):
            await tx.write(
                _ADD_TO_BALANCE,
                merchant_id=merchant_id,
                env=env,
                currency=currency,
                status=ACTIVE,
                balance=amount,
                now=latest,
            )
    return len(rows)


def _sums(entries: Iterable[Row]) -> dict[tuple[MerchantId, Environment, Currency], tuple[int, Instant]]:
    sums: dict[tuple[MerchantId, Environment, Currency], tuple[int, Instant]] = defaultdict(lambda: (0, Instant(0)))
    for _, merchant_id, env, currency, amount, _, _, created_at in entries:
        total, latest = sums[merchant_id, env, currency]
        sums[merchant_id, env, currency] = total + amount, max(latest, created_at)
    return sums


async def require_wallet(tx: Transaction, payment: Payment, covers: Hundredths, now: Instant) -> None:
    """Locks the wallet of the payment's merchant until the transaction ends. Raises ActRefused unless it is `Actif` and
    holds at least `covers`."""
    wallet = await lock(tx, payment.merchant_id, payment.env, payment.currency, now)
    if wallet.status != ACTIVE:
        raise ActRefused(Refusal.WALLET_NOT_ACTIVE())
    if wallet.balance < covers:
        raise ActRefused(Refusal.WALLET_TOO_LOW(balance=Amount(wallet.balance), wanted=Amount(covers)))


#: In the words of its partial index, which SQLite would not use for other ones.
_HELD_REFUNDS: Final = text("refunds.status = 'pending' AND refunds.held")
_SUSPENDED: Final = (
    select(func.coalesce(func.sum(wallet_entries.c.amount), 0))
    .where(*equal(wallet_entries, "merchant_id", "env", "currency"), wallet_entries.c.suspended)
    .scalar_subquery()
)
#: Of a refund the wallet's part: the fee is paid back from the service's.
_HELD: Final = (
    select(cast(func.coalesce(func.sum(payments.c.amount), 0), BigInteger), func.count(), cast(_SUSPENDED, BigInteger))
    .select_from(refunds)
    .join(payments, payments.c.id == refunds.c.payment_id)
    .where(*equal(refunds, "merchant_id", "env", "currency"), _HELD_REFUNDS)
)


class Held(Record, frozen=True):
    """`refunds`: how many are on their way, which hold `for_refunds`. `suspended`: credits that wait for the wallet."""

    for_refunds: Hundredths
    refunds: int
    suspended: Hundredths

    @property
    def total(self) -> Hundredths:
        return Hundredths(self.for_refunds + self.suspended)


async def held(db: Reader, merchant_id: MerchantId, env: Environment, currency: Currency) -> Held:
    """One statement, so that the parts belong together."""
    row = require(await db.one(_HELD, merchant_id=merchant_id, env=env, currency=currency))
    return Held(Hundredths(row[0]), int(row[1]), Hundredths(row[2]))
