"""What each operator earned us, as `guichet ledger margin`; the worker adds it up."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts.rights import StaffMember
from guichet.back_office.jobs import repository
from guichet.back_office.jobs.errors import TooManyJobs
from guichet.back_office.jobs.tasks import LedgerMargin
from guichet.console.admin.staff_jobs import ask_worker, chosen_job, jobs_view
from guichet.console.balance.periods import Period, read_period, today
from guichet.console.sections import StaffPage
from guichet.console.sent_once import form_token, new_form_token
from guichet.console.visit import Visit
from guichet.domain.staff_jobs import MOST_PENDING, RIGHT_OF, StaffJob, StaffJobKind

_KIND: Final[StaffJobKind] = "ledger_margin"
_PATH: Final = "/reconciliation/margin"


async def show(visit: Visit, acting: StaffMember) -> Response:
    return await _page(visit, {}, shown=await chosen_job(visit, (_KIND,)))


async def change(visit: Visit, acting: StaffMember) -> Response:
    form = await visit.form()
    acting.require(RIGHT_OF[_KIND], visit.console.ctx.clock.now())
    period = _period(visit, form)
    if period.fault or not (form.get("from") and form.get("to")):
        return await _page(visit, form, 422, visit.text(f"balance.fault.{period.fault or 'date'}"))
    try:
        job_id = await ask_worker(visit, acting, form, LedgerMargin(period.since, period.until))
    except TooManyJobs:
        return await _page(visit, form, 409, visit.text("jobs.too_many", most=MOST_PENDING))
    return visit.redirect(visit.at_admin(_PATH, job=str(job_id)))


def _period(visit: Visit, form: dict[str, str]) -> Period:
    """This month so far unless days were typed."""
    day = today(visit.console.ctx.clock.now(), visit.time_zone)
    return read_period(form.get("from", ""), form.get("to", ""), visit.time_zone, (day.replace(day=1), day))


async def _page(
    visit: Visit, form: dict[str, str], status: int = 200, fault: Any = None, shown: StaffJob | None = None
) -> Response:
    view = {
        **await jobs_view(visit, _PATH, await repository.latest(visit.console.ctx.db, _KIND), shown),
        "period": _period(visit, form),
        "token": form_token(form) or new_form_token(),
    }
    return visit.show("admin/operations/margin.html", status, fault=fault, **view)


PAGES: Final = (StaffPage(_PATH, RIGHT_OF[_KIND], show, change),)
