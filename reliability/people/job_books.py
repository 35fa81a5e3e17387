"""Compares the jobs of the staff with the forms that asked for them, the audit log and the processes' logs."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import select

from guichet.audit_log.entries import Entry
from guichet.back_office.jobs.tasks import Result, read_result
from guichet.context import AppContext
from guichet.db.tables import staff_jobs, users
from guichet.domain.staff_jobs import MOST_ATTEMPTS, StaffJob
from guichet.merchants.vault import UnreadableSecret
from reliability.comparison import Comparison
from reliability.installation import Installation
from reliability.people.job_requests import REQUESTED
from reliability.people.journal import AskedJob, PeopleJournal

#: Why a job failed, in a line of the log of whoever did it.
_REASON: Final = re.compile(r"staff_job\.(?:given_up|unreadable) .*?\bjob=(\d+)\b")


@dataclass(frozen=True, slots=True)
class JobBooks:
    """By number. `results`: of the jobs that have one."""

    jobs: dict[int, StaffJob]
    results: dict[int, Result]


async def compare_jobs(
    found: Comparison, ctx: AppContext, installation: Installation, journal: PeopleJournal, entries: list[Entry]
) -> JobBooks:
    """`entries`: those of the console. Nothing may write meanwhile."""
    jobs = {each.id: each for each in [StaffJob(*row) for row in await ctx.db.scan(select(staff_jobs))]}
    emails: dict[int, str] = dict(await ctx.db.scan(select(users.c.id, users.c.email)))
    requested: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.action == REQUESTED:
            requested[entry.subject].append(entry)
    for job in jobs.values():
        _compare_entry(found, job, emails[job.user_id], requested.pop(str(job.id), []), journal.jobs.get(job.id))
    for subject in requested:
        found.differs("the console: an entry of a job that does not exist", subject)
    for number in journal.jobs.keys() - jobs.keys():
        found.differs("the console: a job of the staff is lost", f"{number}: {journal.jobs[number]}")
    _compare_ends(found, jobs, installation)
    return JobBooks(jobs, _results(found, ctx, jobs))


def _compare_entry(found: Comparison, job: StaffJob, who: str, entries: list[Entry], asked: AskedJob | None) -> None:
    """One job is one entry, by who asked and about what was asked."""
    if len(entries) != 1:
        found.differs("the console: a job has not one entry", f"{job.id} {job.kind}: {len(entries)} entries")
        return
    after: dict[str, Any] = msgspec.json.decode(entries[0].after)
    same = (job.kind, job.merchant_id, who) == (after["kind"], entries[0].merchant_id, entries[0].actor)
    if asked is not None:
        same = same and asked.who == who and all(after.get(name) == value for name, value in asked.facts.items())
        same = same and (job.merchant_id == (asked.forgets.merchant_id if asked.forgets else None))
    if not same:
        found.differs("the console: a job differs from what was asked", f"{job.id}: {entries[0]}, {asked}")


def _compare_ends(found: Comparison, jobs: Mapping[int, StaffJob], installation: Installation) -> None:
    """Each ended and keeps nothing of what was asked; the log says why one failed."""
    logs = [file.read_text(errors="replace") for file in installation.folder.glob("*.log")]
    reasons = {int(number) for text in logs for number in _REASON.findall(text)}
    found.figures.update(Counter(f"jobs {each.status}" for each in jobs.values()))
    for job in jobs.values():
        about = f"{job.id} {job.kind}, attempt {job.attempts}"
        found.figures["jobs begun again"] += job.attempts > 1
        if job.status == "pending":
            found.differs("the console: a job of the staff never ended", about)
        elif job.parameters is not None:
            found.differs("the console: a job that ended keeps what was asked", about)
        if job.status == "failed" and job.id not in reasons:
            found.differs("the console: a job failed without a reason", about)
        if job.status == "done" and not 1 <= job.attempts <= MOST_ATTEMPTS:
            found.differs("the console: a job was done at an attempt that there is not", about)


def _results(found: Comparison, ctx: AppContext, jobs: Mapping[int, StaffJob]) -> dict[int, Result]:
    results: dict[int, Result] = {}
    for job in jobs.values():
        if job.result is not None:
            try:
                results[job.id] = read_result(job.kind, ctx.vault.decrypt_bytes(job.result))
            except (UnreadableSecret, msgspec.DecodeError) as error:
                found.differs("the console: a result cannot be read", f"{job.id} {job.kind}: {error!r}")
    return results
