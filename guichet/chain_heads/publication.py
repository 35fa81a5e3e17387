"""Publishes the heads: a line of the log always, and what `GUICHET_LEDGER_HEADS` names."""

import asyncio
import os
from pathlib import Path
from typing import Final

import msgspec

from guichet.chain_heads.published import current_heads, last_published, set_published
from guichet.clock import HOUR, SECOND, Instant, earlier
from guichet.db.engine import Database
from guichet.domain.chain_heads import EVENT, ChainHeads
from guichet.http_client import HttpClient, HttpClientError
from guichet.logs import log, unfiltered_log
from guichet.settings import Settings
from guichet.webhooks.signing import sign

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
