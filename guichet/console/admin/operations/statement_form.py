"""The form that asks for a comparison with a provider's statement: what is typed, and what is wrong with it."""

import asyncio
from typing import Any, Final, get_args
from zoneinfo import ZoneInfo

from guichet.back_office.jobs.statement_comparison import MAX_LINES, CompareStatement, StatementFile
from guichet.clock import DAY
from guichet.console.balance.periods import Period, read_period, today
from guichet.context import AppContext
from guichet.domain.payments import SubjectType
from guichet.ledger.provider_statement import read_statement
from guichet.ledger.statement_columns import FIELDS, MEANINGS
from guichet.pages.uploads import Upload

#: Where the lines come from.
SOURCES: Final = ("file", "provider")
#: Days that a provider is asked for at once.
MOST_DAYS: Final = 31
#: Characters of a column's name, and of the words of one meaning.
_MOST_NAME: Final = 100
_MOST_WORDS: Final = 500
#: Statements are read in it, as the days of the daily comparison are.
UTC: Final = ZoneInfo("UTC")


class IncompleteForm(Exception):
    """`fault`: `comparison.form.` and this is the sentence."""

    def __init__(self, fault: str, **facts: Any) -> None:
        super().__init__(fault)
        self.fault = fault
        self.facts = facts


async def read_statement_form(ctx: AppContext, posted: Upload) -> CompareStatement:
    """What the worker is asked for; the file was read once. Raises IncompleteForm, UnreadableStatement."""
    form = posted.fields
    accounts = ctx.providers.accounts_of(form.get("account", ""))
    if not accounts:
        raise IncompleteForm("account")
    period = _period(ctx, form)
    task = CompareStatement(
        account=form["account"],
        file=None,
        columns={field: name for field in FIELDS if (name := form.get(f"column_{field}", "").strip()[:_MOST_NAME])},
        words=_words(form),
        only=next((kind for kind in get_args(SubjectType) if kind == form.get("only")), None),
        since=period.since if period else None,
        until=period.until if period else None,
    )
    if form.get("source") == "provider":
        _check_history(ctx, accounts, period)
        return task
    return await _with_file(task, bytes(posted.content), ctx.providers.accounts[accounts[0]].provider)


async def _with_file(task: CompareStatement, content: bytes, provider: str) -> CompareStatement:
    if not content:
        raise IncompleteForm("file")
    statement = await read_statement(content, task.written(provider), MAX_LINES)
    if task.since is None and statement.since is None:
        raise IncompleteForm("no_dates")
    file = await asyncio.to_thread(StatementFile.of, content)
    return CompareStatement(task.account, file, task.columns, task.words, task.only, task.since, task.until)


def _check_history(ctx: AppContext, accounts: list[str], period: Period | None) -> None:
    histories = ctx.registry.histories()
    silent = next((name for name in accounts if name not in histories), None)
    if silent is not None:
        raise IncompleteForm("no_history", account=silent)
    if period is None:
        raise IncompleteForm("period_needed")
    if period.until - period.since > MOST_DAYS * DAY:
        raise IncompleteForm("period_long", most=MOST_DAYS)


def _period(ctx: AppContext, form: dict[str, str]) -> Period | None:
    """None if no day was typed: the period is then that of the file."""
    first, last = form.get("from", "").strip(), form.get("to", "").strip()
    if not first and not last:
        return None
    if not first or not last:
        raise IncompleteForm("both_days")
    day = today(ctx.clock.now(), UTC)
    period = read_period(first, last, UTC, (day, day))
    if period.fault:
        raise IncompleteForm(f"days_{period.fault}")
    return period


def _words(form: dict[str, str]) -> dict[str, str]:
    """The words of each meaning, which are typed with commas between them."""
    typed = {meaning: form.get(f"word_{meaning}", "")[:_MOST_WORDS].split(",") for meaning in MEANINGS}
    return {word.strip().lower(): meaning for meaning, words in typed.items() for word in words if word.strip()}
