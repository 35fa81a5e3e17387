"""The comparison with a provider's statement, as `guichet reconcile`: a file is uploaded, or the provider is asked for
its history; the worker compares."""

import asyncio
from collections import Counter
from typing import Any, Final

from starlette.responses import Response

from guichet.back_office.jobs import repository
from guichet.back_office.jobs.errors import TooManyJobs
from guichet.back_office.jobs.statement_comparison import MAX_LINES, MAX_STATEMENT, ComparedStatement
from guichet.console.admin.fields import row_number
from guichet.console.admin.operations.statement_form import (
    MOST_DAYS,
    SOURCES,
    UTC,
    IncompleteForm,
    read_statement_form,
)
from guichet.console.admin.staff_jobs import ask_worker, chosen_job, job_result, jobs_view
from guichet.console.balance.downloads import attachment, file_name
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.console.sent_once import form_token, new_form_token
from guichet.domain.errors import NotFound
from guichet.domain.money import plain
from guichet.domain.payments import SUBJECT_TYPES
from guichet.domain.reconciliation import OUTCOMES
from guichet.domain.staff_jobs import MOST_PENDING, RIGHT_OF, StaffJob, StaffJobKind
from guichet.exports.differences import csv_file
from guichet.ledger.provider_statement import UnreadableStatement
from guichet.ledger.statement_columns import FIELDS, MEANINGS
from guichet.pages import formatting
from guichet.pages.uploads import Upload, UploadTooLarge
from guichet.printable import printable

_KIND: Final[StaffJobKind] = "compare_statement"
_PATH: Final = "/reconciliation/statement"
#: Differences on a page.
_SHOWN: Final = 100


async def show(request: StaffRequest) -> Response:
    return await _page(request, {}, shown=await chosen_job(request, (_KIND,)))


async def upload(request: StaffRequest) -> Response:
    """The right is checked before anything of the body is read, the form's token before any of the file is kept."""
    request.require(RIGHT_OF[_KIND])
    posted = Upload()
    try:
        posted = await request.upload(MAX_STATEMENT)
        task = await read_statement_form(request.ctx, posted)
        job_id = await ask_worker(request, posted.fields, task)
    except UploadTooLarge:
        return await _page(
            request, {}, 413, request.text("comparison.form.too_large", mib=MAX_STATEMENT // 1024 // 1024)
        )
    except IncompleteForm as error:
        return await _page(request, posted.fields, 422, request.text(f"comparison.form.{error.fault}", **error.facts))
    except UnreadableStatement as error:
        return await _page(request, posted.fields, 422, _sentence(request, error))
    except TooManyJobs:
        return await _page(request, posted.fields, 409, request.text("jobs.too_many", most=MOST_PENDING))
    return request.redirect(request.at_admin(_PATH, job=str(job_id)))


async def download(request: StaffRequest) -> Response:
    """The differences that were kept, for a spreadsheet."""
    job = await repository.find(request.db, request.path["job"])
    result = await job_result(request, job) if job is not None and job.kind == _KIND else None
    if job is None or not isinstance(result, ComparedStatement):
        raise NotFound
    content = await asyncio.to_thread(csv_file, result.found)
    return attachment(content, "text/csv; charset=utf-8", file_name("differences", str(job.id), suffix="csv"))


def _sentence(request: StaffRequest, error: UnreadableStatement) -> Any:
    """What is wrong with the file, and in which line."""
    facts: dict[str, Any] = {
        name: printable(value) if isinstance(value, str) else formatting.whole_number(value, request.language)
        for name, value in error.facts.items()
    }
    if "field" in facts:
        facts["field"] = request.text(f"comparison.field.{facts['field']}")
    problem = request.text(f"comparison.fault.{error.fault}", **facts)
    return request.text("comparison.unreadable", line=error.line, problem=problem)


async def _page(
    request: StaffRequest, form: dict[str, str], status: int = 200, fault: Any = None, shown: StaffJob | None = None
) -> Response:
    jobs = await jobs_view(request, _PATH, await repository.latest(request.db, _KIND), shown)
    view = {
        **jobs,
        **_differences(request, jobs["result"], shown),
        "typed": form,
        "token": form_token(form) or new_form_token(),
        "accounts": _accounts(request),
        "sources": [(each, request.text(f"comparison.source.{each}")) for each in SOURCES],
        "kinds": [("", request.text("comparison.kind.both"))]
        + [(kind, request.text(f"comparison.kind.{kind}")) for kind in SUBJECT_TYPES],
        "fields": FIELDS,
        "meanings": MEANINGS,
        "limits": {
            "mib": MAX_STATEMENT // 1024 // 1024,
            "lines": formatting.whole_number(MAX_LINES, request.language),
            "days": MOST_DAYS,
        },
        "plain": plain,
        "outcomes": OUTCOMES,
        "utc": lambda instant: formatting.date_time(instant, request.language, UTC),
    }
    return request.show("admin/operations/statement.html", status, fault=fault, **view)


def _accounts(request: StaffRequest) -> list[tuple[str, Any]]:
    """Every account, and every provider with several of them."""
    accounts = request.ctx.providers.accounts
    numbers = Counter(each.provider for each in accounts.values() if each.provider not in accounts)
    several = [(name, request.text("comparison.all_of", provider=name)) for name, count in numbers.items() if count > 1]
    return [*((name, name) for name in accounts), *several]


def _differences(request: StaffRequest, result: Any, shown: StaffJob | None) -> dict[str, Any]:
    """A page of the differences, and the addresses of the pages before and after it."""
    if shown is None or not isinstance(result, ComparedStatement):
        return {}
    page = min(row_number(request.query.get("page")) or 1, max(len(result.found) - 1, 0) // _SHOWN + 1)
    first = (page - 1) * _SHOWN

    def at(number: int) -> str:
        return request.at_admin(_PATH, job=str(shown.id), page=str(number))

    return {
        "differences": result.found[first : first + _SHOWN],
        "not_kept": sum(result.counts.values()) - result.counts.get("matched", 0) - len(result.found),
        "before": at(page - 1) if page > 1 else None,
        "after": at(page + 1) if first + _SHOWN < len(result.found) else None,
        "csv": request.at_admin(f"{_PATH}/{shown.id}/differences.csv"),
    }


PAGES: Final = (
    StaffPage(_PATH, RIGHT_OF[_KIND], show, upload),
    StaffPage(f"{_PATH}/{{job:row}}/differences.csv", RIGHT_OF[_KIND], download),
)
