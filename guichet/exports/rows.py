"""Reads the rows of an export, a piece at a time, in the order of time. Memory: one piece."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import BigInteger, FromClause, Select, Table, bindparam, select, tuple_

from guichet.clock import Instant
from guichet.db.engine import Database, Row
from guichet.db.sql_functions import columns, equal
from guichet.db.tables import payments, postings, refunds
from guichet.db.tables.payment_tables import ORDER_NUMBER
from guichet.domain.catalogue import Catalogue
from guichet.domain.exports import MOST_DIRECT_ROWS, Export, ExportKind
from guichet.domain.money import round_to_currency
from guichet.domain.posting_rules import WALLET
from guichet.exports.columns import STATUSES
from guichet.ledger.balance_checkpoints import WalletKey
from guichet.ledger.monthly_statement import movement_name
from guichet.ledger.wallet_statement import Movement, Statement

#: Rows that one statement reads.
PIECE: Final = 500
#: The values of a row, in the order of the columns (`columns.py`).
Values = Sequence[Any]


class Piece(NamedTuple):
    """Some rows, and when the last one of them was made."""

    rows: list[Values]
    reached: Instant


def _rows_of(table: Table, *columns: Any, joined: FromClause | None = None) -> Select[Any]:
    """One piece: the two columns that order the rows, then `columns`. Found through the index that orders them.
    `joined`: with the rows of another table beside them."""
    key = (table.c.created_at, table.c.id)
    after = (bindparam("at", type_=BigInteger), bindparam("after", type_=BigInteger))
    return (
        select(*key, *columns)
        .select_from(table if joined is None else joined)
        .where(
            *equal(table, "merchant_id", "env"),
            table.c.created_at <= bindparam("until"),
            tuple_(*key) > tuple_(*after),
        )
        .order_by(*key)
        .limit(PIECE)
    )


_PAYMENTS: Final = _rows_of(
    payments,
    payments.c.reference,
    ORDER_NUMBER,
    *columns(payments, "status", "currency", "amount", "fee_amount", "total_amount"),
    *columns(payments, "operator", "phone_number", "firstname", "lastname", "email", "description", "failure_reason"),
    payments.c.updated_at,
)
_REFUNDS: Final = _rows_of(
    refunds,
    refunds.c.reference,
    refunds.c.payment_reference,
    ORDER_NUMBER,
    *columns(refunds, "status", "currency", "amount"),
    *columns(payments, "operator", "phone_number", "firstname", "lastname"),
    *columns(refunds, "reason", "failure_reason", "processed_at"),
    joined=refunds.join(payments, payments.c.id == refunds.c.payment_id),
)
#: Where a row of each kind has its status and its operator, after the two columns that order it.
_STATUS: Final = {"payments": 2, "refunds": 3}
_OPERATOR: Final = {"payments": 7, "refunds": 6}


def _first_rows(table: Table, *conditions: Any) -> Select[Any]:
    """As many ids as a direct export may have rows, and one more."""
    return (
        select(table.c.id)
        .where(
            *equal(table, "merchant_id", "env"),
            *conditions,
            table.c.created_at >= bindparam("since"),
            table.c.created_at <= bindparam("until"),
        )
        .limit(MOST_DIRECT_ROWS + 1)
    )


_FIRST_ROWS: Final[dict[ExportKind, Select[Any]]] = {
    "payments": _first_rows(payments),
    "refunds": _first_rows(refunds),
    "movements": _first_rows(
        postings,
        postings.c.currency == bindparam("currency"),
        (postings.c.source == WALLET) | (postings.c.destination == WALLET),
    ),
}


async def is_short(db: Database, export: Export) -> bool:
    """Whether it has few enough rows to be written while it is downloaded. Cost: that many entries of an index."""
    params: dict[str, Any] = {
        "merchant_id": export.merchant_id,
        "env": export.env,
        "since": export.since,
        "until": export.until,
    }
    if export.currency is not None:
        params["currency"] = export.currency
    return len(await db.scan(_FIRST_ROWS[export.kind], **params)) <= MOST_DIRECT_ROWS


async def pieces(db: Database, modes: Catalogue, export: Export, now: Instant) -> AsyncIterator[Piece]:
    """The rows of the export, oldest first. `modes`: those of its merchant, which name the operators."""
    if export.kind == "movements":
        async for piece in _movements(db, export, now):
            yield piece
        return
    statement = _PAYMENTS if export.kind == "payments" else _REFUNDS
    scope = {"merchant_id": export.merchant_id, "env": export.env, "until": export.until}
    at, after = export.since, 0
    admits = _admits(modes, export) if export.filters else None
    while rows := await db.scan(statement, **scope, at=at, after=after):
        at, after = rows[-1][0], rows[-1][1]
        yield Piece([_values(row, modes, export) for row in rows if admits is None or admits(row)], at)
        if len(rows) < PIECE:
            return


def _admits(modes: Catalogue, export: Export) -> Callable[[Row], bool]:
    """Of the rows of payments, those that the list was narrowed to."""
    list_filter = export.list_filter
    operators = set(list_filter.operators(modes)) if list_filter.operator or list_filter.country else None
    least, most = list_filter.bounds

    def admits(row: Row) -> bool:
        status, amount, operator = row[4], row[6], row[9]
        return (
            (list_filter.status or status) == status
            and least <= amount <= most
            and (operators is None or operator in operators)
        )

    return admits


def _values(row: Row, modes: Catalogue, export: Export) -> Values:
    created_at, row_id, *rest = row
    statuses, at = STATUSES[export.language], _STATUS[export.kind]
    rest[at] = statuses.get(rest[at], rest[at])
    at = _OPERATOR[export.kind]
    rest[at] = modes.name_of(rest[at])
    if export.kind == "refunds":
        return (created_at, *rest)
    currency, total = rest[3], rest[6]
    debited = round_to_currency(total, currency)  # What the operator takes from the customer.
    return (created_at, row_id, *rest[:7], debited - total, debited, *rest[7:])


async def _movements(db: Database, export: Export, now: Instant) -> AsyncIterator[Piece]:
    assert export.currency is not None
    wallet = WalletKey(export.merchant_id, export.env, export.currency)
    statement = Statement(db, wallet, export.since, export.until, now)
    await statement.opening()
    rows: list[Values] = []
    at = export.since
    async for movement in statement.movements():
        rows.append(_movement(movement, export))
        at = movement.at
        if len(rows) == PIECE:
            yield Piece(rows, at)
            rows = []
    if rows:
        yield Piece(rows, at)


def _movement(movement: Movement, export: Export) -> Values:
    return (
        movement.at,
        movement_name(movement.cause, export.language),
        movement.payment_reference,
        movement.refund_reference,
        movement.external_id,
        -movement.amount if movement.amount < 0 else None,
        movement.amount if movement.amount > 0 else None,
        movement.balance,
        movement.posting_id,
    )
