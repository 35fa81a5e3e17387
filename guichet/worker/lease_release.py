"""After a `kill -9`: webhooks that were being sent for the first time are due at once, not at the end of their leases.

Leases of payments and refunds are left alone: nobody else may ask about what a provider was just told to do.
"""

from guichet.clock import Instant, later
from guichet.db.engine import Database
from guichet.payments.outcomes import LEASE_DURATION
from guichet.webhooks import deliveries


async def release_webhooks(db: Database, now: Instant) -> None:
    """To be called while no process delivers webhooks, which only the lock of an embedded database can tell."""
    await deliveries.release_leases(db, now, later(now, LEASE_DURATION))
