"""Sums every account, and compares wallets, suspense, holds and operators with what they stand for."""

from collections import Counter, defaultdict
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Select, and_, bindparam, func, literal_column, select, union_all

from guichet.db.engine import Row
from guichet.db.tables import merchants, payments, postings, refunds, wallet_entries, wallets
from guichet.domain.money import plain
from guichet.domain.posting_rules import COLLECTED, HOLD, SUSPENSE, UNSUSPENDED, WALLET
from guichet.ledger.audit.books import BEFORE_ALL, STEP, Account, Books, spans, upto
from guichet.ledger.hash_chain import RIPE_AFTER, head

#: Postings summed, and merchants whose wallets are compared, by one statement.
_POSTINGS: Final = 10_000
_MERCHANTS: Final = 200

_RIPE: Final = (
    select(postings.c.id).where(postings.c.created_at <= bindparam("ripe")).order_by(postings.c.id.desc()).limit(1)
)
_POSTING_STEPS: Final = upto(postings.c.id)
_MERCHANT_STEPS: Final = upto(merchants.c.id)
_WHOSE: Final = (postings.c.merchant_id, postings.c.env, postings.c.currency)
_MOVED: Final = (
    select(*_WHOSE, postings.c.source, postings.c.destination, func.sum(postings.c.amount))
    .where(postings.c.id > bindparam("after"), postings.c.id <= bindparam("last"))
    .group_by(*_WHOSE, postings.c.source, postings.c.destination)
)


def _in_step(column: Column[int]) -> ColumnElement[bool]:
    return and_(column > bindparam("after"), column <= bindparam("last"))


def _sums(side: str, account: str | Column[str], table: Any, amount: ColumnElement[int]) -> Select[Any]:
    """Rows (merchant, env, currency, side, account, sum) of the merchants of one step; `account` is a column or a name
    for all of them."""
    whose = [table.c.merchant_id, table.c.env, table.c.currency]
    named = literal_column(f"'{account}'") if isinstance(account, str) else account
    return (
        select(*whose, literal_column(f"'{side}'"), named, func.sum(amount))
        .where(_in_step(table.c.merchant_id))
        .group_by(*whose, *([] if isinstance(account, str) else [account]))
    )


#: What the tables say, and what was posted since the horizon, seen at one instant.
_STANDING: Final = union_all(
    _sums("stands", WALLET, wallets, wallets.c.balance),
    _sums("stands", WALLET, wallet_entries, wallet_entries.c.amount).where(wallet_entries.c.suspended.is_(False)),
    _sums("stands", SUSPENSE, wallet_entries, wallet_entries.c.amount).where(wallet_entries.c.suspended),
    _sums("stands", HOLD, refunds, payments.c.amount)
    .join(payments, payments.c.id == refunds.c.payment_id)
    .where(refunds.c.status == "pending", refunds.c.held),
    _sums("posted", postings.c.destination, postings, postings.c.amount).where(postings.c.id > bindparam("horizon")),
    _sums("posted", postings.c.source, postings, -postings.c.amount).where(postings.c.id > bindparam("horizon")),
)
_released: Final = postings.alias("released")
#: Entries that wait, each with the posting that put it there and the one that should not be there yet.
_WAITING: Final = (
    select(
        wallet_entries.c.id,
        wallet_entries.c.subject_id,
        wallet_entries.c.amount,
        postings.c.amount.label("posted"),
        _released.c.id.label("released"),
    )
    .outerjoin(
        postings,
        and_(
            postings.c.merchant_id == wallet_entries.c.merchant_id,
            postings.c.env == wallet_entries.c.env,
            postings.c.currency == wallet_entries.c.currency,
            postings.c.cause == COLLECTED,
            postings.c.subject_id == wallet_entries.c.subject_id,
            postings.c.destination == SUSPENSE,
        ),
    )
    .outerjoin(
        _released,
        and_(
            _released.c.merchant_id == wallet_entries.c.merchant_id,
            _released.c.cause == UNSUSPENDED,
            _released.c.subject_id == wallet_entries.c.subject_id,
        ),
    )
    .where(wallet_entries.c.suspended, wallet_entries.c.id > bindparam("after"))
    .order_by(wallet_entries.c.id)
    .limit(bindparam("most"))
)


async def sum_accounts(books: Books) -> None:
    """Sets the horizon and adds up every account to it. Memory: one figure an account."""
    ripe = await books.db.scan(_RIPE, ripe=books.now - RIPE_AFTER)
    sealed, _ = await head(books.db)
    books.horizon = max(sealed, ripe[0][0] if ripe else 0)
    async for after, last, rows in spans(books.db, _POSTING_STEPS, _POSTINGS):
        upper = min(last, books.horizon)
        for *whose, source, destination, amount in await books.db.scan(_MOVED, after=after, last=upper):
            merchant_id, env, currency = whose
            books.totals[merchant_id, env, currency, source] -= int(amount)
            books.totals[merchant_id, env, currency, destination] += int(amount)
        books.count("summed", rows)
        if last > books.horizon:
            return


async def check_wallets(books: Books) -> str | None:
    """Each wallet, suspense and hold account equals its postings, and no wallet is overdrawn."""
    async for after, last, _ in spans(books.db, _MERCHANT_STEPS, _MERCHANTS):
        rows = await books.db.scan(_STANDING, after=after, last=last, horizon=books.horizon)
        stands, posted = _sides(books, rows, after, last)
        for merchant_id, env, currency, account in sorted(stands.keys() | posted.keys()):
            key = (merchant_id, env, currency, account)
            if account in _MEANING and stands[key] != posted[key]:
                return (
                    f"The {env} {currency} {account} of merchant {merchant_id} is wrong: {_MEANING[account]} "
                    f"{plain(stands[key])}, its postings add up to {plain(posted[key])}."
                )
            if account == WALLET and posted[key] < 0:
                return f"The {env} {currency} wallet of merchant {merchant_id} is overdrawn: {plain(posted[key])}."
        books.count("accounts", len(stands.keys() | posted.keys()))
    return None


_MEANING: Final = {
    WALLET: "it and its entries hold",
    SUSPENSE: "the waiting entries hold",
    HOLD: "the pending refunds hold",
}


def _sides(books: Books, rows: list[Row], after: int, last: int) -> tuple[Counter[Account], Counter[Account]]:
    sides: dict[str, Counter[Account]] = defaultdict(Counter)
    for merchant_id, env, currency, side, account, amount in rows:
        sides[side][merchant_id, env, currency, account] += int(amount)
    for account_key, amount in books.totals.items():
        if after < account_key[0] <= last:
            sides["posted"][account_key] += amount
    return sides["stands"], sides["posted"]


async def check_waiting(books: Books) -> str | None:
    """Each credit that waits for a frozen wallet was put in suspense, whole, and not released yet."""
    after = BEFORE_ALL
    while rows := await books.db.scan(_WAITING, after=after, most=STEP):
        for entry_id, payment_id, amount, posted, released in rows:
            if posted is None:
                return f"Wallet entry {entry_id} waits for payment {payment_id}, which put nothing in suspense."
            if amount != posted:
                return f"Wallet entry {entry_id} waits with {plain(amount)}, {plain(posted)} is in suspense."
            if released is not None:
                return f"Wallet entry {entry_id} still waits, but posting {released} released it."
        after = rows[-1][0]
        books.count("waiting", len(rows))
    return None


async def check_operators(books: Books) -> str | None:
    """What each operator owes is what it took for us less what it gave back, by the states of payments and refunds."""
    booked = Counter({key: amount for key, amount in books.totals.items() if key[3].startswith("operator:")})
    for key in sorted(booked.keys() | books.owed.keys()):
        if booked[key] != books.owed[key]:
            merchant_id, env, currency, account = key
            return (
                f"The {env} {currency} account {account} of merchant {merchant_id} is wrong: "
                f"it says {plain(-booked[key])} is owed, payments and refunds say {plain(-books.owed[key])}."
            )
        books.count("operators", 1)
    return None
