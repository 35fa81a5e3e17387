"""A short slice of `make chaos`: live money through the separate simulator, everything killed, three books compared."""

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, Update, select, update

from guichet.bootstrap import service
from guichet.clock import MINUTE
from guichet.db.engine import require
from guichet.db.tables import exports, mails, payments, refunds, staff_jobs, webhook_deliveries
from guichet.domain.exports import EXPORT_LEASE
from guichet.domain.staff_jobs import STAFF_JOB_LEASE
from guichet.settings import Settings
from reliability.books import Comparison, compare, rendered
from reliability.chaos.services import Services
from reliability.chaos.trial import Plan, Trial
from reliability.installation import Installation
from reliability.orders import DEBIT_SCENARIOS
from reliability.people.books import compare_people
from tests.chaos.spoiled_jobs import jobs_are_compared
from tests.ports import free_port

_DUE = (
    payments.c.next_poll_at,
    payments.c.lease_expires_at,
    refunds.c.next_poll_at,
    refunds.c.lease_expires_at,
    webhook_deliveries.c.next_attempt_at,
    mails.c.next_attempt_at,
)
#: An answer after 25 seconds.
_SLOW = "18"
#: FedaPay's refusals are believed a minute later.
_DECIDED_EARLIER = "UPDATE transactions SET decided_at = decided_at - ? WHERE provider = 'fedapay' AND state = 'failed'"
#: A debit that became a payment which succeeded.
_A_DEBIT = "SELECT MIN(id) FROM transactions WHERE provider = 'mtn' AND kind = 'debit' AND state = 'succeeded'"


@dataclass
class ShortTrial(Trial):
    """Leases and pauses between webhooks pass at once."""

    settings: Settings | None = None
    simulator_db: Path = Path()
    _looked: bool = False

    async def before_each_look(self) -> None:
        assert self.settings is not None
        # What wrote an export or did a job may be dead: once only, since it may also be at it still.
        leases = [exports.c.due_at] * (EXPORT_LEASE // MINUTE) + [staff_jobs.c.due_at] * (STAFF_JOB_LEASE // MINUTE)
        leases = [] if self._looked else leases
        self._looked = True
        async with service(self.settings) as opened:
            for due in (*_DUE, *leases):
                async with opened.ctx.db.transaction() as tx:
                    await tx.write(_sooner(due))
        with closing(sqlite3.connect(self.simulator_db, timeout=10)) as db, db:
            db.execute(_DECIDED_EARLIER, (MINUTE,))


def _sooner(due: Column[Any]) -> Update:
    """What the servers hold at this moment waits for the next look: waiting for it could be a deadlock with them."""
    table = due.table
    free = select(table.c.id).where(table.c.status == "pending").with_for_update(skip_locked=True)
    return update(table).where(table.c.id.in_(free)).values({due: due - MINUTE})


@pytest.mark.slow
async def test_the_books_of_providers_guichet_and_merchants_agree_after_kills(
    settings: Settings, tmp_path: Path
) -> None:
    several = not settings.embedded
    first, second = free_port(), free_port()
    installation = Installation(
        tmp_path / "trial", first, [first + 1, second][: 1 + several], database_url=settings.database_url
    )
    plan = Plan(
        "postgresql" if several else "sqlite",
        seed=60,
        payments=50,
        kills=3 if several else 2,
        interval=0.8,
        rate=15,
        settle=120,
        folder=installation.folder,
        first_port=first,
        look=1.0,
        proof_expected=False,
        teams=1,
        roles=("owner",),
        pace=0.05,
        unsaid=0,
        scenarios={digits: share for digits, share in DEBIT_SCENARIOS.items() if digits != _SLOW},
    )
    trial = ShortTrial(plan, settings=settings, simulator_db=installation.simulator_db)
    services = Services(installation, first + 2, second + 1, several=several)
    try:
        await trial.run_on(services)
    finally:
        await services.kill()
    assert trial.kills >= plan.kills
    assert trial.journal.payments >= plan.payments
    assert not trial.comparison.difference_count, "\n".join(rendered(trial.comparison))
    done = {each.action for each in require(trial.people).journal.deeds.values() if each.least}
    assert {"link.created", "merchant.note_added", "export.requested", "key.revoked", "user.factor_added"} <= done
    assert trial.comparison.figures["margins as the command adds them up"] == 1
    assert trial.comparison.figures["customers forgotten"]
    if several:
        return
    await jobs_are_compared(trial, installation)
    await _people_are_compared(trial, installation)
    for spoil in (a_debit_disappears, a_debit_is_doubled, an_acknowledged_payment_is_lost, an_event_is_lost):
        with spoil(trial, installation):
            spoiled = await compare(installation, trial.journal, trial.merchants, False, with_ledger=False)
        assert spoiled.difference_count == 1, f"{spoil.__name__}: {rendered(spoiled)}"
    with a_debit_is_another_providers(installation):
        spoiled = await compare(installation, trial.journal, trial.merchants, False)
    assert list(spoiled.differences) == ["a float account and its provider disagree"], rendered(spoiled)


async def _people_are_compared(trial: Trial, installation: Installation) -> None:
    """A note that somebody was told was kept and is not, and one that nobody wrote, are each found."""
    people = require(trial.people)
    written = next(each for each in people.journal.deeds.values() if each.action == "merchant.note_added")
    del people.journal.deeds[written.action, written.about]
    people.journal.done(written.action, "never kept", written.who)
    found = Comparison()
    await compare_people(found, installation, people, trial.files)
    assert sorted(map(len, found.differences.values())) == [1, 1], rendered(found)


@contextmanager
def the_simulators_file(installation: Installation, *statements: str) -> Iterator[None]:
    """With the statements executed, and as it was again afterwards."""
    before = installation.simulator_db.with_suffix(".before")
    with closing(sqlite3.connect(installation.simulator_db)) as db, closing(sqlite3.connect(before)) as copy:
        db.backup(copy)
        with db:
            for statement in statements:
                db.execute(statement)
        yield
        copy.backup(db)


def a_debit_disappears(_: Trial, installation: Installation) -> AbstractContextManager[None]:
    return the_simulators_file(installation, f"DELETE FROM books WHERE transaction_id = ({_A_DEBIT})")


def a_debit_is_another_providers(installation: Installation) -> AbstractContextManager[None]:
    return the_simulators_file(installation, f"UPDATE transactions SET provider = 'coris' WHERE id = ({_A_DEBIT})")


def a_debit_is_doubled(_: Trial, installation: Installation) -> AbstractContextManager[None]:
    with closing(sqlite3.connect(installation.simulator_db)) as db:
        names = [row[1] for row in db.execute("PRAGMA table_info(transactions)")]
    values = [{"id": "1000000", "ref": "'again'"}.get(name, name) for name in names]
    return the_simulators_file(
        installation,
        f"INSERT INTO transactions SELECT {', '.join(values)} FROM transactions WHERE id = ({_A_DEBIT})",
        "INSERT INTO books SELECT 1000000, provider, kind, client_ref, amount, currency, at FROM books"
        f" WHERE transaction_id = ({_A_DEBIT})",
    )


@contextmanager
def an_acknowledged_payment_is_lost(trial: Trial, _: Installation) -> Iterator[None]:
    acknowledged = trial.journal.acknowledged
    known = next(each for each in acknowledged.values() if each.reference is not None)
    acknowledged["never stored"] = replace(known, reference="00000000-0000-4000-8000-000000000000")
    yield
    del acknowledged["never stored"]


@contextmanager
def an_event_is_lost(trial: Trial, _: Installation) -> Iterator[None]:
    events = next(
        each
        for merchant in trial.merchants
        for each in merchant.by_payment.values()
        if [event.name for event in each] == ["payment.succeeded"]
    )
    event = events.pop()
    yield
    events.append(event)
