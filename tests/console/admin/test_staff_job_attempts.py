"""A job of the staff that ends with an error: tried again soon, its attempt shown, given up after the last one."""

import re

import pytest
from sqlalchemy import bindparam, select, update

from guichet.back_office.jobs.work import StaffJobs
from guichet.clock import SECOND
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.db.tables import staff_jobs
from guichet.domain.staff_jobs import MOST_ATTEMPTS, RETRY_AFTER, StaffJob
from tests.console.admin.conftest import Staff
from tests.console.admin.operations import act
from tests.console.page_rules import faults_of
from tests.console.pages import Page

MARGIN = "/admin/reconciliation/margin"
PERIOD = {"from": "2026-01-01", "to": "2026-12-31"}


async def _job(ctx: AppContext, number: int = 1) -> StaffJob:
    return StaffJob(
        *require(await ctx.db.one(select(staff_jobs).where(staff_jobs.c.id == bindparam("job")), job=number))
    )


async def _ask(ctx: AppContext, parameters: str) -> None:
    """Changes what the first job was asked with."""
    await ctx.db.write(update(staff_jobs).where(staff_jobs.c.id == 1).values(parameters=parameters))


def _no_task(ctx: AppContext) -> str:
    """Nothing that any version of Guichet asks for: reading it is an error, each time."""
    return str(ctx.vault.encrypt_bytes(b'{"type":"none"}'))


def _text(page: Page) -> str:
    assert faults_of(page, "") == [], page.path
    return page.text


async def test_an_attempt_that_ends_with_an_error_is_followed_by_another_one_soon(staff: Staff) -> None:
    service, ctx = staff.console.service, staff.console.service.ctx
    finance = await staff.browser("finance")
    asked = (await act(finance, MARGIN, **PERIOD)).path
    right = require((await _job(ctx)).parameters)
    await _ask(ctx, _no_task(ctx))
    await service.run_worker()
    assert ((await _job(ctx)).status, (await _job(ctx)).attempts) == ("pending", 1)
    page = await finance.get(asked)
    assert ("en cours" in _text(page), "essai" in page.text, 'data-refresh="3"' in page.text) == (True, False, True)
    await service.run_worker(RETRY_AFTER[0] / SECOND - 1)
    assert (await _job(ctx)).attempts == 1, "the next attempt comes later"
    await service.run_worker(1)
    page = await finance.get(asked)
    assert ("en cours" in _text(page), "Essai 2 sur 3." in page.text) == (True, True)
    assert "Attempt 2 of 3." in _text(await finance.get(f"{asked}&lang=en"))
    await _ask(ctx, right)
    await service.run_worker(RETRY_AFTER[1] / SECOND)
    page = await finance.get(f"{asked}&lang=fr")
    assert ("terminé" in _text(page), "essai 3" in page.text) == (True, True)
    assert ((await _job(ctx)).parameters, (await _job(ctx)).attempts) == (None, 3)


@pytest.mark.both_databases
async def test_a_job_that_always_ends_with_an_error_is_given_up_after_seconds_and_the_log_says_why(
    staff: Staff, capsys: pytest.CaptureFixture[str]
) -> None:
    service, ctx = staff.console.service, staff.console.service.ctx
    finance = await staff.browser("finance")
    asked = (await act(finance, MARGIN, **PERIOD)).path
    await _ask(ctx, _no_task(ctx))
    logged: list[str] = []
    for seconds in (0, *(pause / SECOND for pause in RETRY_AFTER)):
        assert (await _job(ctx)).status == "pending"
        await service.run_worker(seconds)
        logged += [line for line in capsys.readouterr().err.splitlines() if "staff_job." in line]
    job = await _job(ctx)
    assert (job.status, job.attempts, job.parameters, job.due_at) == ("failed", MOST_ATTEMPTS, None, None)
    page = await finance.get(asked)
    assert ("abandonné" in _text(page), "a échoué" in page.text, "essai" in page.text) == (True, True, False)
    assert [re.findall(r"staff_job\.\w+|attempts?=\d|job=\d|ValidationError", line) for line in logged] == [
        *(["staff_job.failed", "job=1", f"attempt={number}", "ValidationError"] for number in (1, 2, 3)),
        ["staff_job.given_up", "job=1", "attempts=3"],
    ]


async def test_an_error_of_an_attempt_that_was_taken_over_changes_nothing(sqlite_staff: Staff) -> None:
    service, ctx = sqlite_staff.console.service, sqlite_staff.console.service.ctx
    finance = await sqlite_staff.browser("finance")
    await act(finance, MARGIN, **PERIOD)
    await _ask(ctx, _no_task(ctx))
    jobs = StaffJobs(ctx)
    [first] = (await jobs.claim(service.clock.now(), service.clock.now(), 1, [])).jobs
    await ctx.db.write(update(staff_jobs).where(staff_jobs.c.id == 1).values(attempts=2))
    before = await _job(ctx)
    await jobs.work(first)
    assert await _job(ctx) == before
