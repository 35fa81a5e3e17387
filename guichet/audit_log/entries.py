"""The audit log: one row for each act of a person, written in the transaction of the act itself.

Rows are never changed or deleted, which triggers of the database enforce. Each row's digest covers the row and the
digest before it (`verification.py`).
"""

import hashlib
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import bindparam, insert, select, update

from guichet.clock import Instant
from guichet.db.engine import Database, Reader, Transaction, require
from guichet.db.tables import audit_log, audit_log_head
from guichet.domain.audit_log import Act
from guichet.domain.ids import MerchantId

#: Rows that one page lists.
PAGE: Final = 500

_LOCK_HEAD: Final = select(audit_log_head.c.number, audit_log_head.c.digest).with_for_update()
_INSERT: Final = insert(audit_log).values({column.name: bindparam(column.name) for column in audit_log.c})
_MOVE_HEAD: Final = update(audit_log_head).values(number=bindparam("last_number"), digest=bindparam("last_digest"))
_HEAD: Final = select(audit_log_head.c.number, audit_log_head.c.digest)
_PAGE: Final = select(audit_log).where(audit_log.c.number > bindparam("after")).order_by(audit_log.c.number).limit(PAGE)
_LATEST: Final = select(audit_log).order_by(audit_log.c.number.desc()).limit(bindparam("most"))
_ABOUT: Final = (
    select(audit_log)
    .where(audit_log.c.subject == bindparam("about"))
    .order_by(audit_log.c.number.desc())
    .limit(bindparam("most"))
)


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
    """Adds an act to the log, in the transaction that performs it. Acts of all processes wait for one another here."""
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
        after=_json(act.after),
        digest="",
    )
    entry = entry._replace(digest=digest_of(previous, entry))
    await tx.write(_INSERT, **entry._asdict())
    await tx.write(_MOVE_HEAD, last_number=entry.number, last_digest=entry.digest)
    return entry


async def head(db: Reader) -> tuple[int, str]:
    """The number and the digest of the last entry."""
    number, digest = require(await db.one(_HEAD))
    return number, digest


async def page(db: Database, after: int) -> list[Entry]:
    """The next entries by number, at most PAGE."""
    return [Entry(*row) for row in await db.scan(_PAGE, after=after)]


async def latest(db: Database, most: int = PAGE) -> list[Entry]:
    """The newest entries, newest first."""
    return [Entry(*row) for row in await db.scan(_LATEST, most=most)]


async def about(db: Reader, subject: str, most: int = PAGE) -> list[Entry]:
    """The entries about one subject, by its reference or id, newest first."""
    return [Entry(*row) for row in await db.all(_ABOUT, about=subject, most=most)]


def digest_of(previous: str, entry: Entry) -> str:
    """SHA-256, in hexadecimal, of the previous digest and, on a second line, every column but the digest as a JSON
    array."""
    return hashlib.sha256(previous.encode() + b"\n" + msgspec.json.encode(list(entry[:-1]))).hexdigest()


def _json(facts: Any) -> str:
    return msgspec.json.encode(dict(facts), order="sorted").decode()
