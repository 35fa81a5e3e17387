"""Customers' names by which the console finds payments (`history/search.py`): filled by the worker behind the commit,
so that creating a payment writes nothing for it.

A name stands there from each of its words on, so that people find `Awa Koné` by `kone`, `Koné Awa` or `awa k`. Payments
of the last minutes are not there yet: their names are read from their own rows.
"""

import json
from collections.abc import Iterable
from itertools import islice, takewhile
from typing import Any, Final

from sqlalchemy import BigInteger, bindparam, delete, func, or_, select

from guichet.clock import Instant, earlier
from guichet.db.engine import Database, Transaction
from guichet.db.sql_functions import columns, equal, is_listed, lock_until_commit, params, upsert
from guichet.db.tables import customer_names, customer_names_head, payments
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.names import search_words
from guichet.domain.payments import PaymentSummary
from guichet.ledger.hash_chain import SETTLED_AFTER

#: Payments whose names one turn adds. On SQLite this holds the event loop for a millisecond.
AT_ONCE: Final = 128
#: Of a merchant's newest payments, those whose own rows are read.
_NEWEST: Final = 500
#: Words of a name that count.
_MOST_WORDS: Final = 6
#: Sorts behind every text that begins with what is before it: no character is greater.
LAST_CHARACTER: Final = "\U0010ffff"

#: Against anonymisation: a name that was read before it is added after it was cleared.
_LOCK: Final = select(lock_until_commit(bindparam("lock")))
_HEAD: Final = select(customer_names_head.c.payment_id, customer_names_head.c.created_at)
_FOLLOWING: Final = (
    select(*columns(payments, "id", "created_at", "merchant_id", "env", "firstname", "lastname"))
    .where(payments.c.id > bindparam("after"))
    .order_by(payments.c.id)
    .limit(bindparam("most"))
)
_ADD: Final = upsert(customer_names).values(params(*customer_names.c.keys())).on_conflict_do_nothing()
_NEW_HEAD: Final = upsert(customer_names_head).values(
    {column.name: bindparam(column.name, type_=column.type) for column in customer_names_head.c}
)
_SET_HEAD: Final = _NEW_HEAD.on_conflict_do_update(
    index_elements=["name"],
    set_={"payment_id": _NEW_HEAD.excluded.payment_id, "created_at": _NEW_HEAD.excluded.created_at},
)
_REMOVE: Final = delete(customer_names).where(
    *(customer_names.c[name] == bindparam(f"of_{name}") for name in ("merchant_id", "env", "name", "payment_id"))
)
_NAMED: Final = (
    select(customer_names.c.payment_id)
    .where(
        *equal(customer_names, "merchant_id", "env"),
        customer_names.c.name >= bindparam("first"),
        customer_names.c.name < bindparam("last"),
    )
    .limit(bindparam("most"))
)
_newest: Final = (
    select(
        payments.c.id,
        payments.c.created_at,
        (func.coalesce(payments.c.firstname, "") + " " + func.coalesce(payments.c.lastname, "")).label("name"),
    )
    .where(
        *equal(payments, "merchant_id", "env"),
        payments.c.created_at >= bindparam("since", type_=BigInteger),
        payments.c.id > bindparam("after"),
    )
    .order_by(payments.c.created_at.desc(), payments.c.id.desc())
    .limit(_NEWEST)
    .subquery()
)
_name: Final = _newest.c.name
#: The newest payments of the merchant that are not there yet, without those whose names surely have no such word: what
#: else the names of five hundred are takes Python longer than all the rest of a search.
_LATEST: Final = (
    select(_newest.c.id, _name)
    .where(
        or_(
            func.lower(_name).contains(bindparam("word")),
            # What `search_words` makes of another letter or of an apostrophe, the database cannot say.
            func.octet_length(_name) != func.length(_name),
            _name.contains("'"),
            _name.contains("`"),
        )
    )
    .order_by(_newest.c.created_at.desc(), _newest.c.id.desc())
)
_BY_IDS: Final = select(*columns(payments, *PaymentSummary.__struct_fields__)).where(is_listed(payments.c.id, "ids"))


def names_of(firstname: str | None, lastname: str | None) -> list[str]:
    """A name from each of its words on: `awa kone` and `kone awa`."""
    words = _words(f"{firstname or ''} {lastname or ''}")
    return sorted({" ".join(words[at:] + words[:at]) for at in range(len(words))})


def _words(name: str) -> list[str]:
    return search_words(name)[:_MOST_WORDS]


def _is_named(prefix: str, name: str) -> bool:
    """Whether one of `names_of` begins with `prefix`: they all stand in the name written twice."""
    name = " ".join(_words(name))
    return len(prefix) <= len(name) and f" {prefix}" in f" {name} {name}"


async def add_next(db: Database, now: Instant) -> int:
    """Adds the names of the payments that follow the last one; returns how many payments. Run by the worker.

    Only up to the first payment that is not settled: before it, none with a lower id is committed later any more.
    """
    async with db.transaction() as tx:
        await tx.all(_LOCK, lock=customer_names.name)
        head = await tx.one(_HEAD)
        following = await tx.all(_FOLLOWING, after=head[0] if head else 0, most=AT_ONCE)
        settled = list(takewhile(lambda row: row[1] <= now - SETTLED_AFTER, following))
        if not settled:
            return 0
        await tx.write_many(_ADD, [entry for row in settled for entry in _entries(*row)])
        payment_id, created_at, *_ = settled[-1]
        await tx.write(_SET_HEAD, name="last", payment_id=payment_id, created_at=created_at)
        return len(settled)


def _entries(
    payment_id: int, _: Instant, merchant_id: int, env: str, firstname: str | None, lastname: str | None
) -> list[dict[str, Any]]:
    row = {"merchant_id": merchant_id, "env": env, "payment_id": payment_id}
    return [{**row, "name": name} for name in names_of(firstname, lastname)]


async def forget(tx: Transaction, rows: Iterable[tuple[Any, ...]]) -> None:
    """Removes the names of payments that are anonymised in this transaction: rows (payment, merchant, environment,
    first name, last name), as they were before."""
    await tx.all(_LOCK, lock=customer_names.name)
    entries = [entry for payment_id, *row in rows for entry in _entries(payment_id, Instant(0), *row)]
    await tx.write_many(_REMOVE, [{f"of_{name}": value for name, value in entry.items()} for entry in entries])


async def payments_named(
    db: Database, merchant_id: MerchantId, env: Environment, text: str, most: int
) -> list[PaymentSummary]:
    """At most `most` payments of a name that begins like this at one of its words; those of the last minutes, which are
    not in the index, before others. Four statements; they read the range of an index, and at most 500 rows of the
    newest payments."""
    words = search_words(text)
    if not words:
        return []
    prefix = " ".join(words)
    scope = {"merchant_id": merchant_id, "env": env}
    last, created_at = await db.one(_HEAD) or (0, SETTLED_AFTER)
    since = earlier(Instant(created_at), SETTLED_AFTER)
    ids = {row[0] for row in await db.all(_NAMED, **scope, first=prefix, last=prefix + LAST_CHARACTER, most=most)}
    latest = await db.all(_LATEST, **scope, since=since, after=last, word=words[0])
    ids.update(islice((payment_id for payment_id, name in latest if _is_named(prefix, name)), most))
    rows = await db.all(_BY_IDS, ids=json.dumps(sorted(ids)[-most:])) if ids else []
    return [PaymentSummary(*row) for row in rows]
