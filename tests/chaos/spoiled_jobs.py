"""Books of the staff's jobs with one fault each, which the comparison at the end of a trial must find."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import msgspec
from msgspec import structs
from sqlalchemy import Table, delete, insert, select, update

from guichet.audit_log.entries import Entry
from guichet.back_office.jobs.tasks import Margins, read_result
from guichet.bootstrap import service
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.db.tables import audit_log, payments, staff_jobs
from guichet.domain.audit_log import CONSOLE
from reliability.books import Comparison, rendered
from reliability.chaos.trial import Trial
from reliability.installation import Installation
from reliability.people.books import compare_people
from reliability.people.forgotten import compare_forgotten, left_by_jobs
from reliability.people.job_books import compare_jobs
from reliability.people.journal import PeopleJournal

_PENDING: Final = {"status": "pending", "parameters": "x", "due_at": 1, "finished_at": None, "result": None}
_FAILED: Final = {"status": "failed", "result": None}


async def jobs_are_compared(trial: Trial, installation: Installation) -> None:
    journal = require(trial.people).journal
    async with service(installation.settings) as opened:
        ctx, asked = opened.ctx, journal.jobs
        question = next(number for number, each in asked.items() if each.kind.startswith("provider_"))
        margin = next(number for number, each in asked.items() if each.kind == "ledger_margin" and each.at_rest)
        for row, values, expected in (
            (question, _PENDING, {"a job of the staff never ended"}),
            (question, _FAILED, {"a job failed without a reason"}),
            (question, {"kind": "ledger_margin"}, {"a job differs from what was asked", "a result cannot be read"}),
        ):
            async with _spoiled(ctx, staff_jobs, row, values):
                _finds(expected, await _compared(ctx, installation, journal))
        async with _spoiled(ctx, payments, *await _named_again(ctx, journal)):
            _finds({"a forgotten customer is named"}, await _compared(ctx, installation, journal))
        another = await _another_margin(ctx, margin)
        async with _spoiled(ctx, staff_jobs, margin, another), _spoiled(ctx, staff_jobs, question, None):
            found = Comparison()
            await compare_people(found, installation, require(trial.people), trial.files)
            lost = {"a job of the staff is lost", "an entry of a job that does not exist"}
            _finds({"a margin is wrong", *lost, "a table and the audit log differ"}, found)
        assert len(await _left_by(ctx, journal)) == 1


def _finds(expected: set[str], found: Comparison) -> None:
    assert set(found.differences) == {f"the console: {each}" for each in expected}, rendered(found)


async def _compared(ctx: AppContext, installation: Installation, journal: PeopleJournal) -> Comparison:
    """What is about jobs alone, and needs no command."""
    found = Comparison()
    entries = [
        each for each in [Entry(*row) for row in await ctx.db.scan(select(audit_log))] if each.os_user == CONSOLE
    ]
    books = await compare_jobs(found, ctx, installation, journal, entries)
    await compare_forgotten(found, ctx.db, journal, books, entries)
    return found


@asynccontextmanager
async def _spoiled(ctx: AppContext, table: Table, row: int, values: Mapping[str, Any] | None) -> AsyncIterator[None]:
    """With these values in the row, or without the row (None); afterwards as it was."""
    this = table.c.id == row
    before = dict(zip(table.c.keys(), require(await ctx.db.one(select(table).where(this))), strict=True))
    await ctx.db.write(delete(table).where(this) if values is None else update(table).where(this).values(values))
    yield
    back = insert(table).values(before) if values is None else update(table).where(this).values(before)
    await ctx.db.write(back)


async def _another_margin(ctx: AppContext, number: int) -> dict[str, str]:
    text = require(await ctx.db.one(select(staff_jobs.c.result).where(staff_jobs.c.id == number)))[0]
    result = read_result("ledger_margin", ctx.vault.decrypt_bytes(text))
    assert isinstance(result, Margins)
    [first, *rest] = result.rows
    wrong = structs.replace(result, rows=[structs.replace(first, payments=first.payments + 1), *rest])
    return {"result": ctx.vault.encrypt_bytes(msgspec.json.encode(wrong))}


async def _named_again(ctx: AppContext, journal: PeopleJournal) -> tuple[int, dict[str, str]]:
    """A payment that has ended gets the number of a customer who was forgotten."""
    customer = next(each.forgets for each in journal.jobs.values() if each.at_rest and each.forgets)
    ended = select(payments.c.id).where(
        payments.c.merchant_id == customer.merchant_id,
        payments.c.status == "failed",
        payments.c.phone_number.is_distinct_from(customer.phone_number),
    )
    number = (await ctx.db.scan(ended))[0][0]
    return number, {"firstname": customer.phone_number}


async def _left_by(ctx: AppContext, journal: PeopleJournal) -> list[str]:
    """As if a customer who still has a number had been forgotten."""
    number, asked = next((number, each) for number, each in journal.jobs.items() if each.forgets)
    customer = require(asked.forgets)
    others = select(payments.c.reference).where(payments.c.phone_number != customer.phone_number)
    forgets = replace(customer, paid=frozenset({(await ctx.db.scan(others))[0][0]}))
    return await left_by_jobs(ctx, PeopleJournal(jobs={number: replace(asked, forgets=forgets)}))
