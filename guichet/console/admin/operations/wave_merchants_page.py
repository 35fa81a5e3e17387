"""Aggregated merchants of Wave: those that are missing are made, as `guichet providers setup wave-merchants` does."""

from typing import Any, Final

from starlette.responses import Response

from guichet.back_office.aggregated_merchants import aggregating
from guichet.back_office.jobs import repository
from guichet.back_office.jobs.errors import TooManyJobs
from guichet.back_office.jobs.wave_merchants import KEPT, NameWaveMerchants
from guichet.console.admin.staff_jobs import ask_worker, chosen_job, jobs_view
from guichet.console.forms import is_confirmed
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.console.sent_once import form_token, new_form_token
from guichet.domain.staff_jobs import MOST_PENDING, RIGHT_OF, StaffJob, StaffJobKind

_KIND: Final[StaffJobKind] = "wave_merchants"
_PATH: Final = "/doctor/wave-merchants"


async def show(request: StaffRequest) -> Response:
    return await _page(request, {}, shown=await chosen_job(request, (_KIND,)))


async def change(request: StaffRequest) -> Response:
    form = await request.form()
    ctx = request.ctx
    request.require(RIGHT_OF[_KIND])
    account = form.get("account", "")
    able = aggregating(ctx.providers.accounts)
    if not able or (account and account not in able):
        return await _page(request, form, 422, request.text("wave_merchants.no_account"))
    if not is_confirmed(form):
        return await _page(request, form, 422, request.text("wave_merchants.confirm_missing"))
    try:
        job_id = await ask_worker(request, form, NameWaveMerchants(account or None))
    except TooManyJobs:
        return await _page(request, form, 409, request.text("jobs.too_many", most=MOST_PENDING))
    return request.redirect(request.at_admin(_PATH, job=str(job_id)))


async def _page(
    request: StaffRequest, form: dict[str, str], status: int = 200, fault: Any = None, shown: StaffJob | None = None
) -> Response:
    ctx = request.ctx
    able = aggregating(ctx.providers.accounts)
    view = {
        **await jobs_view(request, _PATH, await repository.latest(ctx.db, _KIND), shown),
        "accounts": [("", request.text("wave_merchants.all")), *((name, name) for name in able)],
        "able": able,
        "typed": form,
        "token": form_token(form) or new_form_token(),
        "most": KEPT,
    }
    return request.show("admin/operations/wave_merchants.html", status, fault=fault, **view)


PAGES: Final = (StaffPage(_PATH, RIGHT_OF[_KIND], show, change),)
