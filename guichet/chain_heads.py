"""Heads of the two hash chains outside the database, so that who owns the database cannot rewrite the books unnoticed
(docs/decisions.md, "Heads leave the machine"). They are published as a line of the log always, and where
`GUICHET_LEDGER_HEADS` says; a check of either chain asks that it still contains what was published last, and what was
kept.
"""

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import bindparam, select, update

from guichet.audit_log import entries as audit_log
from guichet.clock import HOUR, MINUTE, SECOND, Instant, earlier, iso, read_date
from guichet.db.engine import Database, require
from guichet.db.tables import published_heads
from guichet.domain.chain_heads import EVENT, ChainFault, ChainHeads, KnownHead, KnownHeads, UnreadableHead, read_heads
from guichet.domain.messages import Moment, verbatim
from guichet.http_client import HttpClient, HttpClientError
from guichet.ledger.hash_chain import chain_head
from guichet.logs import log, unfiltered_log
from guichet.settings import Settings
from guichet.webhooks.sender import sign

_GET: Final = select(*(column for column in published_heads.c if column.name not in ("singleton", "demonstration")))
_SET: Final = update(published_heads).values(
    {name: bindparam(f"new_{name}") for name in ("published_at", "posting_id", "link", "digest", "act", "act_digest")}
)


class Published(NamedTuple):
    """The row of `published_heads`. All but `database_id` are None before the first publication."""

    database_id: str
    published_at: Instant | None
    posting_id: int | None
    link: int | None
    digest: str | None
    act: int | None
    act_digest: str | None

    def covers(self, heads: ChainHeads) -> bool:
        return (self.digest, self.act_digest) == (heads.digest, heads.act_digest)


async def last_published(db: Database) -> Published:
    return Published(*require(await db.one(_GET)))


async def current_heads(db: Database, database_id: str, now: Instant) -> ChainHeads:
    """Reads the last row of either chain."""
    link, posting_id, digest = await chain_head(db)
    act, act_digest = await audit_log.head(db)
    return ChainHeads(EVENT, iso(now), database_id, posting_id, link, digest, act, act_digest)


async def set_published(db: Database, heads: ChainHeads, now: Instant) -> None:
    await db.write_locally(
        _SET,
        new_published_at=now,
        new_posting_id=heads.posting_id,
        new_link=heads.link,
        new_digest=heads.digest,
        new_act=heads.act,
        new_act_digest=heads.act_digest,
    )


async def known_heads(db: Database, settings: Settings, digests: Iterable[str], file: Path | None) -> KnownHeads:
    """What a check of either chain compares by itself: the last publication, the file that `GUICHET_LEDGER_HEADS`
    names, and `file`, in which somebody else kept heads. `digests`: single ones that a person typed.

    Reads the files whole, in a thread.
    """
    last = await last_published(db)
    typed_heads = [KnownHead(digest, None, ChainFault.TYPED_HEAD()) for digest in digests]
    ledger = [*typed_heads, *_published(last, last.posting_id, last.digest)]
    acts = [*typed_heads, *_published(last, last.act, last.act_digest)]
    try:
        heads = await asyncio.to_thread(
            lambda: [head for source in _files(settings, last, file) for head in _read(source, last.database_id)]
        )
    except (OSError, UnreadableHead) as error:
        fault = error.message if isinstance(error, UnreadableHead) else verbatim(str(error))
        return KnownHeads((*ledger,), (*acts,), ChainFault.NOT_COMPARABLE(chain_fault=fault))
    for head in heads:
        origin = ChainFault.PUBLISHED_HEAD(at=_moment(head.at))
        ledger.append(KnownHead(head.digest, head.posting_id, origin))
        acts.append(KnownHead(head.act_digest, head.act, origin))
    return KnownHeads((*ledger,), (*acts,))


def _published(last: Published, place: int | None, digest: str | None) -> list[KnownHead]:
    if last.published_at is None or digest is None:
        return []
    return [KnownHead(digest, place, ChainFault.PUBLISHED_HEAD(at=Moment(last.published_at)))]


def _files(settings: Settings, last: Published, file: Path | None) -> list[Path]:
    files = [file] if file is not None else []
    configured = settings.ledger_heads
    # Before the first publication the worker has not made it yet. Afterwards a missing file is a fault.
    if isinstance(configured, Path) and (last.published_at is not None or configured.exists()):
        files.append(configured)
    return files


def _read(file: Path, database_id: str) -> list[ChainHeads]:
    """Raises OSError; UnreadableHead also for a head of another database. To pass over those would let whoever changes
    the id of this database hide every head that it published."""
    with file.open("rb") as lines:
        heads = list(read_heads(lines, file.name))
    for head in heads:
        if head.database != database_id:
            other = {"file": file.name, "other": head.database, "database": database_id}
            raise UnreadableHead(ChainFault.OTHER_DATABASE(**other, at=_moment(head.at)))
    return heads


def _moment(text: str) -> Moment | str:
    """When a head says that it was published; as it stands there if that is no date."""
    at = read_date(text)
    return text if at is None else Moment(at)


#: The turn of the worker that publishes, and how often: heads that changed, and again what the receiver did not take.
TURN: Final = "heads"
PUBLISH_EVERY: Final = 5 * MINUTE
#: Heads that did not change are published again after this time: whoever receives them sees that we still publish.
REPEATED_AFTER: Final = HOUR
#: Seconds that the receiver has for its answer.
_TIMEOUT: Final = 10.0


async def publish_heads(
    db: Database, http_client: HttpClient, settings: Settings, now: Instant, *, always: bool = False
) -> bool:
    """Publishes the heads if they changed, or the last publication is an hour old; `always`: in any case.

    Returns False when the receiver did not take them: they are still the newest at the next call, so nothing needs to
    be kept. Cost: three rows read, one written. Raises StorageError.
    """
    last = await last_published(db)
    heads = await current_heads(db, last.database_id, now)
    if last.published_at is None and not (heads.posting_id or heads.act):
        return True  # Nothing happened yet in this database.
    fresh = last.published_at is not None and last.published_at > earlier(now, REPEATED_AFTER)
    if fresh and last.covers(heads) and not always:
        return True
    unfiltered_log.info(**msgspec.structs.asdict(heads))
    if (problem := await _deliver(http_client, settings, heads, now)) is not None:
        log.warning("ledger.head_not_published", error=problem)
        return False
    await set_published(db, heads, now)
    return True


async def _deliver(http_client: HttpClient, settings: Settings, heads: ChainHeads, now: Instant) -> str | None:
    """Hands the heads to the configured place; returns why that failed, or None."""
    line = msgspec.json.encode(heads)
    match settings.ledger_heads:
        case None:
            return None
        case Path() as file:
            try:
                await asyncio.to_thread(_append, file, line)
            except OSError as error:
                return str(error)
            return None
        case url:
            return await _post(http_client, url, settings.ledger_heads_secret or "", line, now)


def _append(file: Path, line: bytes) -> None:
    """Adds one line and waits until it is on the disk. A line that a crash left half-written gets an end of its own,
    so that it spoils no other."""
    descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, (b"\n" if torn else b"") + line + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


async def _post(http_client: HttpClient, url: str, secret: str, body: bytes, now: Instant) -> str | None:
    """Signed as our webhooks are. Only a 2xx says that the receiver has them."""
    headers = {
        "Content-Type": "application/json",
        "X-Service-Event": EVENT,
        "X-Service-Signature": sign(secret, now // SECOND, body),
    }
    try:
        response = await http_client.request("POST", url, headers=headers, body=body, timeout=_TIMEOUT)
    except HttpClientError as error:
        return str(error)
    return None if 200 <= response.status < 300 else f"the receiver answered {response.status}"
