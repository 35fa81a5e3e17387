"""The search of one merchant's payments: by reference, number, external_id, telephone number or customer's name.

What matches exactly comes first. Cost: one look-up for each exact match and each way to write a telephone number, and
at most MOST_FOUND entries of an index for each, however many payments there are.
"""

import string
from collections.abc import Collection, Iterator
from typing import Final

from sqlalchemy import Executable, bindparam, select, text, union_all

from guichet.db.engine import Database
from guichet.db.lists.pages import key_of
from guichet.db.references import parse_reference
from guichet.db.sql_functions import in_materialized
from guichet.db.tables import payments
from guichet.db.tables.payment_tables import FIRST_NAME_FIRST, HAS_NAME, LAST_NAME_FIRST
from guichet.domain.ids import MerchantId, PaymentId
from guichet.domain.merchants import Environment
from guichet.domain.payments import Payment
from guichet.domain.records import Record
from guichet.payments import repository
from guichet.refunds import repository as refund_repository

#: Characters of a name from which on it is searched for.
SHORTEST_NAME: Final = 3
#: Payments of one way to write a telephone number or a name that a search finds at most.
MOST_FOUND: Final = 50
_LONGEST: Final = 255
#: The largest id of a database.
_LAST_ID: Final = 2**63 - 1
_SMALL_LETTERS: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
#: Sorts behind every text that begins with what is before it: no character is greater.
_LAST_CHARACTER: Final = "\U0010ffff"

_MINE: Final = (payments.c.merchant_id == bindparam("merchant_id"), payments.c.env == bindparam("env"))
_OF_A_NUMBER: Final = (
    select(payments)
    .where(payments.c.phone_number == bindparam("phone_number"), *_MINE)
    .order_by(payments.c.id.desc())
    .limit(MOST_FOUND + 1)
)
_named: Final = [
    select(payments.c.id)
    .where(*_MINE, text(f"({HAS_NAME})"), name >= bindparam("first"), name < bindparam("last"))
    .limit(MOST_FOUND + 1)
    .subquery()
    for name in (FIRST_NAME_FIRST, LAST_NAME_FIRST)
]
_NAMED: Final = select(payments).where(
    in_materialized(payments.c.id, union_all(*(select(each.c.id) for each in _named)))
)


class Found(Record, frozen=True):
    """Payments that a search found, newest first. `more`: there are others that match."""

    payments: list[Payment]
    more: bool = False


async def search(
    db: Database, merchant_id: MerchantId, env: Environment, typed: str, phone_numbers: Collection[str]
) -> Found:
    """`typed`: what a person looks for. `phone_numbers`: the telephone numbers that it may stand for, as digits with
    the country code; none if it is no number."""
    wanted = " ".join(typed.split())
    if not wanted or len(wanted) > _LONGEST or "\0" in wanted:
        return Found([])
    exact = await _exact(db, merchant_id, env, wanted)
    found: dict[PaymentId, Payment] = {}
    more = False
    for statement, params in _inexact(wanted, phone_numbers):
        rows = [Payment(*row) for row in await db.all(statement, merchant_id=merchant_id, env=env, **params)]
        more = more or len(rows) > MOST_FOUND
        found |= {payment.id: payment for payment in rows[:MOST_FOUND]}
    for payment in exact:
        found.pop(payment.id, None)
    return Found([*exact, *sorted(found.values(), key=key_of, reverse=True)], more)


def _inexact(wanted: str, phone_numbers: Collection[str]) -> Iterator[tuple[Executable, dict[str, str]]]:
    """The statements that look for a telephone number, or else for a name, with their parameters."""
    for number in sorted(set(phone_numbers)):
        yield _OF_A_NUMBER, {"phone_number": number}
    if not phone_numbers and len(wanted) >= SHORTEST_NAME:
        for folded in _foldings(wanted):
            yield _NAMED, {"first": folded, "last": folded + _LAST_CHARACTER}


async def _exact(db: Database, merchant_id: MerchantId, env: Environment, wanted: str) -> list[Payment]:
    """The payment with this reference, refund's reference, readable number or external_id, or none."""
    if (reference := parse_reference(wanted)) is not None:
        payment = await repository.by_reference(db, merchant_id, env, reference)
        if payment is None:
            refund = await refund_repository.by_reference(db, merchant_id, env, reference)
            payment = None if refund is None else await repository.by_id(db, refund.payment_id)
        if payment is not None:
            return [payment]
    found = await repository.by_external_id(db, merchant_id, env, wanted)
    numbered = await _by_number(db, merchant_id, env, wanted)
    return [each for each in (found, None if numbered == found else numbered) if each is not None]


async def _by_number(db: Database, merchant_id: MerchantId, env: Environment, wanted: str) -> Payment | None:
    """The payment whose readable number this is (`schemas.payment.payment_identifier`)."""
    if not (wanted.isascii() and wanted.isdigit() and 10 <= len(wanted) <= 19 and int(wanted) <= _LAST_ID):
        return None
    payment = await repository.by_id(db, PaymentId(int(wanted)))
    is_mine = payment is not None and (payment.merchant_id, payment.env) == (merchant_id, env)
    return payment if is_mine else None


def _foldings(name: str) -> set[str]:
    """How the name may be stored, as `db.sql_functions.folded_name` writes it: databases make only the letters A to Z
    small, so É and é are different there."""
    return {each.translate(_SMALL_LETTERS) for each in (name, name.lower(), name.upper(), name.title())}
