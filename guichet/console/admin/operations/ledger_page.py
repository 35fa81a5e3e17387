"""The audit of the ledger: its last result, the heads that left the machine, and starting one."""

import asyncio
from typing import Final

from starlette.responses import Response

from guichet.accounts.rights import StaffMember
from guichet.audit_log import entries as audit_log
from guichet.chain_heads import known_heads, last_published, publish_heads
from guichet.clock import MINUTE, earlier
from guichet.console.sections import StaffPage
from guichet.console.visit import Visit
from guichet.context import AppContext
from guichet.db.worker_leases import claim_turn
from guichet.domain.audit_log import Act
from guichet.ledger.audit import audit, last_audit
from guichet.logs import log

#: Between two audits that are started here, whichever process makes them: each reads the whole ledger.
_EVERY: Final = 10 * MINUTE
_TURN: Final = "ledger_audit"


async def show(visit: Visit, acting: StaffMember) -> Response:
    db = visit.console.ctx.db
    last, started = await last_audit(db), visit.request.query_params.get("started")
    # The address still says that an audit was started when its result is there.
    since = earlier(visit.console.ctx.clock.now(), _EVERY)
    if started == "yes" and last is not None and last.finished_at >= since:
        started = None
    view = {"last": last, "published": await last_published(db), "started": started}
    return visit.show("admin/operations/ledger.html", 200, **view)


async def start(visit: Visit, acting: StaffMember) -> Response:
    """As `guichet ledger audit`, in the background of this process; nothing if one was started minutes ago."""
    await visit.form()
    ctx = visit.console.ctx
    now = ctx.clock.now()
    acting.require("ledger.audit", now)
    if not await claim_turn(ctx.db, _TURN, now, _EVERY):
        return visit.redirect(visit.at_admin("/ledger", started="no"))
    async with ctx.db.transaction() as tx:
        await audit_log.record(tx, Act(acting.actor, "ledger.audit_started", "ledger", "all"), now)
    task = asyncio.create_task(_audit(ctx))
    ctx.ledger_audits.add(task)
    task.add_done_callback(ctx.ledger_audits.discard)
    return visit.redirect(visit.at_admin("/ledger", started="yes"))


async def _audit(ctx: AppContext) -> None:
    try:
        known = await known_heads(ctx.db, ctx.settings, (), None)
        report = await audit(ctx.db, ctx.clock, lambda read: None, known)
        if report.fault is None:
            await publish_heads(ctx.db, ctx.http_client, ctx.settings, ctx.clock.now())
        else:
            log.error("ledger.audit_failed", fault=report.fault)
    except Exception:
        log.exception("ledger.audit_not_finished")


PAGES: Final = (StaffPage("/ledger", "ledger.audit", show, start, below="reconciliation"),)
