"""After a `kill -9`: webhooks that were being sent for the first time are due at once, not at the end of their leases.

Leases of payments and refunds are left alone: nobody else may ask about what a provider was just told to do.
"""

from typing import Final

from sqlalchemy import bindparam, literal_column, update

from guichet.clock import Instant, later
from guichet.db.engine import Database
from guichet.db.queues.work_queue import LEASE_DURATION, PENDING
from guichet.db.tables import webhook_deliveries

#: First attempts that were claimed and have not ended. Later ones wait for their leases: a service that dies again and
#: again at its start would use up all five attempts within seconds.
_RELEASE: Final = (
    update(webhook_deliveries)
    .where(
        webhook_deliveries.c.status == PENDING,
        webhook_deliveries.c.attempts == literal_column("1"),
        webhook_deliveries.c.last_attempt_at.is_(None),
        webhook_deliveries.c.next_attempt_at > bindparam("now"),
        webhook_deliveries.c.next_attempt_at <= bindparam("lease_end"),
    )
    .values(next_attempt_at=bindparam("now"))
)


async def release_webhooks(db: Database, now: Instant) -> None:
    """To be called while no process delivers webhooks, which only the lock of an embedded database can tell: an attempt
    that goes on would be made a second time. An attempt counts: it may have arrived. Cost: what is due within a lease.
    """
    await db.write(_RELEASE, now=now, lease_end=later(now, LEASE_DURATION))
