"""Sums the postings of every account, and compares wallets, suspense, holds and floats with their tables."""

from collections import Counter, defaultdict
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Select, and_, bindparam, func, literal_column, or_, select, union_all

from guichet.clock import earlier
from guichet.db.engine import Row
from guichet.db.sql_functions import columns
from guichet.db.tables import disputes, late_results, merchants, payments, postings, refunds, wallet_entries, wallets
from guichet.domain.messages import Amount, Fact, Message
from guichet.domain.posting_rules import (
    COLLECTED,
    DISPUTED,
    FLOAT,
    HOLD,
    LATE_SUSPENSE,
    RECEIVABLE,
    SUSPENSE,
    UNSUSPENDED,
    WALLET,
)
from guichet.ledger.audit.audit_state import BEFORE_ALL, ROWS_AT_ONCE, Account, AuditState, id_ranges, next_id_range
from guichet.ledger.audit.faults import AuditFault
from guichet.ledger.hash_chain import SETTLED_AFTER, chain_head

#: Postings that one statement sums, and merchants whose wallets one statement compares.
_POSTINGS_AT_ONCE: Final = 10_000
_MERCHANTS_AT_ONCE: Final = 200

_LAST_SETTLED: Final = (
    select(postings.c.id).where(postings.c.created_at <= bindparam("settled")).order_by(postings.c.id.desc()).limit(1)
)
_NEXT_POSTINGS: Final = next_id_range(postings.c.id)
_NEXT_MERCHANTS: Final = next_id_range(merchants.c.id)
_OWNER: Final = (postings.c.merchant_id, postings.c.env, postings.c.currency)
_SUMS_BY_PAIR: Final = (
    select(*_OWNER, postings.c.source, postings.c.destination, func.sum(postings.c.amount))
    .where(postings.c.id > bindparam("after"), postings.c.id <= bindparam("last"))
    .group_by(*_OWNER, postings.c.source, postings.c.destination)
)


def _in_range(column: Column[int]) -> ColumnElement[bool]:
    return and_(column > bindparam("after"), column <= bindparam("last"))


def _sums(side: str, account: str | Column[str], table: Any, amount: ColumnElement[int]) -> Select[Any]:
    """Rows (merchant, env, currency, side, account, sum) for a range of merchants; `account` is a column, or one name
    for all rows."""
    owner = [table.c.merchant_id, table.c.env, table.c.currency]
    named = literal_column(f"'{account}'") if isinstance(account, str) else account
    return (
        select(*owner, literal_column(f"'{side}'"), named, func.sum(amount))
        .where(_in_range(table.c.merchant_id))
        .group_by(*owner, *([] if isinstance(account, str) else [account]))
    )


#: At one instant: what the tables hold (side `table`), and what was posted since the horizon (side `posted`).
_BOTH_SIDES: Final = union_all(
    _sums("table", WALLET, wallets, wallets.c.balance),
    _sums("table", WALLET, wallet_entries, wallet_entries.c.amount).where(wallet_entries.c.suspended.is_(False)),
    _sums("table", SUSPENSE, wallet_entries, wallet_entries.c.amount).where(wallet_entries.c.suspended),
    _sums("table", HOLD, refunds, payments.c.amount)
    .join(payments, payments.c.id == refunds.c.payment_id)
    .where(refunds.c.status == "pending", refunds.c.held),
    _sums("table", LATE_SUSPENSE, late_results, late_results.c.amount).where(
        or_(late_results.c.stage == "found", late_results.c.stage == "returning")
    ),
    _sums("table", RECEIVABLE, late_results, -payments.c.amount)
    .join(refunds, refunds.c.id == late_results.c.subject_id)
    .join(payments, payments.c.id == refunds.c.payment_id)
    .where(late_results.c.stage == "receivable"),
    _sums("table", DISPUTED, disputes, -disputes.c.amount).where(
        disputes.c.taken, disputes.c.status != "won", disputes.c.borne_by.is_(None)
    ),
    _sums("posted", postings.c.destination, postings, postings.c.amount).where(postings.c.id > bindparam("horizon")),
    _sums("posted", postings.c.source, postings, -postings.c.amount).where(postings.c.id > bindparam("horizon")),
)
_released: Final = postings.alias("released")
#: Suspended entries, each with the posting that suspended it and, which is a fault, one that released it already.
_SUSPENDED_ENTRIES: Final = (
    select(
        *columns(wallet_entries, "id", "subject_id", "amount"),
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


async def sum_accounts(state: AuditState) -> None:
    """Sets the horizon, and sums every account's postings up to it."""
    settled = await state.db.scan(_LAST_SETTLED, settled=earlier(state.now, SETTLED_AFTER))
    chained = (await chain_head(state.db)).last_posting_id
    state.horizon = max(chained, settled[0][0] if settled else 0)
    async for after, last, rows in id_ranges(state.db, _NEXT_POSTINGS, _POSTINGS_AT_ONCE):
        upper = min(last, state.horizon)
        for *owner, source, destination, amount in await state.db.scan(_SUMS_BY_PAIR, after=after, last=upper):
            merchant_id, env, currency = owner
            state.totals[merchant_id, env, currency, source] -= int(amount)
            state.totals[merchant_id, env, currency, destination] += int(amount)
        state.count("summed", rows)
        if last > state.horizon:
            return


async def check_wallets(state: AuditState) -> Message | None:
    """Each wallet, suspense and hold account equals its postings, and no wallet is overdrawn."""
    async for after, last, _ in id_ranges(state.db, _NEXT_MERCHANTS, _MERCHANTS_AT_ONCE):
        rows = await state.db.scan(_BOTH_SIDES, after=after, last=last, horizon=state.horizon)
        held, posted = _sides(state, rows, after, last)
        for merchant_id, env, currency, account in sorted(held.keys() | posted.keys()):
            key = (merchant_id, env, currency, account)
            if account in _HELD_IN and held[key] != posted[key]:
                owner: dict[str, Fact] = {"env": env, "currency": currency, "account": account, "merchant": merchant_id}
                sums = {"held": Amount(held[key]), "posted": Amount(posted[key])}
                return AuditFault.ACCOUNT_WRONG(**owner, **sums, holder=_HELD_IN[account]())
            if account == WALLET and posted[key] < 0:
                return AuditFault.OVERDRAWN(
                    env=env, currency=currency, merchant=merchant_id, posted=Amount(posted[key])
                )
        state.count("accounts", len(held.keys() | posted.keys()))
    return None


_HELD_IN: Final = {
    WALLET: AuditFault.WALLET_HOLDS,
    SUSPENSE: AuditFault.SUSPENSE_HOLDS,
    HOLD: AuditFault.REFUNDS_HOLD,
    LATE_SUSPENSE: AuditFault.LATE_RESULTS_HOLD,
    RECEIVABLE: AuditFault.LATE_REFUNDS_HOLD,
    DISPUTED: AuditFault.DISPUTES_HOLD,
}


def _sides(state: AuditState, rows: list[Row], after: int, last: int) -> tuple[Counter[Account], Counter[Account]]:
    sides: dict[str, Counter[Account]] = defaultdict(Counter)
    for merchant_id, env, currency, side, account, amount in rows:
        sides[side][merchant_id, env, currency, account] += int(amount)
    for account_key, amount in state.totals.items():
        if after < account_key[0] <= last:
            sides["posted"][account_key] += amount
    return sides["table"], sides["posted"]


async def check_suspended_entries(state: AuditState) -> Message | None:
    """Each credit that waits for a frozen wallet was put in suspense with its whole amount, and not released yet."""
    after = BEFORE_ALL
    while rows := await state.db.scan(_SUSPENDED_ENTRIES, after=after, most=ROWS_AT_ONCE):
        for entry_id, payment_id, amount, posted, released in rows:
            if posted is None:
                return AuditFault.ENTRY_WITHOUT_SUSPENSE(entry=entry_id, payment=payment_id)
            if amount != posted:
                return AuditFault.ENTRY_AMOUNT(entry=entry_id, held=Amount(amount), posted=Amount(posted))
            if released is not None:
                return AuditFault.ENTRY_RELEASED(entry=entry_id, posting=released)
        after = rows[-1][0]
        state.count("waiting", len(rows))
    return None


async def check_floats(state: AuditState) -> Message | None:
    """Each wallet with a provider holds what it took for us less what it gave back, by the states of payments, refunds
    and disputes."""
    expected = state.expected_floats
    booked = Counter({key: amount for key, amount in state.totals.items() if key[3].startswith(FLOAT)})
    for key in sorted(booked.keys() | expected.keys()):
        if booked[key] != expected[key]:
            merchant_id, env, currency, account = key
            owner: dict[str, Fact] = {"env": env, "currency": currency, "account": account, "merchant": merchant_id}
            sums = {"booked": Amount(-booked[key]), "wanted": Amount(-expected[key])}
            return AuditFault.FLOAT_WRONG(**owner, **sums)
        state.count("floats", 1)
    return None
