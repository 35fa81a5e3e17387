"""The heads that a chain must still contain: what was published last, and what was kept outside the database."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from guichet.chain_heads.published import Published, last_published
from guichet.clock import read_date
from guichet.db.engine import Database
from guichet.domain.chain_heads import ChainFault, ChainHeads, KnownHead, KnownHeads, UnreadableHead, read_heads
from guichet.domain.messages import Moment, verbatim
from guichet.settings import Settings


async def known_heads(db: Database, settings: Settings, digests: Iterable[str], file: Path | None) -> KnownHeads:
    """What a check of either chain compares by itself: the last publication, the file that `GUICHET_LEDGER_HEADS`
    names, and `file`, in which somebody else kept heads. `digests`: single ones that a person typed.

    Reads the files whole, in a thread.
    """
    last = await last_published(db)
    typed = [KnownHead(digest, None, ChainFault.TYPED_HEAD()) for digest in digests]
    ledger = [*typed, *_published(last, last.posting_id, last.digest)]
    acts = [*typed, *_published(last, last.act, last.act_digest)]
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


def _moment(written: str) -> Moment | str:
    """When a head says that it was published; as it stands there if that is no date."""
    at = read_date(written)
    return written if at is None else Moment(at)
