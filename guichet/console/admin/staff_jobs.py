"""What the pages share that ask the worker for something: the form's token, how far a job is, its result."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from guichet.accounts import users
from guichet.back_office.jobs import repository
from guichet.back_office.jobs.requests import WantedJob, ask
from guichet.back_office.jobs.tasks import Result, Task, read_result
from guichet.console.admin.fields import row_number
from guichet.console.page_request import StaffRequest
from guichet.console.sent_once import form_token, new_form_token
from guichet.domain.errors import NotFound
from guichet.domain.ids import MerchantId
from guichet.domain.staff_jobs import MOST_ATTEMPTS, StaffJob, StaffJobKind
from guichet.logs import log
from guichet.merchants.vault import UnreadableSecret


@dataclass(frozen=True, slots=True)
class ListedJob:
    """`href`: of the page that shows it; `who`: the name of the person who asked."""

    job: StaffJob
    href: str
    who: str


async def ask_worker(
    request: StaffRequest, form: dict[str, str], task: Task, merchant_id: MerchantId | None = None
) -> int:
    """The id of the job of this form, however often it is sent; without a token each form is another one.

    Raises TooManyJobs.
    """
    token = form_token(form) or new_form_token()
    return await ask(request.ctx, WantedJob(task, merchant_id, request.person.id, token), request.actor)


async def chosen_job(
    request: StaffRequest, kinds: Collection[StaffJobKind], merchant_id: MerchantId | None = None
) -> StaffJob | None:
    """The one that `?job=` names; None without it. Raises NotFound unless it is of these kinds, about this merchant."""
    named = request.query.get("job")
    if named is None:
        return None
    number = row_number(named)
    job = None if number is None else await repository.find(request.db, number)
    if job is None or job.kind not in kinds or job.merchant_id != merchant_id:
        raise NotFound
    return job


async def jobs_view(
    request: StaffRequest, path: str, jobs: Sequence[StaffJob], shown: StaffJob | None
) -> dict[str, Any]:
    """For `admin/_jobs.html`. `path`: of the page, below `/admin`; `shown`: the job that the page is about."""
    ctx = request.ctx
    asked = [*jobs, *([shown] if shown else [])]
    names = await users.names(ctx.db, {each.user_id for each in asked})
    listed = {
        each.id: ListedJob(each, request.at_admin(path, job=str(each.id)), names.get(each.user_id, ""))
        for each in asked
    }
    return {
        "latest": [listed[each.id] for each in jobs],
        "shown": listed[shown.id] if shown else None,
        "result": await job_result(request, shown) if shown else None,
        "working": shown is not None and shown.status == "pending",
        "form_again": request.at_admin(path),
        "most_attempts": MOST_ATTEMPTS,
    }


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
