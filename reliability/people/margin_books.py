"""Compares the margins that the worker added up with those of `guichet ledger margin`."""

from collections.abc import Mapping
from typing import Final

import msgspec

from guichet.back_office.jobs.tasks import Margins
from guichet.clock import SECOND, Instant, earlier, iso
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.money import Currency
from guichet.ledger.margin import Margin, margins
from reliability.comparison import Comparison
from reliability.installation import Installation
from reliability.people.job_books import JobBooks
from reliability.people.journal import PeopleJournal
from reliability.processes import guichet, run_command

#: While money moves: a posting may be committed so long after the time that it bears.
_COMMIT_LATE: Final = 30 * SECOND
#: Margins that were asked for while money moved and are added up again: each reads every posting twice.
_MOST_MARGINS: Final = 20
#: Payments are a number, the rest hundredths.
OperatorMargins = Mapping[tuple[str, Currency], tuple[int, int, int]]


async def compare_margins(
    found: Comparison, ctx: AppContext, installation: Installation, journal: PeopleJournal, books: JobBooks
) -> None:
    """Those that were asked for when nothing moved are what the command says; the others lie between what it says of
    the time before the job and of the time until its end."""
    moving = 0
    for number, result in books.results.items():
        asked = journal.jobs.get(number)
        if not isinstance(result, Margins) or asked is None or (not asked.at_rest and moving >= _MOST_MARGINS):
            continue
        moving += not asked.at_rest
        job = books.jobs[number]
        until = min(result.until, require(job.finished_at))
        before = job.created_at if asked.at_rest else earlier(job.created_at, _COMMIT_LATE)
        least = _plain(await margins(ctx.db, result.since, min(until, before)))
        most = _plain(await margins(ctx.db, result.since, until))
        told = {(each.operator, each.currency): (each.payments, each.fees, each.provider_fees) for each in result.rows}
        faults = _outside(told, least, most)
        faults += [str(each) for each in result.rows if each.margin != each.fees - each.provider_fees]
        if asked.at_rest and least == most:
            faults += [] if told == await _by_command(installation, result.since, until) else ["the command differs"]
            found.figures["margins as the command adds them up"] += 1
        found.figures["margins compared"] += 1
        if faults:
            found.differs("the console: a margin is wrong", f"{number}: {faults}")


def _plain(found: Mapping[tuple[str, Currency], Margin]) -> OperatorMargins:
    return {key: (each.payments, each.fees, each.provider_fees) for key, each in found.items()}


def _outside(told: OperatorMargins, least: OperatorMargins, most: OperatorMargins) -> list[str]:
    """Where nothing was posted meanwhile, all is known; else only how many payments there may be."""
    nothing = (0, 0, 0)
    faults = []
    for key in told.keys() | least.keys() | most.keys():
        low, this, high = (each.get(key, nothing) for each in (least, told, most))
        if not low[0] <= this[0] <= high[0] or (low == high and this != low):
            faults.append(f"{key}: {this}, not {low} to {high}")
    return faults


async def _by_command(installation: Installation, since: Instant, until: Instant) -> OperatorMargins:
    command = guichet("ledger", "margin", "--from", iso(since), "--to", iso(until), "--json")
    code, out, err = await run_command(command, installation.environ)
    assert code == 0, out + err
    return {
        (each["operator"], each["currency"]): (
            each["payments"],
            _hundredths(each["fees"]),
            _hundredths(each["provider_fees"]),
        )
        for each in msgspec.json.decode(out)["margins"]
    }


def _hundredths(amount: float) -> int:
    """Of an amount as JSON has it."""
    return round(amount * 100)
