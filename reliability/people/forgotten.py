"""Whether the customers that people anonymised are forgotten: each job changed what was there before it was asked for,
and in the end nothing names them but what docs/privacy.md says is not cleaned."""

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import String, Table, select

from guichet.audit_log.entries import Entry
from guichet.back_office.anonymisation import Anonymised
from guichet.back_office.jobs.tasks import read_result
from guichet.clock import Instant
from guichet.context import AppContext
from guichet.db.engine import Database
from guichet.db.tables import audit_log, incidents, metadata, payments, staff_jobs, unmatched_callbacks
from guichet.domain.ids import MerchantId
from reliability.comparison import Comparison
from reliability.people.job_books import JobBooks
from reliability.people.journal import PeopleJournal

ANONYMISED: Final = "customer.anonymised"
_DIGITS: Final = re.compile(r"\d{8,}")
#: Entries of the audit log cannot be changed (docs/privacy.md, "Forgetting a customer").
_NOT_CLEANED: Final = frozenset({audit_log.name})
#: Rows of these tables may have come after the job: when they did.
_CAME_AT: Final = {incidents.name: "opened_at", unmatched_callbacks.name: "received_at"}
#: What says of which payment a row is, by its reference or its id.
_PAYMENT_OF: Final = ("payment_reference", "payment_id", "reference")


@dataclass(frozen=True, slots=True)
class _Forgotten:
    """A customer of a merchant after the last job about them. `waiting`: the payments on their way, by reference and by
    id, which still need the number."""

    merchant_id: MerchantId
    phone_number: str
    at: Instant
    waiting: frozenset[str | int]


async def left_by_jobs(ctx: AppContext, journal: PeopleJournal) -> list[str]:
    """Payments that were acknowledged before their customer's job was asked for, and that it neither anonymised nor
    listed. Asked before another job about the same customer covers it up."""
    phones = dict(await ctx.db.scan(select(payments.c.reference, payments.c.phone_number)))
    faults = []
    for number, text in await ctx.db.scan(select(staff_jobs.c.id, staff_jobs.c.result)):
        asked = journal.jobs.get(number)
        if asked is None or asked.forgets is None or text is None:
            continue
        result = read_result(asked.kind, ctx.vault.decrypt_bytes(text))
        assert isinstance(result, Anonymised)
        left = {each for each in asked.forgets.paid if phones.get(each)} - set(result.waiting)
        faults += [f"job {number} left {each} as it was" for each in left]
    return faults


async def compare_forgotten(
    found: Comparison, db: Database, journal: PeopleJournal, books: JobBooks, entries: list[Entry]
) -> None:
    """`entries`: those of the console. Nothing may write meanwhile."""
    await _compare_entries(found, db, journal, entries)
    forgotten = await _forgotten(db, journal, books)
    done = {(each.merchant_id, each.phone_number) for each in forgotten}
    for each in {(each.merchant_id, each.phone_number) for each in journal.forgotten.values()} - done:
        found.differs("the console: a customer was not forgotten in the end", str(each))
    found.figures["customers forgotten"] += len(done)
    by_number: dict[str, list[_Forgotten]] = defaultdict(list)
    for customer in forgotten:
        by_number[customer.phone_number].append(customer)
    async for table, number, row in _traces(db, frozenset(by_number)):
        if any(_names(table, row, customer) for customer in by_number[number]):
            found.differs("the console: a forgotten customer is named", f"{number} in {table.name}: {row}")


async def _compare_entries(found: Comparison, db: Database, journal: PeopleJournal, entries: list[Entry]) -> None:
    """Payments were anonymised of whom somebody named, and name nobody since."""
    anonymised: set[str] = set()
    for entry in entries:
        if entry.action != ANONYMISED:
            continue
        customer = journal.forgotten.get(entry.reason)
        if customer is None or customer.merchant_id != entry.merchant_id:
            found.differs("the console: a customer was anonymised whom nobody named", str(entry))
        anonymised |= set(msgspec.json.decode(entry.after).get("payments", ()))
    found.figures["payments anonymised"] += len(anonymised)
    for reference, *named in await db.scan(
        select(payments.c.reference, payments.c.phone_number, payments.c.payer_number, payments.c.email)
    ):
        if reference in anonymised and any(named):
            found.differs("the console: an anonymised payment names somebody", reference)


async def _forgotten(db: Database, journal: PeopleJournal, books: JobBooks) -> list[_Forgotten]:
    """By the jobs that were asked for at rest: one for each customer."""
    ids: dict[str, int] = dict(await db.scan(select(payments.c.reference, payments.c.id)))
    forgotten = []
    for number, asked in journal.jobs.items():
        result = books.results.get(number)
        if asked.at_rest and asked.forgets is not None and isinstance(result, Anonymised):
            waiting: set[str | int] = {*result.waiting, *(ids[each] for each in result.waiting)}
            who, at = asked.forgets, books.jobs[number].created_at
            forgotten.append(_Forgotten(who.merchant_id, who.phone_number, at, frozenset(waiting)))
    return forgotten


async def _traces(db: Database, numbers: frozenset[str]) -> AsyncIterator[tuple[Table, str, dict[str, Any]]]:
    """Each row of the database that has one of these numbers in a text."""
    for table in metadata.sorted_tables:
        texts = [column.name for column in table.c if isinstance(column.type, String)]
        if not texts or table.name in _NOT_CLEANED:
            continue
        for values in await db.scan(select(table)):
            row = dict(zip(table.c.keys(), values, strict=True))
            for number in numbers & {each for name in texts for each in _DIGITS.findall(row[name] or "")}:
                yield table, number, row


def _names(table: Table, row: Mapping[str, Any], customer: _Forgotten) -> bool:
    """Whether this row should have been cleaned for this customer: not what came later, what is another merchant's, or
    what belongs to a payment on its way."""
    if table.name in _CAME_AT:
        mine = row.get("merchant_id") in (None, customer.merchant_id)
        return mine and bool(row[_CAME_AT[table.name]] < customer.at)
    if row.get("merchant_id", customer.merchant_id) != customer.merchant_id:
        return False
    return not any(row.get(name) in customer.waiting for name in _PAYMENT_OF)
