"""Postings: the append-only double entry, its effect on the wallets, and the wallets that accept none."""

import json
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, Literal, NamedTuple

from sqlalchemy import bindparam, insert, literal_column, or_, select

from guichet.clock import Instant
from guichet.db.engine import Reader, RowStatement, Transaction
from guichet.db.sql_functions import is_listed, new_columns, new_row
from guichet.db.tables import postings, wallet_entries, wallets
from guichet.domain import posting_rules
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency, Hundredths
from guichet.domain.posting_rules import ACTIVE, Movement, Posting

_INSERT_POSTING: Final = RowStatement(insert(postings).values(new_row(postings)), tuple(new_columns(postings)))
#: Postings that payments make, those that refunds make, and those that disputes make.
OF_PAYMENTS: Final = or_(*(postings.c.cause == cause for cause in posting_rules.PAYMENT_CAUSES))
OF_REFUNDS: Final = or_(*(postings.c.cause == cause for cause in posting_rules.REFUND_CAUSES))
OF_DISPUTES: Final = or_(*(postings.c.cause == cause for cause in posting_rules.DISPUTE_CAUSES))
#: What postings are about.
PostedSubject = Literal["payment", "refund", "dispute"]
#: Read by `uq_postings_cause`: at most one posting for each leg of a cause. The causes are a list, because PostgreSQL
#: may use no bitmaps here, and looks into an index for each of a list only. Not sorted: it would read by id instead.
_ABOUT: Final = {
    subject: select(postings).where(
        postings.c.merchant_id == bindparam("merchant"),
        postings.c.cause.in_([literal_column(f"'{cause}'") for cause in causes]),
        postings.c.subject_id == bindparam("about"),
    )
    for subject, causes in (
        ("payment", posting_rules.PAYMENT_CAUSES),
        ("refund", posting_rules.REFUND_CAUSES),
        ("dispute", posting_rules.DISPUTE_CAUSES),
    )
}

_INSERT_ENTRY: Final = RowStatement(
    insert(wallet_entries).values(new_row(wallet_entries)), tuple(new_columns(wallet_entries))
)
_NOT_ACTIVE: Final = (
    select(wallets.c.merchant_id, wallets.c.env, wallets.c.currency)
    .where(is_listed(wallets.c.merchant_id, "ids"), wallets.c.status != ACTIVE)
    .order_by(wallets.c.merchant_id, wallets.c.env, wallets.c.currency)
    .with_for_update(read=True, of=wallets)
)


async def frozen_wallets(
    tx: Transaction, merchant_ids: Collection[MerchantId]
) -> set[tuple[MerchantId, Environment, Currency]]:
    """Wallets of these merchants that accept no movement: (merchant, environment, currency). Cost: their wallets.

    None of them can be reopened before the transaction ends: their rows are locked, in the order of their keys. Wallets
    that are `Actif` are not locked.
    """
    rows = await tx.all(_NOT_ACTIVE, ids=json.dumps(sorted(merchant_ids)))
    return {tuple(row) for row in rows}


async def post(tx: Transaction, movements: Sequence[Movement]) -> None:
    """Writes postings and their effect on the wallets. Posting a cause twice violates `uq_postings_cause`."""
    if not movements:
        return
    effects: Counter[tuple[MerchantId, Environment, Currency]] = Counter()
    newest: dict[tuple[MerchantId, Environment, Currency], Movement] = {}
    entries = []
    for movement in movements:
        if waiting := sum(entry.amount for entry in movement.entries if entry.destination == posting_rules.SUSPENSE):
            entries.append(_wallet_entry(movement, waiting, suspended=True))
        if effect := posting_rules.wallet_movement(movement.entries):
            wallet = movement.merchant_id, movement.env, movement.currency
            effects[wallet] += effect
            if wallet not in newest or newest[wallet].created_at < movement.created_at:
                newest[wallet] = movement
    # One for each wallet: it is only added to the balance, and an entry costs as much to add as to write.
    entries += [_wallet_entry(newest[wallet], effect, suspended=False) for wallet, effect in effects.items()]
    rows = [_posting(movement, entry) for movement in movements for entry in movement.entries]
    await tx.write_rows(_INSERT_POSTING, rows)
    await tx.write_rows(_INSERT_ENTRY, entries)


def _posting(movement: Movement, entry: Posting) -> tuple[object, ...]:
    """The values of `_INSERT_POSTING`."""
    return (
        movement.merchant_id,
        movement.env,
        movement.currency,
        movement.cause,
        movement.subject_id,
        entry.leg,
        entry.source,
        entry.destination,
        entry.amount,
        movement.created_at,
    )


def _wallet_entry(movement: Movement, amount: int, *, suspended: bool) -> tuple[object, ...]:
    """The values of `_INSERT_ENTRY`."""
    return (
        movement.merchant_id,
        movement.env,
        movement.currency,
        amount,
        movement.subject_id,
        suspended,
        movement.created_at,
    )


class _Row(NamedTuple):
    """A row of `postings`, in the order of its columns."""

    id: int
    merchant_id: MerchantId
    env: Environment
    currency: Currency
    cause: str
    subject_id: int
    leg: str
    source: str
    destination: str
    amount: Hundredths
    created_at: Instant


async def about(db: Reader, merchant_id: MerchantId, subject: PostedSubject, subject_id: int) -> list[Movement]:
    """What one payment, refund or dispute moved, oldest first: a movement for each cause. Cost: its postings."""
    rows = await db.all(_ABOUT[subject], merchant=merchant_id, about=subject_id)
    by_cause = groupby(sorted(_Row(*row) for row in rows), key=attrgetter("cause"))
    return [_movement(list(legs)) for _, legs in by_cause]


def _movement(legs: Sequence[_Row]) -> Movement:
    """From the rows of one cause."""
    first = legs[0]
    entries = [Posting(row.leg, row.source, row.destination, row.amount) for row in legs]
    return Movement(
        first.merchant_id, first.env, first.currency, first.cause, first.subject_id, entries, first.created_at
    )
