"""Asking for a job of the staff, with what the audit log keeps of it. A worker imports the tasks with its first job."""

import asyncio
import hashlib

import msgspec

from guichet.audit_log import entries as audit_log
from guichet.back_office.jobs import repository
from guichet.back_office.jobs.statement_comparison import CompareStatement
from guichet.back_office.jobs.tasks import AnonymiseCustomer, LedgerMargin, Task, kind_of
from guichet.clock import iso
from guichet.context import AppContext
from guichet.domain.accounts import UserId
from guichet.domain.audit_log import Act, Actor, FactName, Facts
from guichet.domain.ids import MerchantId
from guichet.domain.records import Record
from guichet.domain.staff_jobs import MOST_PENDING, StaffJob


class TooManyJobs(Exception):
    pass


class JobRequest(Record, frozen=True):
    """What a person asks for. `form_token`: random, another one in each form that is shown."""

    task: Task
    merchant_id: MerchantId | None
    user_id: UserId
    form_token: str


async def ask(ctx: AppContext, request: JobRequest, actor: Actor) -> int:
    """Records the job for the worker and returns its id; the same form sent again is the same job.

    Raises TooManyJobs.
    """
    now, kind = ctx.clock.now(), kind_of(request.task)
    # In a thread: encrypting a file of 5 MiB takes a while.
    request_hash, parameters = await asyncio.to_thread(_sealed, ctx, request)
    new = StaffJob(
        id=0,
        kind=kind,
        merchant_id=request.merchant_id,
        user_id=request.user_id,
        request_hash=request_hash,
        parameters=parameters,
        status="pending",
        attempts=0,
        due_at=now,
        created_at=now,
        finished_at=None,
        result=None,
    )
    async with ctx.db.transaction() as tx:
        job_id = await repository.add(tx, new)
        if job_id is None:
            return await repository.of_request(tx, new.request_hash)
        facts: Facts = {"kind": kind, **_facts(request.task)}
        reason = request.task.reason if isinstance(request.task, AnonymiseCustomer) else ""
        act = Act(actor, "staff_job.requested", "staff_job", str(job_id), request.merchant_id, reason, after=facts)
        # Acts wait for one another here, so no two requests count the same jobs.
        await audit_log.record(tx, act, now)
        if await repository.pending(tx) > MOST_PENDING:
            raise TooManyJobs
    ctx.wakeups.staff_jobs.set()
    return job_id


def _sealed(ctx: AppContext, request: JobRequest) -> tuple[str, str]:
    """The hash of the request, and what is asked, encrypted.

    The hash is of a random token that is stored nowhere, so that nobody finds the customer's number by trying all
    numbers. A form whose content was changed before it was sent again is another request.
    """
    content = msgspec.json.encode(request.task)
    form_key = f"{request.form_token}\n{request.user_id}\n{request.merchant_id}\n"
    return hashlib.sha256(form_key.encode() + content).hexdigest(), ctx.vault.encrypt_bytes(content)


def _facts(task: Task) -> Facts:
    """Never who is anonymised."""
    match task:
        case AnonymiseCustomer():
            return {}
        case LedgerMargin():
            return {"from": iso(task.since), "to": iso(task.until)}
        case CompareStatement(account=account, file=file):
            facts: dict[FactName, object] = {"account": account}
            if task.since is not None:
                facts["from"] = iso(task.since)
            if task.until is not None:
                facts["to"] = iso(task.until)
            return {**facts, "size": file.size, "sha256": file.sha256} if file else facts
        case _:
            return {"account": task.account} if task.account else {}
