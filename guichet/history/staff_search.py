"""The search of the staff for payments across merchants. Every way goes through an index and finds at most 50."""

import json
import re
from collections.abc import Sequence
from typing import Final

from sqlalchemy import Select, bindparam, or_, select, text, union_all

from guichet.db.engine import Database, require
from guichet.db.references import parse_reference
from guichet.db.sql_functions import in_materialized, json_texts
from guichet.db.tables import merchants, payment_links, payments
from guichet.db.tables.payment_tables import SESSION_EXTERNAL_ID
from guichet.domain.merchants import ENVS
from guichet.domain.payments import Payment
from guichet.payments import repository
from guichet.providers.registry import Registry
from guichet.refunds import repository as refund_repository

#: Payments that a search shows.
MOST: Final = 50
#: What is typed is cut to this.
LONGEST: Final = 200

_PHONE: Final = re.compile(r"\+?[\d \u00a0.-]{8,20}")
_ENV: Final = or_(*(payments.c.env == env for env in ENVS))
# The index is by merchant and environment: two probes for each merchant.
_BY_EXTERNAL_ID: Final = (
    select(payments)
    .select_from(merchants.join(payments, payments.c.merchant_id == merchants.c.id))
    .where(_ENV, payments.c.external_id == bindparam("wanted"))
    .limit(MOST)
)
_of_session: Final = payment_links.alias("of_session")
#: The sessions of this external_id, one environment at a time. Correlated, or SQLite would read all sessions.
_SESSIONS: Final = [
    select(_of_session.c.id).select_from(
        merchants.join(
            _of_session,
            in_materialized(
                _of_session.c.id,
                select(payment_links.c.id)
                .where(
                    payment_links.c.merchant_id == merchants.c.id,
                    payment_links.c.test == (env == "test"),
                    payment_links.c.external_id == bindparam("wanted"),
                    text(SESSION_EXTERNAL_ID),
                )
                .correlate(merchants),
            ),
        )
    )
    for env in ENVS
]
_BY_SESSION: Final = (
    select(payments)
    .where(payments.c.link_id.is_not(None), in_materialized(payments.c.link_id, union_all(*_SESSIONS)))
    .limit(MOST)
)
_of_merchant: Final = payments.alias("of_merchant")
_newest: Final = payments.alias("newest")
#: The newest payments of each merchant with a number, one environment at a time: millions may be of one test number.
_SAME_NUMBER: Final = [
    select(_of_merchant.c.id).select_from(
        merchants.join(
            _of_merchant,
            in_materialized(
                _of_merchant.c.id,
                select(_newest.c.id)
                .where(
                    _newest.c.phone_number == bindparam("wanted"),
                    _newest.c.phone_number.is_not(None),
                    _newest.c.merchant_id == merchants.c.id,
                    _newest.c.env == env,
                )
                .order_by(_newest.c.id.desc())
                .limit(MOST)
                .correlate(merchants),
            ),
        )
    )
    for env in ENVS
]
_BY_PHONE: Final = (
    select(payments)
    .where(in_materialized(payments.c.id, union_all(*_SAME_NUMBER)))
    .order_by(payments.c.id.desc())
    .limit(MOST)
)
_BY_PROVIDER_REFERENCE: Final = (
    select(payments)
    .where(
        payments.c.provider_account.bool_op("IN")(json_texts(bindparam("accounts"))),
        payments.c.provider_reference == bindparam("wanted"),
        payments.c.provider_reference.is_not(None),
    )
    .limit(MOST)
)


async def search(db: Database, registry: Registry, typed: str) -> list[Payment]:
    """Payments whose reference, external_id, telephone number or provider's reference is exactly this, or whose refund
    has this reference, or checkout session this external_id; the newest first. Cost: six index probes for each
    merchant, one for each provider account, and the newest MOST payments of each merchant with the telephone number."""
    wanted = typed.strip()[:LONGEST]
    if not wanted or "\0" in wanted:
        return []
    found: dict[int, Payment] = {}
    if (reference := parse_reference(wanted)) is not None:
        for payment in await _by_reference(db, reference):
            found[payment.id] = payment
    rows = [*await _rows(db, _BY_EXTERNAL_ID, wanted=wanted), *await _rows(db, _BY_SESSION, wanted=wanted)]
    if _PHONE.fullmatch(wanted):
        rows += await _rows(db, _BY_PHONE, wanted=re.sub(r"\D", "", wanted)[:15])
    accounts = json.dumps(sorted(registry.names()))
    rows += await _rows(db, _BY_PROVIDER_REFERENCE, wanted=wanted, accounts=accounts)
    found |= {payment.id: payment for payment in rows}
    return sorted(found.values(), key=lambda payment: payment.id, reverse=True)[:MOST]


async def _by_reference(db: Database, reference: str) -> Sequence[Payment]:
    payment = await repository.find(db, reference)
    if payment is not None:
        return [payment]
    refund = await refund_repository.find(db, reference)
    return [] if refund is None else [require(await repository.by_id(db, refund.payment_id))]


async def _rows(db: Database, statement: Select[tuple[object, ...]], **params: str) -> list[Payment]:
    return [Payment(*row) for row in await db.scan(statement, **params)]
