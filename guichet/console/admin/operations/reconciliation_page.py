"""Whether the books agree: the daily comparisons with the providers, what each operator earned us, and the audit of the
ledger with the heads that left the machine."""

import asyncio
from collections.abc import Callable
from datetime import date
from typing import Final

from starlette.responses import Response

from guichet.audit_log import entries as audit_log
from guichet.back_office.jobs.tasks import LedgerMargin
from guichet.chain_heads import known_heads, last_published, publish_heads
from guichet.clock import MINUTE, Instant, earlier, iso
from guichet.console.admin.staff_jobs import JobsView, ask_worker, jobs_view
from guichet.console.page_request import FormFault, StaffRequest
from guichet.context import AppContext
from guichet.db.worker_leases import claim_turn
from guichet.domain.audit_log import Act
from guichet.domain.errors import NotFound
from guichet.domain.staff_jobs import RIGHT_OF
from guichet.ledger.last_audit import last_audit
from guichet.ledger.reconciliation_runs import Run, recent_runs
from guichet.logs import log
from guichet.pages.days import Period, PeriodFields, this_month
from guichet.pages.views import View

#: Differences of one run that its page shows; `guichet reconcile --runs --json` has all that were kept.
_MOST_DIFFERENCES: Final = 100
_MARGIN: Final = "/reconciliation/margin"
#: Between two audits that are started here, whichever process makes them: each reads the whole ledger.
_AUDIT_EVERY: Final = 10 * MINUTE
_TURN: Final = "ledger_audit"


async def show_runs(request: StaffRequest) -> Response:
    """Of the last month."""
    runs = [(_utc_day(run), run) for run in await recent_runs(request.db, request.now())]
    return request.page("admin/operations/reconciliation.html", runs=runs, day_text=_day_text(request))


async def show_run(request: StaffRequest) -> Response:
    """The differences of one account and day."""
    day_and_account = request.path["day"], request.path["account"]
    for run in await recent_runs(request.db, request.now()):
        if (_utc_day(run), run.provider_account) == day_and_account:
            details = run.details[:_MOST_DIFFERENCES]
            return request.page("admin/operations/run.html", run=run, details=details, day_text=_day_text(request))
    raise NotFound


def _utc_day(run: Run) -> str:
    return iso(run.day)[:10]


def _day_text(request: StaffRequest) -> Callable[[Instant], str]:
    """The day of a run is one of UTC, in which the providers' statements are read (docs/admin-guide.md)."""
    return lambda day: request.day(date.fromisoformat(iso(day)[:10]))


class MarginView(View, frozen=True):
    jobs: JobsView
    period: Period


async def ask_margin(request: StaffRequest) -> Response:
    """As `guichet ledger margin`; the worker adds it up."""
    form = await request.form(PeriodFields)
    request.require(RIGHT_OF["ledger_margin"])
    period = _month_so_far(request, form)
    if period.fault or not (form.first and form.last):
        raise FormFault(request.text(f"balance.fault.{period.fault or 'date'}"))
    return await ask_worker(request, _MARGIN, LedgerMargin(period.since, period.until))


async def show_margin(request: StaffRequest) -> Response:
    form = PeriodFields.read(request.form_values)
    jobs = await jobs_view(request, _MARGIN, "ledger_margin")
    view = MarginView(jobs, _month_so_far(request, form))
    return request.page("admin/operations/margin.html", view)


def _month_so_far(request: StaffRequest, form: PeriodFields) -> Period:
    """Unless days were typed."""
    return form.period(request.time_zone, this_month(request.now(), request.time_zone))


async def show_ledger(request: StaffRequest) -> Response:
    last, started = await last_audit(request.db), request.query.get("started") == "yes"
    # The address still says that an audit was started when its result is there.
    has_result = last is not None and last.finished_at >= earlier(request.now(), _AUDIT_EVERY)
    working, published = started and not has_result, await last_published(request.db)
    return request.page("admin/operations/ledger.html", last=last, published=published, working=working)


async def start_audit(request: StaffRequest) -> Response:
    """As `guichet ledger audit`, in the background of this process; nothing if one was started minutes ago."""
    await request.fields()
    ctx, now = request.ctx, request.now()
    request.require("ledger.audit")
    if not await claim_turn(ctx.db, _TURN, now, _AUDIT_EVERY):
        return request.done(request.admin_url("/ledger"), "audit_running")
    async with ctx.db.transaction() as tx:
        await audit_log.record(tx, Act(request.actor, "ledger.audit_started", "ledger", "all"), now)
    task = asyncio.create_task(_audit(ctx))
    ctx.ledger_audits.add(task)
    task.add_done_callback(ctx.ledger_audits.discard)
    return request.done(request.admin_url("/ledger", started="yes"), "audit_started")


async def _audit(ctx: AppContext) -> None:
    from guichet.ledger.audit import audit  # noqa: PLC0415 - eight modules, once a day at most

    try:
        known = await known_heads(ctx.db, ctx.settings, (), None)
        report = await audit(ctx.db, ctx.clock, lambda read: None, known)
        if report.fault is None:
            await publish_heads(ctx.db, ctx.http_client, ctx.settings, ctx.clock.now())
        else:
            log.error("ledger.audit_failed", fault=report.fault)
    except Exception:
        log.error("ledger.audit_not_finished", exc_info=True)
