"""The audit log: one row for each act of a person, written in the transaction of the act itself.

Rows are never changed or deleted, which triggers of the database enforce. Each row's digest covers the row and the
digest before it; `verify` proves that none was changed, removed or cut off.
"""

import hashlib
import json
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import structs
from sqlalchemy import Select, String, and_, bindparam, insert, or_, select, update

from guichet.audit_log import approval_requests
from guichet.clock import Instant
from guichet.db.engine import Database, Reader, Transaction, require
from guichet.db.sql_functions import is_listed, params
from guichet.db.tables import audit_log, audit_log_head, users
from guichet.domain.audit_log import CONSOLE, Act, Actor, ActRefused, Facts, real_os_user
from guichet.domain.chain_heads import LOG_FAULTS, ChainFault, HeadComparison, KnownHead, KnownHeads
from guichet.domain.ids import MerchantId
from guichet.domain.messages import Message
from guichet.domain.names import search_words
from guichet.domain.records import Record
from guichet.domain.refusals import Refusal

#: Rows that one page lists.
PAGE: Final = 500

#: Whoever is not of a merchant's team, to `of_merchant`. No address is like it.
STAFF: Final = "staff"

_LOCK_HEAD: Final = select(audit_log_head.c.number, audit_log_head.c.digest).with_for_update()
_INSERT: Final = insert(audit_log).values(params(*audit_log.c.keys()))
_MOVE_HEAD: Final = update(audit_log_head).values(number=bindparam("last_number"), digest=bindparam("last_digest"))
_HEAD: Final = select(audit_log_head.c.number, audit_log_head.c.digest)
_FIRST: Final = select(audit_log.c.at).where(audit_log.c.number == 1)
_PAGE: Final = select(audit_log).where(audit_log.c.number > bindparam("after")).order_by(audit_log.c.number).limit(PAGE)
_LATEST: Final = select(audit_log).order_by(audit_log.c.number.desc()).limit(bindparam("most"))
_ABOUT: Final = (
    select(audit_log)
    .where(audit_log.c.subject == bindparam("about"))
    .order_by(audit_log.c.number.desc())
    .limit(bindparam("most"))
)

#: Whom a typed name could be: everybody of the staff, and whoever has this address.
_NAMED: Final = select(users.c.email, users.c.name).where(
    or_(users.c.email == bindparam("typed"), users.c.staff_role.is_not(None))
)


#: An entry with the name of the person if it is one of a merchant's team (or was): acts of the staff have none.
_BY: Final = bindparam("by", type_=String)
_OF_MERCHANT: Final = (
    select(*audit_log.c, users.c.name)
    .select_from(
        audit_log.outerjoin(
            users,
            (audit_log.c.os_user == CONSOLE) & (users.c.email == audit_log.c.actor) & users.c.staff_role.is_(None),
        )
    )
    .where(
        audit_log.c.merchant_id == bindparam("merchant"),
        is_listed(audit_log.c.action, "actions"),
        or_(_BY == "", users.c.email == _BY, and_(_BY == STAFF, users.c.id.is_(None))),
    )
    .limit(bindparam("most"))
)
_OLDER: Final = _OF_MERCHANT.where(audit_log.c.number < bindparam("before")).order_by(audit_log.c.number.desc())
_NEWER: Final = _OF_MERCHANT.where(audit_log.c.number > bindparam("after")).order_by(audit_log.c.number)
_NO_NUMBER: Final = 2**63 - 1


class Filter(NamedTuple):
    """Which entries a list shows; an empty text: all. `subject`: the reference or id; `without`: acts that are left
    out."""

    actor: str = ""
    action: str = ""
    subject: str = ""
    without: tuple[str, ...] = ()


_EQUAL: Final = ("actor", "action", "subject")


class Entry(NamedTuple):
    """A row of the audit log, in the order of its columns. `before` and `after` are JSON objects."""

    number: int
    at: Instant
    actor: str
    os_user: str
    action: str
    subject_type: str
    subject: str
    merchant_id: MerchantId | None
    reason: str
    before: str
    after: str
    digest: str


async def record(tx: Transaction, act: Act, now: Instant) -> Entry:
    """Adds an act to the log, in the transaction that performs it. Acts of all processes wait for one another here.

    An act that a second person approves uses that approval up. Raises ActRefused if it was used, refused or expired:
    the transaction, and the act with it, must then fail. The same when a command gives it a name that is not its own.
    """
    after = act.after
    if act.actor.is_typed:
        await _refuse_name_of_another(tx, act.actor)
    if (approval := act.actor.approval) is not None:
        request = await approval_requests.use(tx, approval, now)
        facts: Facts = {"request": request.id, "act": request.act}
        approving = Act(approval.approver, "approval.approved", "approval", request.subject, act.merchant_id)
        await record(tx, structs.replace(approving, reason=approval.reason, after=facts), now)
        after = {**after, "approval": approval.request_id, "approved_by": approval.approver.name}
    number, previous = require(await tx.one(_LOCK_HEAD))
    entry = Entry(
        number=number + 1,
        at=now,
        actor=act.actor.name,
        os_user=act.actor.os_user,
        action=act.action,
        subject_type=act.subject_type,
        subject=act.subject,
        merchant_id=act.merchant_id,
        reason=act.reason,
        before=_json(act.before),
        after=_json(after),
        digest="",
    )
    entry = entry._replace(digest=digest_of(previous, entry))
    await tx.write(_INSERT, **entry._asdict())
    await tx.write(_MOVE_HEAD, last_number=entry.number, last_digest=entry.digest)
    return entry


async def _refuse_name_of_another(tx: Transaction, actor: Actor) -> None:
    """A command may not name the console, nor somebody with an account, unless it runs as the operating-system user of
    that name: entries, and what a merchant reads of them, would say that it was they. What reads alike counts as the
    same: other Unicode forms, accents, spaces."""
    name_words, real = search_words(actor.name), {real_os_user(actor.os_user)}
    if name_words == [CONSOLE]:
        raise ActRefused(Refusal.NAME_RESERVED(name=actor.name))
    for email, name in await tx.all(_NAMED, typed=unicodedata.normalize("NFKC", actor.name).lower()):
        names = {email, email.partition("@")[0], name.casefold()}
        if name_words in map(search_words, names) and names.isdisjoint(real):
            raise ActRefused(Refusal.NAME_RESERVED(name=actor.name))


async def head(db: Reader) -> tuple[int, str]:
    """The number and the digest of the last entry."""
    number, digest = require(await db.one(_HEAD))
    return number, digest


async def began_at(db: Reader) -> Instant | None:
    """When the installation's first act was done; None before it."""
    return await db.one_as(Instant, _FIRST)


async def page(db: Database, after: int) -> list[Entry]:
    """The next entries by number, at most PAGE."""
    return [Entry(*row) for row in await db.scan(_PAGE, after=after)]


async def latest(db: Database, most: int = PAGE) -> list[Entry]:
    """The newest entries, newest first."""
    return [Entry(*row) for row in await db.scan(_LATEST, most=most)]


async def about(db: Reader, subject: str, most: int = PAGE) -> list[Entry]:
    """The entries about one subject, by its reference or id, newest first."""
    return [Entry(*row) for row in await db.all(_ABOUT, about=subject, most=most)]


async def filtered(db: Database, filters: Filter, before: int, most: int) -> list[Entry]:
    """At most `most` entries with a number below `before`, newest first.

    One condition is read by its index. With several, the entries of one of them are read until the page is full.
    """
    params = {f"wanted_{name}": getattr(filters, name) for name in _EQUAL if getattr(filters, name)}
    statement = _filtered(frozenset(params))
    without = json.dumps(filters.without)
    return [Entry(*row) for row in await db.scan(statement, **params, without=without, before=before, most=most)]


@cache
def _filtered(conditions: frozenset[str]) -> Select[Any]:
    columns = {f"wanted_{name}": audit_log.c[name] for name in _EQUAL}
    matches = [columns[name] == bindparam(name) for name in sorted(conditions)]
    return (
        select(audit_log)
        .where(
            audit_log.c.number < bindparam("before"),
            ~is_listed(audit_log.c.action, "without"),
            *matches,
        )
        .order_by(audit_log.c.number.desc())
        .limit(bindparam("most"))
    )


async def of_merchant(
    db: Database,
    merchant_id: MerchantId,
    actions: Sequence[str],
    by: str,
    most: int,
    *,
    before: int | None = None,
    after: int | None = None,
) -> list[tuple[Entry, str | None]]:
    """The acts about a merchant of these kinds, newest first, each with the name of the person of the team who did it;
    None for the staff. `by`: the address of a person, STAFF, or empty for everybody.

    Those just before the number `before` (None: the newest), or just after `after`. Cost: the merchant's entries down
    to the last one shown.
    """
    params = {"merchant": merchant_id, "actions": json.dumps(list(actions)), "by": by, "most": most}
    if after is not None:
        rows = (await db.scan(_NEWER, **params, after=after))[::-1]
    else:
        rows = await db.scan(_OLDER, **params, before=_NO_NUMBER if before is None else before)
    return [(Entry(*list(row)[:-1]), list(row)[-1]) for row in rows]


def digest_of(previous: str, entry: Entry) -> str:
    """SHA-256, in hexadecimal, of the previous digest and, on a second line, every column but the digest as a JSON
    array."""
    return hashlib.sha256(previous.encode() + b"\n" + msgspec.json.encode(list(entry[:-1]))).hexdigest()


def _json(facts: Any) -> str:
    return msgspec.json.encode(dict(facts), order="sorted").decode()


#: Stands for the previous digest in the first entry.
FIRST_DIGEST: Final = "0" * 64


class Verification(Record, frozen=True):
    """`head`: the last digest, to be written down elsewhere. `fault`: about the first wrong entry."""

    entries: int
    head: str
    fault: Message | None


_NO_HEADS: Final = KnownHeads()


async def verify(db: Database, known: KnownHeads = _NO_HEADS) -> Verification:
    """Reads the whole log, in steps. `known`: heads that left this database; the log must still contain them."""
    end, end_digest = await head(db)
    heads = HeadComparison(known.acts, LOG_FAULTS)
    # Entries may have been added since the head was read: it must be one of those that are read now.
    kept = HeadComparison([KnownHead(end_digest, end, ChainFault.OWN_HEAD())], LOG_FAULTS)
    number, digest = 0, FIRST_DIGEST
    while entries := await page(db, number):
        for entry in entries:
            if entry.number != number + 1:
                return Verification(number, digest, ChainFault.ENTRY_MISSING(number=number + 1))
            if entry.digest != digest_of(digest, entry):
                return Verification(number, digest, ChainFault.ENTRY_CHANGED(number=entry.number))
            number, digest = entry.number, entry.digest
            heads.reached(number, digest)
            kept.reached(number, digest)
    if kept.fault is not None:
        return Verification(number, digest, ChainFault.ENTRIES_MISSING(number=number, end=end))
    return Verification(number, digest, heads.fault or known.fault)
