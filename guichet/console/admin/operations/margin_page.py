"""What each operator earned us, as `guichet ledger margin`; the worker adds it up."""

from typing import Any, Final

from starlette.responses import Response

from guichet.back_office.jobs import repository
from guichet.back_office.jobs.errors import TooManyJobs
from guichet.back_office.jobs.tasks import LedgerMargin
from guichet.console.admin.staff_jobs import ask_worker, chosen_job, jobs_view
from guichet.console.balance.periods import Period, read_period, today
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.console.sent_once import form_token, new_form_token
from guichet.domain.staff_jobs import MOST_PENDING, RIGHT_OF, StaffJob, StaffJobKind

_KIND: Final[StaffJobKind] = "ledger_margin"
_PATH: Final = "/reconciliation/margin"


async def show(request: StaffRequest) -> Response:
    return await _page(request, {}, shown=await chosen_job(request, (_KIND,)))


async def change(request: StaffRequest) -> Response:
    form = await request.form()
    request.require(RIGHT_OF[_KIND])
    period = _period(request, form)
    if period.fault or not (form.get("from") and form.get("to")):
        return await _page(request, form, 422, request.text(f"balance.fault.{period.fault or 'date'}"))
    try:
        job_id = await ask_worker(request, form, LedgerMargin(period.since, period.until))
    except TooManyJobs:
        return await _page(request, form, 409, request.text("jobs.too_many", most=MOST_PENDING))
    return request.redirect(request.at_admin(_PATH, job=str(job_id)))


def _period(request: StaffRequest, form: dict[str, str]) -> Period:
    """This month so far unless days were typed."""
    day = today(request.now(), request.time_zone)
    return read_period(form.get("from", ""), form.get("to", ""), request.time_zone, (day.replace(day=1), day))


async def _page(
    request: StaffRequest, form: dict[str, str], status: int = 200, fault: Any = None, shown: StaffJob | None = None
) -> Response:
    view = {
        **await jobs_view(request, _PATH, await repository.latest(request.db, _KIND), shown),
        "period": _period(request, form),
        "token": form_token(form) or new_form_token(),
    }
    return request.show("admin/operations/margin.html", status, fault=fault, **view)


PAGES: Final = (StaffPage(_PATH, RIGHT_OF[_KIND], show, change),)
