"""The search of the staff for payments across merchants. Every way goes through an index and finds at most 50."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, Table, bindparam, select, text, union_all

from guichet.db.engine import Database, require
from guichet.db.references import parse_reference
from guichet.db.sql_functions import in_materialized, is_listed
from guichet.db.tables import merchants, payment_links, payments
from guichet.db.tables.payment_tables import SESSION_EXTERNAL_ID
from guichet.domain.merchants import ENVS, Environment
from guichet.domain.payments import Payment
from guichet.history.customer_names import LAST_CHARACTER
from guichet.history.search import SHORTEST
from guichet.payments import repository
from guichet.providers.registry import Registry
from guichet.refunds import repository as refund_repository

#: Payments that a search shows.
MOST: Final = 50
#: What is typed is cut to this.
LONGEST: Final = 200

_PHONE: Final = re.compile(r"\+?[\d \u00a0.-]{8,20}")
_own: Final = payments.alias("own")


def _of_each_merchant(rows: Table, ids: Callable[[Environment], Select[Any]]) -> list[Select[Any]]:
    """The ids that a query finds for each merchant, one environment at a time, at most MOST each time. Correlated: the
    indexes begin with the merchant, and SQLite would read all rows."""
    candidate = rows.alias("found")
    return [
        select(candidate.c.id).select_from(
            merchants.join(candidate, in_materialized(candidate.c.id, ids(env).limit(MOST).correlate(merchants)))
        )
        for env in ENVS
    ]


def _of_order(*matches: Callable[[ColumnElement[Any]], ColumnElement[bool]]) -> Select[Any]:
    """Payments whose order number, or their checkout session's, matches. Whatever matches, no more than MOST entries of
    an index are read from either, beside a probe for each merchant and environment."""

    def _payments(env: Environment) -> Select[Any]:
        conditions = (_own.c.merchant_id == merchants.c.id, _own.c.env == env)
        return select(_own.c.id).where(*conditions, *(match(_own.c.external_id) for match in matches))

    def _sessions(env: Environment) -> Select[Any]:
        rows = payment_links.c
        conditions = (rows.merchant_id == merchants.c.id, rows.test == (env == "test"), text(SESSION_EXTERNAL_ID))
        return select(rows.id).where(*conditions, *(match(rows.external_id) for match in matches))

    sessions = union_all(*_of_each_merchant(payment_links, _sessions)).limit(MOST)
    through = select(payments.c.id).where(
        payments.c.link_id.is_not(None), in_materialized(payments.c.link_id, sessions)
    )
    ids = [union_all(*_of_each_merchant(payments, _payments)).limit(MOST).subquery(), through.limit(MOST).subquery()]
    return select(payments).where(in_materialized(payments.c.id, union_all(*(select(query.c.id) for query in ids))))


_BY_ORDER: Final = _of_order(lambda order: order == bindparam("term"))
_BY_BEGINNING: Final = _of_order(lambda order: order >= bindparam("term"), lambda order: order < bindparam("end"))
#: The newest payments of each merchant with a number: millions may be of one test number.
_BY_PHONE: Final = (
    select(payments)
    .where(
        in_materialized(
            payments.c.id,
            union_all(
                *_of_each_merchant(
                    payments,
                    lambda env: (
                        select(_own.c.id)
                        .where(
                            _own.c.phone_number == bindparam("term"),
                            _own.c.phone_number.is_not(None),
                            _own.c.merchant_id == merchants.c.id,
                            _own.c.env == env,
                        )
                        .order_by(_own.c.id.desc())
                    ),
                )
            ),
        )
    )
    .order_by(payments.c.id.desc())
    .limit(MOST)
)
_BY_PROVIDER_REFERENCE: Final = (
    select(payments)
    .where(
        is_listed(payments.c.provider_account, "accounts"),
        payments.c.provider_reference == bindparam("term"),
        payments.c.provider_reference.is_not(None),
    )
    .limit(MOST)
)


async def search(db: Database, registry: Registry, text: str) -> list[Payment]:
    """Payments whose reference, telephone number or provider's reference is exactly this, or whose refund has this
    reference, or whose external_id or checkout session's begins like this; the newest first, those with exactly this
    order number never crowded out. Cost: ten index probes for each merchant, one for each provider account, MOST
    entries of each index, and the newest MOST payments of each merchant with the telephone number."""
    term = text.strip()[:LONGEST]
    if not term or "\0" in term:
        return []
    rows = [*await _by_reference(db, term), *await _rows(db, _BY_ORDER, term=term)]
    if _PHONE.fullmatch(term):
        rows += await _rows(db, _BY_PHONE, term=re.sub(r"\D", "", term)[:15])
    accounts = json.dumps(sorted(registry.names()))
    rows += await _rows(db, _BY_PROVIDER_REFERENCE, term=term, accounts=accounts)
    matches = {payment.id: payment for payment in rows}
    if len(term) >= SHORTEST:
        for payment in await _rows(db, _BY_BEGINNING, term=term, end=term + LAST_CHARACTER):
            if len(matches) < MOST:
                matches.setdefault(payment.id, payment)
    return sorted(matches.values(), key=lambda payment: payment.id, reverse=True)[:MOST]


async def _by_reference(db: Database, term: str) -> Sequence[Payment]:
    reference = parse_reference(term)
    if reference is None:
        return []
    payment = await repository.find(db, reference)
    if payment is not None:
        return [payment]
    refund = await refund_repository.find(db, reference)
    return [] if refund is None else [require(await repository.by_id(db, refund.payment_id))]


async def _rows(db: Database, statement: Select[tuple[object, ...]], **params: str) -> list[Payment]:
    return [Payment(*row) for row in await db.scan(statement, **params)]
