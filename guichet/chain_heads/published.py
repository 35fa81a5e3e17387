"""The heads as they are now, and those that left the machine last."""

from typing import Final, NamedTuple

from sqlalchemy import bindparam, select, update

from guichet.audit_log import entries as audit_log
from guichet.clock import Instant, iso
from guichet.db.engine import Database, require
from guichet.db.tables import published_heads
from guichet.domain.chain_heads import EVENT, ChainHeads
from guichet.ledger.hash_chain import chain_head

_GET: Final = select(*(column for column in published_heads.c if column.name != "singleton"))
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
        """Whether these very heads were published already."""
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
