"""What the pages share that ask the worker for something: the form's token, how far a job is, its result."""

import asyncio
from collections.abc import Sequence

from starlette.responses import Response

from guichet.accounts import users
from guichet.back_office.jobs import repository
from guichet.back_office.jobs.requests import JobRequest, TooManyJobs, ask
from guichet.back_office.jobs.tasks import Result, Task, read_result
from guichet.console.page_request import FormFault, StaffRequest
from guichet.domain.errors import NotFound
from guichet.domain.ids import MerchantId
from guichet.domain.records import Record
from guichet.domain.staff_jobs import MOST_ATTEMPTS, MOST_PENDING, StaffJob, StaffJobKind
from guichet.logs import log
from guichet.merchants.vault import UnreadableSecret
from guichet.pages.fields import row_id
from guichet.pages.views import View


class ListedJob(Record, frozen=True):
    """`href`: of the page that shows it; `who`: the name of the person who asked."""

    job: StaffJob
    href: str
    who: str


class JobsView(View, frozen=True):
    """For `admin/_jobs.html`: the latest jobs, and the one that the page is about with its result, None until it has
    one."""

    latest: list[ListedJob]
    current: ListedJob | None
    result: Result | None
    working: bool
    form_again: str
    most_attempts: int


async def ask_worker(request: StaffRequest, path: str, task: Task, merchant_id: MerchantId | None = None) -> Response:
    """Leads to the job of the form that was sent, on the page at `path` below `/admin`; however often it is sent,
    unless it has no token. Raises FormFault while too many wait."""
    job_request = JobRequest(task, merchant_id, request.person.id, request.form_token)
    try:
        job_id = await ask(request.ctx, job_request, request.actor)
    except TooManyJobs:
        raise FormFault(request.text("jobs.too_many", most=MOST_PENDING), 409) from None
    return request.done(request.admin_url(path, job=str(job_id)), "job_asked")


async def _chosen_job(
    request: StaffRequest, kinds: Sequence[StaffJobKind], merchant_id: MerchantId | None
) -> StaffJob | None:
    """The one that `?job=` names; None without it. Raises NotFound unless it is of these kinds, about this merchant."""
    text = request.query.get("job")
    if text is None:
        return None
    number = row_id(text)
    job = None if number is None else await repository.find(request.db, number)
    if job is None or job.kind not in kinds or job.merchant_id != merchant_id:
        raise NotFound
    return job


async def jobs_view(
    request: StaffRequest,
    path: str,
    *kinds: StaffJobKind,
    merchant_id: MerchantId | None = None,
) -> JobsView:
    """Jobs of these kinds, or those about one merchant, and the one that the page is about, unless its form has a
    fault. `path`: of the page, below `/admin`."""
    current = None if request.fault else await _chosen_job(request, kinds, merchant_id)
    if merchant_id is None:
        jobs = [job for kind in kinds for job in await repository.latest(request.db, kind)]
        jobs = sorted(jobs, key=lambda job: -job.id)[: repository.MOST_LISTED]
    else:
        jobs = await repository.latest_of_merchant(request.db, merchant_id)
    all_jobs = [*jobs, *([current] if current else [])]
    names = await users.names(request.db, {job.user_id for job in all_jobs})
    listed = {
        job.id: ListedJob(job, request.admin_url(path, job=str(job.id)), names.get(job.user_id, "")) for job in all_jobs
    }
    return JobsView(
        latest=[listed[job.id] for job in jobs],
        current=listed[current.id] if current else None,
        result=await job_result(request, current) if current else None,
        working=current is not None and current.status == "pending",
        form_again=request.admin_url(path),
        most_attempts=MOST_ATTEMPTS,
    )


async def job_result(request: StaffRequest, job: StaffJob) -> Result | None:
    """None while there is none, and if its key is gone."""
    sealed = job.result
    if sealed is None:
        return None
    vault = request.ctx.vault
    try:  # In a thread: a thousand differences are half a megabyte.
        return await asyncio.to_thread(lambda: read_result(job.kind, vault.decrypt_bytes(sealed)))
    except UnreadableSecret as error:
        log.error("staff_job.unreadable", job=job.id, error=str(error))
        return None
