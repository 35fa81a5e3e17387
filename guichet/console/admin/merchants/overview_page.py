"""The first page of the back office: what waits for somebody."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts.rights import StaffMember
from guichet.audit_log import approval_requests
from guichet.chain_heads import last_published
from guichet.console.sections import StaffPage
from guichet.console.visit import Visit
from guichet.incidents import repository as incidents
from guichet.ledger.audit import last_audit
from guichet.merchants import repository as merchants


async def show(visit: Visit, acting: StaffMember) -> Response:
    """Reads what waits (500 incidents, 200 requests and a page of merchants at most), and two rows."""
    db, now = visit.console.ctx.db, visit.console.ctx.clock.now()
    waiting = await merchants.waiting(db)
    view: dict[str, Any] = {
        "incidents": len(await incidents.still_open(db)) if acting.may("incidents.view") else None,
        "approvals": len(await approval_requests.waiting(db, now)) if acting.may("incidents.decide") else None,
        "waiting": waiting[: merchants.PAGE],
        "more_wait": len(waiting) > merchants.PAGE,
        "audit": await last_audit(db) if acting.may("ledger.audit") else None,
        "sees_audit": acting.may("ledger.audit"),
        "published_at": (await last_published(db)).published_at,
    }
    return visit.show("admin/merchants/overview.html", **view)


PAGES: Final = (StaffPage("", "doctor.view", show, menu="overview"),)
