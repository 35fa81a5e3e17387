"""Whether our accounts with providers answer, what is in them, what is set up wrong: `guichet providers check` (and
`--deep`) and `guichet providers balances`; the worker asks the providers."""

from typing import Any, Final

from starlette.responses import Response

from guichet.back_office.aggregated_merchants import aggregating
from guichet.back_office.jobs import repository
from guichet.back_office.jobs.errors import TooManyJobs
from guichet.back_office.jobs.tasks import AboutAccounts, ProviderBalances, ProviderCheck, ProviderDeepCheck
from guichet.console.admin.staff_jobs import ask_worker, chosen_job, jobs_view
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.console.sent_once import form_token, new_form_token
from guichet.domain.money import plain
from guichet.domain.staff_jobs import MOST_PENDING, RIGHT_OF, StaffJob, StaffJobKind

_PATH: Final = "/doctor/providers"
_TASKS: Final[dict[StaffJobKind, type[AboutAccounts]]] = {
    "provider_check": ProviderCheck,
    "provider_deep_check": ProviderDeepCheck,
    "provider_balances": ProviderBalances,
}


async def show(request: StaffRequest) -> Response:
    return await _page(request, {}, shown=await chosen_job(request, _allowed(request)))


async def change(request: StaffRequest) -> Response:
    form = await request.form()
    ctx = request.ctx
    kind = next((each for each in _TASKS if each == form.get("kind")), None)
    account = form.get("account", "")
    if kind is None or (account and account not in ctx.providers.accounts):
        return await _page(request, form, 422, request.text("provider_jobs.incomplete"))
    request.require(RIGHT_OF[kind])
    try:
        job_id = await ask_worker(request, form, _TASKS[kind](account or None))
    except TooManyJobs:
        return await _page(request, form, 409, request.text("jobs.too_many", most=MOST_PENDING))
    return request.redirect(request.at_admin(_PATH, job=str(job_id)))


def _allowed(request: StaffRequest) -> list[StaffJobKind]:
    return [kind for kind in _TASKS if request.may(RIGHT_OF[kind])]


async def _page(
    request: StaffRequest,
    form: dict[str, str],
    status: int = 200,
    fault: Any = None,
    shown: StaffJob | None = None,
) -> Response:
    ctx, kinds = request.ctx, _allowed(request)
    latest = [job for kind in kinds for job in await repository.latest(ctx.db, kind)]
    latest.sort(key=lambda job: -job.id)
    view = {
        **await jobs_view(request, _PATH, latest[: repository.MOST_LISTED], shown),
        "kinds": [(kind, request.text(f"jobs.kind.{kind}")) for kind in kinds],
        "accounts": [("", request.text("provider_jobs.all")), *((name, name) for name in ctx.providers.accounts)],
        "aggregates": bool(aggregating(ctx.providers.accounts)) and request.may(RIGHT_OF["wave_merchants"]),
        # As the command writes them: a provider may state a balance in a currency that is none of ours.
        "plain": plain,
        "typed": form,
        "token": form_token(form) or new_form_token(),
    }
    return request.show("admin/operations/providers.html", status, fault=fault, **view)


PAGES: Final = (StaffPage(_PATH, "doctor.view", show, change),)
