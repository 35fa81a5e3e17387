"""The people of a trial: a team for some of the merchants and four people of the staff, who work while everything is
killed."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import bindparam, insert, update

from guichet.accounts.invitations import Invitation, invite
from guichet.bootstrap import service
from guichet.clock import DAY, HOUR, earlier
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.db.references import new_reference
from guichet.db.tables import payments, users
from guichet.domain.audit_log import Actor
from guichet.domain.exports import MOST_DIRECT_ROWS
from guichet.domain.roles import MerchantRole, StaffRole, may_as_staff
from guichet.domain.staff_jobs import RIGHT_OF
from guichet.mail.outbox import Outbox
from guichet.merchants import repository
from reliability.api_client import ApiClient
from reliability.customers import LinkCustomers
from reliability.installation import Installation
from reliability.journal import Journal
from reliability.merchant import Merchant
from reliability.people.browser import Browser, NobodyAnswers
from reliability.people.forgotten import left_by_jobs
from reliability.people.job_requests import JobRequests
from reliability.people.journal import PeopleJournal
from reliability.people.mailbox import Mailbox
from reliability.people.members import Member
from reliability.people.person import Person
from reliability.people.staff_members import StaffMember

_ACTOR: Final = Actor("Awa", "trial")
_STAFF: Final[tuple[StaffRole, ...]] = ("finance", "admin")
#: Seconds that somebody waits for the mail of an invitation once the traffic has ended.
_LAST_MAILS: Final = 2.0


@dataclass
class People:
    """`teams`: how many merchants have people, each with these `roles`; an owner invites a cashier besides.
    `interval`: seconds between two acts of one person, on average. Each does every act at least once."""

    installation: Installation
    merchants: list[Merchant]
    api: ApiClient
    trial: Journal
    customers: LinkCustomers
    mailbox: Mailbox
    seed: int
    teams: int = 4
    roles: tuple[MerchantRole, ...] = ("owner", "finance")
    interval: float = 3.0
    journal: PeopleJournal = field(default_factory=PeopleJournal)
    members: list[Member] = field(default_factory=list)
    staff: list[StaffMember] = field(default_factory=list)
    #: Those of the staff who ask the worker for something, three times as often as others act.
    askers: list[JobRequests] = field(default_factory=list)
    _links: dict[str, str] = field(default_factory=dict)

    @property
    def invited(self) -> set[str]:
        """Addresses that were invited before the trial, not by a person in it."""
        guests = {each.person.email for each in self.members if each.role == "cashier"}
        return set(self._links) - guests

    @property
    def merchants_with_people(self) -> list[Merchant]:
        return self.merchants[: self.teams]

    async def prepare(self) -> None:
        """Invites everybody, as `guichet user invite` does, and makes enough payments of the first merchant's test
        environment for exports that the worker prepares."""
        async with service(self.installation.settings) as opened:
            for merchant in self.merchants_with_people:
                for role in self.roles:
                    person = await self._invited(
                        opened.ctx, f"{role}-{merchant.number}@boutique.example", role, merchant
                    )
                    self._add_member(person, merchant, role)
            past = _past_payments(opened.ctx, self.merchants[0])
            statement = insert(payments).values({name: bindparam(name) for name in past[0]})
            await opened.ctx.db.write_many(statement, past)
            await self._prepare_staff(opened.ctx)

    async def _prepare_staff(self, ctx: AppContext) -> None:
        for role in _STAFF:
            person = await self._invited(ctx, f"{role}@guichet.example", role, None)
            self.staff.append(StaffMember(person, self.merchants_with_people))
            asker = await self._invited(ctx, f"{role}-2@guichet.example", role, None)
            # Others sign in while everything is killed; these have been at their desks since before.
            await asker.join(self._links[asker.email])
            self.askers.append(self._job_requests(asker, role))
        self.staff[0].works_with(self.staff[1])
        # Who has had the role for less than a day approves nothing.
        since = earlier(ctx.clock.now(), 2 * DAY)
        await ctx.db.write(
            update(users).where(users.c.staff_role.is_not(None)).values(staff_since=bindparam("since")), since=since
        )

    def _job_requests(self, person: Person, role: StaffRole) -> JobRequests:
        return JobRequests(
            person,
            len(self.askers),
            self.merchants_with_people,
            sorted(self.installation.accounts),
            self.trial,
            self.installation.settings.time_zone,
            may_as_staff(role, RIGHT_OF["anonymise_customer"]),
        )

    def _add_member(self, person: Person, merchant: Merchant, role: str) -> Member:
        zone = self.installation.settings.time_zone
        member = Member(person, merchant, role, self.trial, self.customers, zone)
        if role == "owner":
            member.guests = [f"cashier-{merchant.number}@boutique.example"]
        self.members.append(member)
        return member

    def _person(self, email: str) -> Person:
        return Person(email, Browser(self.api), self.journal, random.Random(f"{self.seed}/{email}"))

    async def _invited(
        self, ctx: AppContext, email: str, role: MerchantRole | StaffRole, merchant: Merchant | None
    ) -> Person:
        stored = await repository.get(ctx.db, merchant.id) if merchant else None
        wanted = Invitation(email, "Awa Kossou", "fr", role, stored)
        address = f"{ctx.settings.public_url}/console"
        async with ctx.db.transaction() as tx:
            invited = await invite(tx, Outbox(ctx.vault), wanted, _ACTOR, address, ctx.clock.now())
        self._links[email] = f"/console/invitation/{require(invited.secret)}"
        return self._person(email)

    async def run(self, until: Callable[[], bool]) -> None:
        async with asyncio.TaskGroup() as group:
            for staff in self.staff:
                group.create_task(self._work(staff.person, staff.acts, until))
            for asker in self.askers:
                group.create_task(self._act(asker.person, asker.acts, until, self.interval / 3))
            for member in list(self.members):
                group.create_task(self._work(member.person, member.acts, until))
                for guest in member.guests:
                    group.create_task(self._welcome(guest, member.merchant, until))

    async def _welcome(self, email: str, merchant: Merchant, until: Callable[[], bool]) -> None:
        """Somebody whom the owner invites: joins once the mail has come."""
        waiting = asyncio.create_task(self.mailbox.invitation(email))
        while not waiting.done() and not until():
            await asyncio.sleep(0.1)
        done, _ = await asyncio.wait([waiting], timeout=_LAST_MAILS)
        if not done:
            waiting.cancel()
            self.journal.counts["invitations that came too late"] += 1
            return
        self._links[email] = waiting.result()
        member = self._add_member(self._person(email), merchant, "cashier")
        await self._work(member.person, member.acts, until)

    async def _work(
        self, person: Person, acts: Sequence[Callable[[], Awaitable[None]]], until: Callable[[], bool]
    ) -> None:
        async with person.lock:  # A colleague may already want this person's approval.
            await self._patiently(lambda: person.join(self._links[person.email]))
            await self._patiently(person.sign_out)
        await self._act(person, acts, until, self.interval)

    async def _act(
        self,
        person: Person,
        acts: Sequence[Callable[[], Awaitable[None]]],
        until: Callable[[], bool],
        interval: float,
    ) -> None:
        first = True
        while first or not until():
            for act in person.drawn.sample(acts, len(acts)):
                if not first and until():
                    break
                await self._patiently(act)
                self.journal.counts["acts"] += 1
                await asyncio.sleep(person.drawn.uniform(0.5, 1.5) * interval)
            first = False

    async def _patiently(self, act: Callable[[], Awaitable[None]]) -> None:
        try:
            await act()
        except NobodyAnswers:
            self.journal.counts["nobody answered"] += 1

    async def ask_at_rest(self) -> None:
        """The staff ask once more for what can be compared exactly only when nothing moves."""
        async with service(self.installation.settings) as opened:
            self.journal.faults += await left_by_jobs(opened.ctx, self.journal)
        for asker in self.askers:
            await self._patiently(asker.ask_at_rest)

    async def fetch_exports(self) -> dict[str, bytes]:
        """Every export that can still be downloaded, by its path. Nobody signs in for it: sessions outlive kills."""
        found: dict[str, bytes] = {}
        for member in self.members:
            if member.role != "cashier":
                found |= await member.fetch_exports("live") | await member.fetch_exports("test")
        return found


def _past_payments(ctx: AppContext, merchant: Merchant) -> list[dict[str, Any]]:
    """Failed payments of the test environment: no money and no event belongs to them."""
    now = ctx.clock.now()
    same: dict[str, Any] = {
        "merchant_id": merchant.id, "env": "test", "status": "failed", "amount": 100_00, "fee_amount": 0,
        "total_amount": 100_00, "currency": "XOF", "description": "Panier", "operator": "mtn",
        "failure_reason": "declined", "poll_count": 0, "not_found_count": 0, "not_found_duration": 0,
        "answered_pending": False,
    }  # fmt: skip
    made = []
    for number in range(MOST_DIRECT_ROWS + 50):
        at = earlier(now, HOUR + number)
        made.append({**same, "reference": new_reference(at), "created_at": at, "updated_at": at})
    return made
