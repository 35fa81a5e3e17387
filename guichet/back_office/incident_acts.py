"""A person closes an incident that was dealt with."""

from guichet.audit_log import entries as audit_log
from guichet.clock import Clock
from guichet.db.engine import Database
from guichet.domain.audit_log import Act, Actor
from guichet.domain.ids import IncidentId
from guichet.incidents import repository as incidents


async def close(db: Database, clock: Clock, incident_id: IncidentId, actor: Actor, reason: str = "") -> bool:
    """Whether there was an open incident with this id; it is closed now, and the audit log says by whom."""
    now = clock.now()
    async with db.transaction() as tx:
        if not await incidents.close(tx, incident_id, now):
            return False
        await audit_log.record(tx, Act(actor, "incident.closed", "incident", str(incident_id), reason=reason), now)
    return True
