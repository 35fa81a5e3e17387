"""The comparison with a provider's statement, as `guichet reconcile`: a file is uploaded, or the provider is asked for
its history; the worker compares."""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Final
from zoneinfo import ZoneInfo

from starlette.responses import Response

from guichet.back_office.jobs import repository
from guichet.back_office.jobs.statement_comparison import (
    MAX_LINES,
    MAX_STATEMENT,
    ComparedStatement,
    CompareStatement,
    StatementFile,
)
from guichet.clock import DAY, Instant
from guichet.console.admin.staff_jobs import JobsView, ask_worker, job_result, jobs_view
from guichet.console.downloads import attachment, file_name
from guichet.console.page_request import FormFault, StaffRequest
from guichet.domain.errors import NotFound
from guichet.domain.payments import SUBJECT_TYPES
from guichet.domain.reconciliation import OUTCOMES
from guichet.domain.staff_jobs import RIGHT_OF, StaffJob
from guichet.exports.differences import csv_file
from guichet.ledger.provider_statement import FIELDS, MEANINGS, UnreadableStatement, read_statement
from guichet.pages import formatting
from guichet.pages.days import Period, read_period, today
from guichet.pages.fields import choice, row_id
from guichet.pages.lists import Pager
from guichet.pages.uploads import Upload, UploadTooLarge
from guichet.pages.views import View
from guichet.printable import printable

_PATH: Final = "/reconciliation/statement"
#: Differences on a page.
_PAGE_SIZE: Final = 100
#: Where the lines come from.
_SOURCES: Final = ("file", "provider")
#: Days that a provider is asked for at once.
_MOST_DAYS: Final = 31
#: Characters of a column's name, and of the words of one meaning.
_MOST_NAME: Final = 100
_MOST_WORDS: Final = 500
#: Statements are read in it, as the days of the daily comparison are.
UTC: Final = ZoneInfo("UTC")


class StatementView(View, frozen=True):
    """`differences`: a page of those that were found; `not_kept`: how many more there are."""

    jobs: JobsView
    differences: list[Any]
    not_kept: int
    pager: Pager
    csv: str
    accounts: list[tuple[str, str]]
    sources: list[tuple[str, str]]
    kinds: list[tuple[str, str]]
    most_lines: str
    utc: Callable[[Instant], str]
    fields: ClassVar = FIELDS
    meanings: ClassVar = MEANINGS
    outcomes: ClassVar = OUTCOMES
    most_mib: ClassVar = MAX_STATEMENT // 1024 // 1024
    most_days: ClassVar = _MOST_DAYS


async def upload(request: StaffRequest) -> Response:
    """The right is checked before anything of the body is read, the form's token before any of the file is kept."""
    request.require(RIGHT_OF["compare_statement"])
    try:
        posted = await request.upload(MAX_STATEMENT)
        return await ask_worker(request, _PATH, await _read_form(request, posted))
    except UploadTooLarge:
        text = request.text("comparison.form.too_large", mib=MAX_STATEMENT // 1024 // 1024)
        raise FormFault(text, 413) from None
    except UnreadableStatement as error:
        raise FormFault(_sentence(request, error)) from None


async def download(request: StaffRequest) -> Response:
    """The differences that were kept, for a spreadsheet."""
    job = await repository.find(request.db, request.path["job"])
    result = await job_result(request, job) if job is not None and job.kind == "compare_statement" else None
    if job is None or not isinstance(result, ComparedStatement):
        raise NotFound
    content = await asyncio.to_thread(csv_file, result.found)
    return attachment(content, "text/csv; charset=utf-8", file_name("differences", str(job.id), suffix="csv"))


def _incomplete(request: StaffRequest, fault: str, **facts: Any) -> FormFault:
    return FormFault(request.text(f"comparison.form.{fault}", **facts))


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


async def show(request: StaffRequest) -> Response:
    jobs = await jobs_view(request, _PATH, "compare_statement")
    job = jobs.current.job if jobs.current else None
    result = jobs.result if isinstance(jobs.result, ComparedStatement) else None
    differences, pager = _differences(request, result, job)
    counted = sum(count for outcome, count in result.counts.items() if outcome != "matched") if result else 0
    view = StatementView(
        jobs=jobs,
        differences=differences,
        not_kept=counted - len(result.found) if result else 0,
        pager=pager,
        csv=request.admin_url(f"{_PATH}/{job.id}/differences.csv") if job else "",
        accounts=_accounts(request),
        sources=[(source, request.text(f"comparison.source.{source}")) for source in _SOURCES],
        kinds=[(kind, request.text(f"comparison.kind.{kind or 'both'}")) for kind in ("", *SUBJECT_TYPES)],
        most_lines=formatting.whole_number(MAX_LINES, request.language),
        utc=partial(formatting.date_time, language=request.language, time_zone=UTC),
    )
    return request.page("admin/operations/statement.html", view)


def _accounts(request: StaffRequest) -> list[tuple[str, Any]]:
    """Every account, and every provider with several of them."""
    accounts = request.ctx.providers.accounts
    counts = Counter(account.provider for account in accounts.values() if account.provider not in accounts)
    several = [(name, request.text("comparison.all_of", provider=name)) for name, count in counts.items() if count > 1]
    return [*((name, name) for name in accounts), *several]


def _differences(
    request: StaffRequest, result: ComparedStatement | None, job: StaffJob | None
) -> tuple[list[Any], Pager]:
    """A page of the differences, in the order of the statement. `?page=`: its number; they stand in one row of the
    database, so there is no key to cut at."""
    if result is None or job is None:
        return [], Pager()
    last = max(len(result.found) - 1, 0) // _PAGE_SIZE + 1
    number = min(row_id(request.query.get("page")) or 1, last)
    address = partial(request.admin_url, _PATH, job=str(job.id))
    newer = address(page=str(number - 1)) if number > 1 else None
    older = address(page=str(number + 1)) if number < last else None
    return result.found[(number - 1) * _PAGE_SIZE : number * _PAGE_SIZE], Pager(newer, older)


async def _read_form(request: StaffRequest, posted: Upload) -> CompareStatement:
    """What the worker is asked for; the file was read once. Raises FormFault, UnreadableStatement."""
    form, ctx = posted.fields, request.ctx
    accounts = ctx.providers.accounts_of(form.get("account", ""))
    if not accounts:
        raise _incomplete(request, "account")
    period = _period(request, form)
    task = CompareStatement(
        account=form["account"],
        file=None,
        columns={field: name for field in FIELDS if (name := form.get(f"column_{field}", "").strip()[:_MOST_NAME])},
        words=_words(form),
        only=choice(form.get("only"), SUBJECT_TYPES),
        since=period.since if period else None,
        until=period.until if period else None,
    )
    if form.get("source") == "provider":
        _check_history(request, accounts, period)
        return task
    return await _with_file(request, task, bytes(posted.content), ctx.providers.accounts[accounts[0]].provider)


async def _with_file(request: StaffRequest, task: CompareStatement, content: bytes, provider: str) -> CompareStatement:
    if not content:
        raise _incomplete(request, "file")
    statement = await read_statement(content, task.written(provider), MAX_LINES)
    if task.since is None and statement.since is None:
        raise _incomplete(request, "no_dates")
    file = await asyncio.to_thread(StatementFile.of, content)
    return CompareStatement(task.account, file, task.columns, task.words, task.only, task.since, task.until)


def _check_history(request: StaffRequest, accounts: list[str], period: Period | None) -> None:
    histories = request.ctx.registry.histories()
    silent = next((name for name in accounts if name not in histories), None)
    if silent is not None:
        raise _incomplete(request, "no_history", account=silent)
    if period is None:
        raise _incomplete(request, "period_needed")
    if period.until - period.since > _MOST_DAYS * DAY:
        raise _incomplete(request, "period_long", most=_MOST_DAYS)


def _period(request: StaffRequest, form: dict[str, str]) -> Period | None:
    """None if no day was typed: the period is then that of the file."""
    first, last = form.get("from", "").strip(), form.get("to", "").strip()
    if not first and not last:
        return None
    if not first or not last:
        raise _incomplete(request, "both_days")
    day = today(request.now(), UTC)
    period = read_period(first, last, UTC, (day, day))
    if period.fault:
        raise _incomplete(request, f"days_{period.fault}")
    return period


def _words(form: dict[str, str]) -> dict[str, str]:
    """The words of each meaning, which are typed with commas between them."""
    lists = {meaning: form.get(f"word_{meaning}", "")[:_MOST_WORDS].split(",") for meaning in MEANINGS}
    return {word.strip().lower(): meaning for meaning, words in lists.items() for word in words if word.strip()}
