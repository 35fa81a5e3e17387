"""The search of one merchant's payments, as people type: a reference, a number, the beginning of an order number, a
telephone number or its last four digits, an amount, a customer's name without accents and case.

What matches exactly comes first. Cost, however many payments there are: one look-up for each exact match, at most
MOST_FOUND entries of an index for each way to write a telephone number, an order number or a name; and for four digits
or an amount, which have no index, the merchant's MOST_READ newest payments of the last 31 days.
"""

from collections.abc import Collection, Iterable
from functools import cache
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Executable, Select, bindparam, or_, select, text, union_all

from guichet.clock import DAY, Instant, earlier
from guichet.db.engine import Database
from guichet.db.lists.pages import key_of
from guichet.db.references import parse_reference
from guichet.db.sql_functions import columns, in_materialized
from guichet.db.tables import payment_links, payments
from guichet.db.tables.payment_tables import SESSION_EXTERNAL_ID
from guichet.domain.ids import MerchantId, PaymentId
from guichet.domain.merchants import Environment
from guichet.domain.money import MAX_AMOUNT, parse_typed
from guichet.domain.payments import Payment, PaymentSummary
from guichet.domain.records import Record
from guichet.history.customer_names import LAST_CHARACTER, payments_named
from guichet.links import session_repository as sessions
from guichet.payments import repository
from guichet.refunds import repository as refund_repository

#: Characters of a name or an order number from which on its beginning is searched for.
SHORTEST: Final = 3
#: Payments of one way to write something that a search finds at most.
MOST_FOUND: Final = 50
#: How far back four digits and amounts are searched for, and in how many payments.
RECENT: Final = 31 * DAY
MOST_READ: Final = 10_000
_LONGEST: Final = 255
#: The digits at the end of a telephone number that people tell.
_ENDING: Final = 4
#: The largest id of a database.
_LAST_ID: Final = 2**63 - 1

_OF_MERCHANT: Final = (payments.c.merchant_id == bindparam("merchant_id"), payments.c.env == bindparam("env"))
_SHOWN: Final = select(*columns(payments, *PaymentSummary.__struct_fields__))
_recent: Final = (
    select(payments.c.id, payments.c.created_at, payments.c.phone_number, payments.c.amount, payments.c.total_amount)
    .where(*_OF_MERCHANT, payments.c.created_at >= bindparam("since"))
    .order_by(payments.c.created_at.desc(), payments.c.id.desc())
    .limit(MOST_READ)
    .subquery()
)
#: `low` and `high`: what is rounded to the amount that the customer was debited.
_RECENT: Final = _SHOWN.where(
    in_materialized(
        payments.c.id,
        select(_recent.c.id)
        .where(
            or_(
                _recent.c.phone_number.like(bindparam("ending")),
                _recent.c.amount == bindparam("amount", type_=BigInteger),
                _recent.c.total_amount.between(bindparam("low", type_=BigInteger), bindparam("high", type_=BigInteger)),
            )
        )
        .order_by(_recent.c.created_at.desc(), _recent.c.id.desc())
        .limit(MOST_FOUND + 1),
    )
)


class Found(Record, frozen=True):
    """Payments that a search found, newest first. `more`: there are others that match."""

    payments: list[Payment | PaymentSummary]
    more: bool = False


async def search(
    db: Database,
    merchant_id: MerchantId,
    env: Environment,
    query: str,
    phone_numbers: Collection[str],
    now: Instant,
) -> Found:
    """`query`: what a person looks for. `phone_numbers`: the telephone numbers that it may stand for, as digits with
    the country code; none if it is no number."""
    term = " ".join(query.split())
    if not term or len(term) > _LONGEST or "\0" in term:
        return Found([])
    exact = await _exact(db, merchant_id, env, term)
    matches: dict[PaymentId, PaymentSummary] = {}
    more = False
    scope = {"merchant_id": merchant_id, "env": env}
    statements = [
        (db.all, _numbered(phone_numbers)),
        (db.all, _ordered(term, env)),
        (db.scan, _recent_ones(term, now)),
    ]
    reads = [await read(statement[0], **scope, **statement[1]) for read, statement in statements if statement]
    lists = [[PaymentSummary(*row) for row in rows] for rows in reads]
    if len(term) >= SHORTEST and not term.isdigit() and parse_reference(term) is None:
        lists.append(await payments_named(db, merchant_id, env, term, MOST_FOUND + 1))
    for listed in lists:
        newest = sorted(listed, key=key_of, reverse=True)
        more = more or len(newest) > MOST_FOUND
        matches |= {payment.id: payment for payment in newest[:MOST_FOUND]}
    for payment in exact:
        matches.pop(payment.id, None)
    return Found([*exact, *sorted(matches.values(), key=key_of, reverse=True)], more)


def _numbered(phone_numbers: Collection[str]) -> tuple[Executable, dict[str, Any]] | None:
    if not phone_numbers:
        return None
    return _of_numbers(len(phone_numbers)), {f"phone_{at}": number for at, number in enumerate(sorted(phone_numbers))}


@cache
def _of_numbers(count: int) -> Executable:
    """The newest payments of each of `count` telephone numbers."""
    subqueries = [
        select(payments.c.id)
        .where(payments.c.phone_number == bindparam(f"phone_{at}"), payments.c.phone_number.is_not(None), *_OF_MERCHANT)
        .order_by(payments.c.id.desc())
        .limit(MOST_FOUND + 1)
        .subquery()
        for at in range(count)
    ]
    return _all_of(select(subquery.c.id) for subquery in subqueries)


def _ordered(term: str, env: Environment) -> tuple[Executable, dict[str, Any]] | None:
    """Payments whose order number, or their checkout session's, begins like this, in small or in capital letters."""
    if len(term) < SHORTEST:
        return None
    forms = sorted({term, term.lower(), term.upper()})
    params: dict[str, Any] = {f"first_{at}": form for at, form in enumerate(forms)} | {"test": env == "test"}
    return _of_orders(len(forms)), params | {f"last_{at}": form + LAST_CHARACTER for at, form in enumerate(forms)}


@cache
def _of_orders(count: int) -> Executable:
    """The payments of `count` ranges of order numbers."""
    subqueries = [
        query.limit(MOST_FOUND + 1).subquery()
        for at in range(count)
        for query in (
            select(payments.c.id).where(*_OF_MERCHANT, *_begins(payments.c.external_id, at)),
            select(payments.c.id).where(
                payments.c.link_id.is_not(None), in_materialized(payments.c.link_id, _sessions(at))
            ),
        )
    ]
    return _all_of(select(subquery.c.id) for subquery in subqueries)


def _sessions(at: int) -> Select[Any]:
    rows = payment_links.c
    of_merchant = (rows.merchant_id == bindparam("merchant_id"), rows.test == bindparam("test"))
    own = select(rows.id).where(*of_merchant, text(SESSION_EXTERNAL_ID), *_begins(rows.external_id, at))
    return own.limit(MOST_FOUND + 1)


def _begins(order: ColumnElement[Any], at: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return order >= bindparam(f"first_{at}"), order < bindparam(f"last_{at}")


def _all_of(ids: Iterable[Any]) -> Executable:
    return _SHOWN.where(in_materialized(payments.c.id, union_all(*ids)))


def _recent_ones(term: str, now: Instant) -> tuple[Executable, dict[str, Any]] | None:
    """Payments of the last 31 days whose telephone number ends with these four digits, or of this amount: the
    merchant's, or what the customer was debited. Digits that begin with 0 are a number, not an amount."""
    amount = None if term.isdigit() and term.startswith("0") else parse_typed(term, 2)
    ending = term if len(term) == _ENDING and term.isascii() and term.isdigit() else None
    if ending is None and (amount is None or not 0 < amount <= MAX_AMOUNT):
        return None
    amount = amount or 0
    # A currency without decimals rounds half up, and only to whole units.
    rounds = amount % 100 == 0
    return _RECENT, {
        "since": earlier(now, RECENT),
        "ending": f"%{ending}" if ending else "",
        "amount": amount,
        "low": amount - 50 if rounds else amount,
        "high": amount + 49 if rounds else amount,
    }


async def _exact(db: Database, merchant_id: MerchantId, env: Environment, term: str) -> list[Payment]:
    """The payment with this reference, refund's reference, readable number or external_id, and those of the checkout
    session with this external_id or id."""
    if (reference := parse_reference(term)) is not None:
        payment = await repository.by_reference(db, merchant_id, env, reference)
        if payment is None:
            refund = await refund_repository.by_reference(db, merchant_id, env, reference)
            payment = None if refund is None else await repository.by_id(db, refund.payment_id)
        if payment is not None:
            return [payment]
    ordered = await repository.by_external_id(db, merchant_id, env, term)
    numbered = await _by_number(db, merchant_id, env, term)
    matches = [payment for payment in (ordered, None if numbered == ordered else numbered) if payment is not None]
    return [*matches, *await _of_session(db, merchant_id, env, term, reference)]


async def _of_session(
    db: Database, merchant_id: MerchantId, env: Environment, term: str, reference: str | None
) -> list[Payment]:
    """The payments of the checkout session with this id or external_id, newest first."""
    session = None if reference is None else await sessions.by_reference(db, merchant_id, env, reference)
    session = session or await sessions.by_external_id(db, merchant_id, env, term)
    return [] if session is None else await repository.of_link(db, session.id, MOST_FOUND)


async def _by_number(db: Database, merchant_id: MerchantId, env: Environment, term: str) -> Payment | None:
    """The payment whose readable number this is (`schemas.payment.payment_identifier`)."""
    if not (term.isascii() and term.isdigit() and 10 <= len(term) <= 19 and int(term) <= _LAST_ID):
        return None
    payment = await repository.by_id(db, PaymentId(int(term)))
    is_mine = payment is not None and (payment.merchant_id, payment.env) == (merchant_id, env)
    return payment if is_mine else None
