"""The SQL of the staff's jobs. A worker writes only with the claim it began with (`attempts`)."""

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import Select, bindparam, func, literal_column, null, select, update

from guichet.clock import Instant, later
from guichet.db.engine import Database, Reader, Transaction, Writer, require
from guichet.db.queues.work_queue import Claim, WorkQueue
from guichet.db.sql_functions import equal, new_row, upsert, values_of
from guichet.db.tables import staff_jobs, users
from guichet.domain.ids import MerchantId
from guichet.domain.staff_jobs import STAFF_JOB_LEASE, StaffJob, StaffJobKind


class JobTakenOver(Exception):
    pass


#: Jobs of one kind that a page lists.
MOST_LISTED: Final = 10

_INSERT: Final = (
    upsert(staff_jobs)
    .values(new_row(staff_jobs))
    .on_conflict_do_nothing(index_elements=["request_hash"])
    .returning(staff_jobs.c.id)
)
_BY_REQUEST: Final = select(staff_jobs.c.id).where(staff_jobs.c.request_hash == bindparam("request_hash"))


def _without(*names: str) -> Select[Any]:
    """Every column, in order, NULL in place of these."""
    return select(*(null().label(column.name) if column.name in names else column for column in staff_jobs.c))


_FIND: Final = _without("parameters").where(staff_jobs.c.id == bindparam("job"))
_LATEST: Final = _without("parameters", "result").order_by(staff_jobs.c.id.desc()).limit(MOST_LISTED)
_LATEST_OF_KIND: Final = _LATEST.where(staff_jobs.c.kind == bindparam("kind"))
_LATEST_OF_MERCHANT: Final = _LATEST.where(staff_jobs.c.merchant_id == bindparam("merchant"))
_PENDING: Final = select(func.count()).where(staff_jobs.c.status == literal_column("'pending'"))
_REQUESTER: Final = select(users.c.email).where(users.c.id == bindparam("user"))
_CLAIMED: Final = (
    *equal(staff_jobs, id="job", attempts="attempt"),
    staff_jobs.c.status == "pending",
)
_SET_DUE: Final = update(staff_jobs).where(*_CLAIMED).values(due_at=bindparam("at")).returning(staff_jobs.c.id)
_FINISH: Final = (
    update(staff_jobs)
    .where(*_CLAIMED)
    .values(
        status=bindparam("outcome"),
        due_at=None,
        parameters=None,
        finished_at=bindparam("now"),
        result=bindparam("outcome_text"),
    )
    .returning(staff_jobs.c.id)
)


_QUEUE: Final[WorkQueue[StaffJob]] = WorkQueue(
    staff_jobs, "due_at", "kind", lambda row: StaffJob(*row), values={"attempts": staff_jobs.c.attempts + 1}
)


async def add(tx: Transaction, job: StaffJob) -> int | None:
    """Its id, given by the database. None when the same request made a job already."""
    return await tx.write_as(int, _INSERT, **values_of(staff_jobs, job))


async def of_request(db: Reader, request_hash: str) -> int:
    return int(require(await db.one(_BY_REQUEST, request_hash=request_hash))[0])


async def find(db: Reader, job_id: int) -> StaffJob | None:
    """Without what was asked."""
    return await db.one_as(StaffJob, _FIND, job=job_id)


async def latest(db: Reader, kind: StaffJobKind) -> list[StaffJob]:
    """The newest jobs of this kind, newest first, without what was asked and found."""
    return [StaffJob(*row) for row in await db.all(_LATEST_OF_KIND, kind=kind)]


async def latest_of_merchant(db: Reader, merchant_id: MerchantId) -> list[StaffJob]:
    """The newest jobs about this merchant, newest first, without what was asked and found."""
    return [StaffJob(*row) for row in await db.all(_LATEST_OF_MERCHANT, merchant=merchant_id)]


async def pending(db: Reader) -> int:
    return int(require(await db.one(_PENDING))[0])


async def requester(db: Reader, job: StaffJob) -> str:
    """The address of who asked, as the audit log names them."""
    return str(require(await db.one(_REQUESTER, user=job.user_id))[0])


async def claim(db: Database, now: Instant, most: int, saturated: Collection[str]) -> Claim[StaffJob]:
    return await _QUEUE.claim(db, now, later(now, STAFF_JOB_LEASE), most, saturated)


async def renew(db: Writer, job: StaffJob, now: Instant) -> None:
    """Keeps the claim. Raises JobTakenOver."""
    await set_due(db, job, later(now, STAFF_JOB_LEASE))


async def set_due(db: Writer, job: StaffJob, at: Instant) -> None:
    """Nobody claims the job before. Raises JobTakenOver."""
    if await db.write(_SET_DUE, job=job.id, attempt=job.attempts, at=at) is None:
        raise JobTakenOver


async def finish(db: Writer, job: StaffJob, result: str | None, now: Instant) -> None:
    """The job is done, or failed if there is no result. What was asked is removed. Raises JobTakenOver."""
    outcome = "failed" if result is None else "done"
    done = await db.write(_FINISH, job=job.id, attempt=job.attempts, outcome=outcome, outcome_text=result, now=now)
    if done is None:
        raise JobTakenOver
