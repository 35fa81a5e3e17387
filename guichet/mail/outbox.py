"""The queue of mails. A row is written in the transaction of the act that the mail is about.

What a mail says may hold a link that signs somebody in: it is encrypted while it waits, and removed once it was sent or
given up.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from sqlalchemy import bindparam, insert, select, update

from guichet.clock import Instant, later
from guichet.db.engine import Database, Reader, Row, Transaction
from guichet.db.queues.work_queue import Claim, WorkQueue
from guichet.db.sql_functions import columns, params
from guichet.db.tables import mails
from guichet.domain.accounts import Language, User, UserId
from guichet.domain.mails import MAX_MAIL_ATTEMPTS, RETRY_DELAYS, MailKind
from guichet.domain.records import Record
from guichet.merchants.vault import Vault

#: Mails that the mailbox of the development profile shows.
MOST_SHOWN: Final = 50
_MAX_ERROR: Final = 300


class Mail(Record, frozen=True):
    """A row of `mails`, with its message decrypted; `message` is None once it was removed."""

    id: int
    recipient: str
    kind: MailKind
    attempts: int
    created_at: Instant
    message: "Message | None"


class Message(msgspec.Struct, frozen=True):
    """What fills the template of a kind: the language, and the values by name."""

    language: Language
    values: dict[str, str]


_COLUMNS: Final = (*columns(mails, "id", "recipient", "kind", "attempts", "created_at", "message"),)
_INSERT: Final = insert(mails).values(
    **params("user_id", "recipient", "kind", "message"),
    status="pending",
    attempts=0,
    created_at=bindparam("now"),
    next_attempt_at=bindparam("due"),
)
_CHANGE_PENDING: Final = update(mails).where(mails.c.id == bindparam("mail"), mails.c.status == "pending")
_SENT: Final = _CHANGE_PENDING.values(
    status="sent", sent_at=bindparam("now"), next_attempt_at=None, error=None, message=bindparam("kept")
)
_FAILED: Final = _CHANGE_PENDING.values(next_attempt_at=bindparam("next_due"), error=bindparam("fault"))
_GIVEN_UP: Final = _CHANGE_PENDING.values(status="failed", next_attempt_at=None, error=bindparam("fault"), message=None)
_LATEST: Final = select(*_COLUMNS).order_by(mails.c.id.desc()).limit(MOST_SHOWN)
#: Of rows: what they say is still encrypted.
_QUEUE: Final[WorkQueue[Row]] = WorkQueue(
    mails, "next_attempt_at", "kind", lambda row: row, values={"attempts": mails.c.attempts + 1}, returning=_COLUMNS
)


class Outbox:
    """Writes mails and claims those that are due. `vault` encrypts what they say."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def add(
        self,
        tx: Transaction,
        user: User,
        kind: MailKind,
        values: Mapping[str, str],
        now: Instant,
        due: Instant | None = None,
    ) -> None:
        """Queues a mail to this user, in the user's language. `due`: when it is sent, at once by default."""
        await self._insert(tx, user.id, user.email, kind, Message(user.language, dict(values)), now, due)

    async def add_to_customer(self, tx: Transaction, recipient: str, values: Mapping[str, str], now: Instant) -> None:
        """Queues the receipt of a payment to whoever made it. We do not know which language they read; the page that
        it leads to asks their browser."""
        await self._insert(tx, None, recipient, "receipt", Message("fr", dict(values)), now, None)

    async def _insert(
        self,
        tx: Transaction,
        user_id: UserId | None,
        recipient: str,
        kind: MailKind,
        message: Message,
        now: Instant,
        due: Instant | None,
    ) -> None:
        encrypted = self._vault.encrypt(msgspec.json.encode(message).decode())
        addressee = {"user_id": user_id, "recipient": recipient}
        await tx.write(_INSERT, **addressee, kind=kind, message=encrypted, now=now, due=now if due is None else due)

    async def claim(self, db: Database, now: Instant, until: Instant, most: int) -> Claim[Mail]:
        """Mails that are due. The attempt counts from here on: a process that dies in it has used it."""
        claim = await _QUEUE.claim(db, now, until, most)
        return Claim([self._mail(row) for row in claim.jobs], claim.next_due)

    async def record_sent(self, db: Database, mail: Mail, now: Instant, *, keep: bool) -> None:
        """`keep`: the development profile shows what it said."""
        encrypted = None
        if keep and mail.message is not None:
            encrypted = self._vault.encrypt(msgspec.json.encode(mail.message).decode())
        await db.write(_SENT, mail=mail.id, now=now, kept=encrypted)

    async def record_failure(self, db: Database, mail: Mail, fault: str, now: Instant) -> None:
        """Due again after the next delay, or given up."""
        if mail.attempts >= MAX_MAIL_ATTEMPTS:
            await db.write(_GIVEN_UP, mail=mail.id, fault=fault[:_MAX_ERROR])
        else:
            due = later(now, RETRY_DELAYS[mail.attempts - 1])
            await db.write(_FAILED, mail=mail.id, next_due=due, fault=fault[:_MAX_ERROR])

    async def latest(self, db: Reader) -> list[Mail]:
        return [self._mail(row) for row in await db.all(_LATEST)]

    def _mail(self, row: Row) -> Mail:
        mail_id, recipient, kind, attempts, created_at, message = row
        content = None if message is None else msgspec.json.decode(self._vault.decrypt(message), type=Message)
        return Mail(mail_id, recipient, kind, attempts, created_at, content)
