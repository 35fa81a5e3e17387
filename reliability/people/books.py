"""Compares what people asked the console for with its tables, its audit log, its files and the mails that left."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import msgspec
from sqlalchemy import select

from guichet.audit_log.entries import Entry
from guichet.bootstrap import service
from guichet.clock import iso
from guichet.db.engine import Database
from guichet.db.tables import (
    api_keys,
    approval_requests,
    audit_log,
    exports,
    mails,
    merchant_notes,
    payment_links,
    refunds,
    staff_jobs,
    users,
)
from guichet.domain.approvals import ApprovalRequest
from guichet.domain.audit_log import CONSOLE
from guichet.domain.exports import Export
from guichet.links.links import CASH_DESK_PREFIX
from reliability.comparison import Comparison
from reliability.installation import Installation
from reliability.journal import Journal
from reliability.people.files import DOWNLOADED, compare_exports, compare_mails
from reliability.people.forgotten import ANONYMISED, compare_forgotten
from reliability.people.job_books import compare_jobs
from reliability.people.job_requests import REQUESTED, deed_name
from reliability.people.journal import PeopleJournal
from reliability.people.margin_books import compare_margins
from reliability.people.people import People

#: A link that somebody made by the form of the console begins with one of these.
_BY_HAND: Final = ("lien-", CASH_DESK_PREFIX)
#: What is logged whenever a page is opened or a file downloaded.
_READS: Final = frozenset(
    {
        "approvals.listed",
        "delivery.viewed",
        "incidents.listed",
        "merchant.notes_read",
        "merchant.read",
        "payment.viewed",
        "wallet.viewed",
    }
)
#: Acts that leave no row of their own: the audit log alone says that they were done.
_WITHOUT_ROW: Final = frozenset(
    {
        "link.closed", "key.expiry_set", "key.revoked", "webhook_secret.rotated", "delivery.resent", "approval.refused",
        "wallet.status_changed", "late_money.resolved", "user.invitation_used", "user.factor_added",
    }
)  # fmt: skip
Named = tuple[str, str]


@dataclass
class _Names:
    """What an entry of the audit log is about, as the people named it."""

    links: dict[int, str]
    notes: dict[int, str]
    emails: dict[int, str]
    #: The key that was the newest one of its merchant and environment before each key.
    keys_before: dict[int, str]

    def of(self, entry: Entry) -> str:
        after: dict[str, Any] = msgspec.json.decode(entry.after)
        about = entry.subject
        match entry.action:
            case "refund.requested":
                about = after["payment"]
            case "link.created" | "link.closed":
                about = self.links[int(entry.subject)]
            case "merchant.note_added":
                about = self.notes[after["note"]]
            case "approval.requested" | "wallet.status_changed" | "late_money.resolved":
                about = entry.reason
            case "approval.approved" | "approval.refused":
                about = after["request"]
            case "key.created":
                about = self.keys_before[int(entry.subject)]
            case "export.requested":
                kind, written_as, since = after["kind"], after["format"], after["from"]
                about = f"{entry.merchant_id}/{after['env']}/{kind}/{written_as}/{since}/{entry.actor}"
            case "staff_job.requested":
                about = deed_name(after["kind"], entry.merchant_id, entry.actor)
            case action if action.startswith("user."):
                about = self.emails[int(entry.subject)]
        return str(about)


async def compare_people(
    found: Comparison, installation: Installation, people: People, files: dict[str, bytes]
) -> None:
    """`files`: the exports that could be downloaded at the end, by their path. Nothing may write meanwhile."""
    journal = people.journal
    async with service(installation.settings) as opened:
        db = opened.ctx.db
        names = await _names(db)
        entries = [Entry(*row) for row in await db.scan(select(audit_log).order_by(audit_log.c.number))]
        entries = [each for each in entries if each.os_user == CONSOLE]
        rows = await _rows(db, people)
        requests = [ApprovalRequest(*row) for row in await db.scan(select(approval_requests))]
        refunded = set(map(str, await _column(db, refunds.c.payment_reference)))
        _compare_deeds(found, journal, people.trial, entries, rows, names, refunded)
        _compare_approvals(found, requests, entries)
        await compare_exports(found, db, journal, entries, files)
        await compare_mails(found, db, people.mailbox)
        jobs = await compare_jobs(found, opened.ctx, installation, journal, entries)
        await compare_margins(found, opened.ctx, installation, journal, jobs)
        await compare_forgotten(found, db, journal, jobs, entries)
    for fault in journal.faults:
        found.differs("the console: an answer that must not be", fault)
    for action, count in Counter(each.action for each in journal.deeds.values() if each.least).items():
        found.figures[f"console: {action}"] += count


async def waiting(installation: Installation) -> int:
    """Mails, exports and jobs of the staff that the worker has still to do."""
    async with service(installation.settings) as opened:
        statements = [select(table.c.id).where(table.c.status == "pending") for table in (mails, exports, staff_jobs)]
        return sum([len(await opened.ctx.db.scan(each)) for each in statements])


async def _column(db: Database, column: Any) -> list[Any]:
    return [row[0] for row in await db.scan(select(column))]


async def _names(db: Database) -> _Names:
    keys: dict[tuple[int, str], list[int]] = defaultdict(list)
    for merchant, env, number in await db.scan(
        select(api_keys.c.merchant_id, api_keys.c.env, api_keys.c.id).order_by(api_keys.c.id)
    ):
        keys[merchant, env].append(number)
    before = {new: f"{merchant}/{old}" for (merchant, _), each in keys.items() for old, new in pairwise(each)}
    return _Names(
        dict(await db.scan(select(payment_links.c.id, payment_links.c.description))),
        dict(await db.scan(select(merchant_notes.c.id, merchant_notes.c.text))),
        dict(await db.scan(select(users.c.id, users.c.email))),
        before,
    )


async def _rows(db: Database, people: People) -> Counter[Named]:
    """Every row that the acts of people make, by what they are about."""
    rows: Counter[Named] = Counter()
    for description, external_id in await db.scan(select(payment_links.c.description, payment_links.c.external_id)):
        if (external_id or "").startswith(_BY_HAND):
            rows["link.created", description] += 1
    rows.update(("merchant.note_added", text) for text in await _column(db, merchant_notes.c.text))
    for each in [ApprovalRequest(*row) for row in await db.scan(select(approval_requests))]:
        rows["approval.requested", each.reason] += 1
        if each.status == "approved":
            rows["approval.approved", str(each.id)] += 1
    rows.update(("key.created", before) for before in (await _names(db)).keys_before.values())
    emails = dict(await db.scan(select(users.c.id, users.c.email)))
    for export in [Export(*row) for row in await db.scan(select(exports))]:
        where = f"{export.merchant_id}/{export.env}/{export.kind}/{export.format}/{iso(export.since)}"
        rows["export.requested", f"{where}/{emails[export.user_id]}"] += 1
    for kind, merchant, user in await db.scan(
        select(staff_jobs.c.kind, staff_jobs.c.merchant_id, staff_jobs.c.user_id)
    ):
        rows[REQUESTED, deed_name(kind, merchant, emails[user])] += 1
    invited = set(emails.values()) - people.invited
    rows.update(("user.invited", email) for email in invited)
    return rows


def _compare_deeds(
    found: Comparison,
    journal: PeopleJournal,
    trial: Journal,
    entries: list[Entry],
    rows: Counter[Named],
    names: _Names,
    refunded: set[str],
) -> None:
    """What was confirmed exists once, in its table and in the audit log, by whom it was asked; nothing else does."""
    logged: Counter[Named] = Counter()
    for entry in entries:
        if entry.action in _READS or entry.action in (DOWNLOADED, ANONYMISED):
            continue
        named = (entry.action, names.of(entry))
        logged[named] += 1
        deed = journal.deeds.get(named)
        if deed is None:
            found.differs("the console: an act that nobody asked for", str(entry))
        elif deed.who != entry.actor:
            found.differs("the console: an act of somebody else", f"{entry} instead of {deed.who}")
    for named, deed in journal.deeds.items():
        if deed.action == "refund.requested":
            _compare_refund(found, trial, deed.about, deed.least, logged[named], refunded)
        elif not deed.least <= logged[named] <= deed.most:
            found.differs("the console: the audit log and an act differ", f"{deed}: {logged[named]} entries")
    for named in rows.keys() | {each for each in logged if each[0] not in _WITHOUT_ROW | {"refund.requested"}}:
        # An invitation that is sent again is another entry about the same person.
        exact = min(logged[named], 1) if named[0] == "user.invited" else logged[named]
        if rows[named] != exact:
            found.differs("the console: a table and the audit log differ", f"{named}: {rows[named]} rows, {exact}")


def _compare_refund(
    found: Comparison, trial: Journal, payment: str, least: int, logged: int, refunded: set[str]
) -> None:
    """A merchant's program may have asked for the same refund: there is one, with an entry if a person made it."""
    if least and payment not in refunded:
        found.differs("the console: a refund is lost", payment)
    by_program = bool(trial.refunds.get(payment))
    fewest = 0 if payment in trial.refunds_asked else least
    if not fewest <= logged <= (0 if by_program else 1):
        found.differs("the console: the audit log and a refund differ", f"{payment}: {logged} entries")


def _compare_approvals(found: Comparison, requests: list[ApprovalRequest], entries: list[Entry]) -> None:
    """What was approved was done once, nothing else was, and none still waits."""
    executed = Counter(msgspec.json.decode(each.after).get("approval") for each in entries)
    for each in requests:
        if executed[each.id] != (each.status == "approved"):
            found.differs("the console: an approval was not done once", f"{each}: done {executed[each.id]} times")
        if each.status == "pending":
            found.differs("the console: a request was never decided", str(each))
        found.figures[f"money acts {each.status}"] += 1
