"""What one member of the staff asks the worker for in the back office: margins, questions to providers, forgetting
customers. Each form is one job, however often it is sent."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from guichet.clock import iso
from guichet.domain.ids import MerchantId
from guichet.domain.staff_jobs import StaffJobKind
from guichet.pages.days import midnight
from reliability.journal import Journal
from reliability.merchant import Merchant
from reliability.people.browser import Answered
from reliability.people.journal import AskedJob, ForgottenCustomer
from reliability.people.person import Filled, Person
from tests.console.pages import Page

REQUESTED: Final = "staff_job.requested"
_JOB: Final = re.compile(r"[?&]job=(\d+)")
#: Stands on the page of a job that has not ended.
_WORKING: Final = 'data-refresh="'
#: Before anything that a trial makes: each margin begins on a day of its own, by which its entry is recognised.
_LONG_AGO: Final = date(2024, 1, 2)
#: Of a hundred forms: how many are sent twice at once, and how many again after they were answered.
_TWICE: Final = 30
_AGAIN: Final = 30
#: Margins and customers, for which every row is read: how many turns are taken in any case, and how many of a hundred
#: afterwards, when a long trial has many rows.
_FIRST: Final = 20
_LATER: Final = 20
#: Looks for a payment, or whether a job has ended.
_PATIENCE: Final = 10
_LONG_PATIENCE: Final = 600


@dataclass(frozen=True, slots=True)
class _Form:
    """`path`: of the page; `fields`: what is typed; `facts`: what the audit log must say of it."""

    kind: StaffJobKind
    path: str
    fields: Mapping[str, str]
    facts: Mapping[str, str]
    forgets: ForgottenCustomer | None = None

    @property
    def merchant_id(self) -> MerchantId | None:
        return self.forgets.merchant_id if self.forgets else None


@dataclass
class JobRequests:
    """`accounts`: names of our accounts with providers. `number`: of this person among the staff."""

    person: Person
    number: int
    merchants: list[Merchant]
    accounts: Sequence[str]
    trial: Journal
    time_zone: ZoneInfo
    may_anonymise: bool
    _margins: int = 0
    _turns: Counter[str] = field(default_factory=Counter)

    @property
    def acts(self) -> list[Callable[[], Awaitable[None]]]:
        return [self.margin, self.ask_providers, *([self.anonymise] if self.may_anonymise else [])]

    def _has_turn(self, act: str) -> bool:
        self._turns[act] += 1
        return self._turns[act] <= _FIRST or self.person.drawn.randrange(100) < _LATER

    async def margin(self) -> None:
        if self._has_turn("margin"):
            await self._ask(self._next_margin())

    def _next_margin(self) -> _Form:
        self._margins += 1
        begins = _LONG_AGO + timedelta(days=2 * self._margins + self.number)
        facts = {"from": iso(midnight(begins, self.time_zone))}
        return _Form("ledger_margin", "/admin/reconciliation/margin", {"from": begins.isoformat()}, facts)

    async def ask_providers(self) -> None:
        kinds: tuple[StaffJobKind, ...] = ("provider_check", "provider_deep_check", "provider_balances")
        kind, account = self.person.drawn.choice(kinds), self.person.drawn.choice(["", *self.accounts])
        facts = {"account": account} if account else {}
        await self._ask(_Form(kind, "/admin/doctor/providers", {"kind": kind, "account": account}, facts))

    async def anonymise(self) -> None:
        """A customer who paid one of the merchants by telephone."""
        if not self._has_turn("anonymise"):
            return
        for _ in range(_PATIENCE):
            known = self._customers()
            if known:
                merchant, phone_number = self.person.drawn.choice(list(known))
                paid = frozenset(known[merchant, phone_number])
                await self._ask(self._forgetting(ForgottenCustomer(merchant, phone_number, paid)))
                return
            await asyncio.sleep(0.3)

    def _customers(self) -> dict[tuple[MerchantId, str], list[str]]:
        """By merchant and number: the references of the payments that were acknowledged so far."""
        found: dict[tuple[MerchantId, str], list[str]] = {}
        for each in self.trial.acknowledged.values():
            number = each.order.body.get("phone_number")
            if number and each.reference and each.order.merchant < len(self.merchants):
                found.setdefault((self.merchants[each.order.merchant].id, number), []).append(each.reference)
        return found

    def _forgetting(self, customer: ForgottenCustomer) -> _Form:
        asked = self.person.journal.forgotten
        reason = f"lettre {len(asked) + 1}"
        asked[reason] = customer
        fields = {"phone": f"+{customer.phone_number}", "reason": reason, "confirm": "yes"}
        return _Form("anonymise_customer", f"/admin/merchants/{customer.merchant_id}/anonymise", fields, {}, customer)

    async def _ask(self, form: _Form, *, at_rest: bool = False) -> int | None:
        """The number of the job; None if the form was refused, because too many wait."""
        person, sent = self.person, ("", {"form": ""})

        def fill(page: Page) -> Filled:
            nonlocal sent
            shown = page.form("form").fields
            # The token of the form that was shown first: after a new sign-in it is still the same request.
            sent = form.path, {**shown, **form.fields, "form": sent[1]["form"] or shown["form"]}
            return sent

        total = person.journal.deed(REQUESTED, deed_name(form.kind, form.merchant_id, person.email), person.email)
        this = replace(total, least=0, most=0)
        async with person.lock:
            try:
                twice = person.drawn.randrange(100) < _TWICE
                answer = await person.act(this, form.path, fill, send=self._send_twice if twice else None)
            finally:
                total.least += this.least
                total.most += this.most
            number = _job_of(answer)
            if number is not None:
                self._note(form, number, at_rest=at_rest)
                if person.drawn.randrange(100) < _AGAIN:
                    await self._send_again(*sent, number)
            elif this.least:
                person.journal.faults.append(f"{person.email}: {form.kind} was answered without a job")
        return number

    def _note(self, form: _Form, number: int, *, at_rest: bool) -> None:
        journal = self.person.journal
        if number in journal.jobs:
            journal.faults.append(f"two forms are one job: {number}")
        facts = {"kind": form.kind, **form.facts}
        journal.jobs[number] = AskedJob(form.kind, form.path, self.person.email, facts, form.forgets, at_rest)

    async def _send_twice(self, path: str, fields: Mapping[str, str]) -> Answered | None:
        """As a double click does."""
        person = self.person
        person.journal.counts["forms sent twice at once"] += 1
        both = await asyncio.gather(*(person.browser.post(path, fields) for _ in range(2)))
        if len({_job_of(each) for each in both} - {None}) > 1:
            person.journal.faults.append(f"a form that was sent twice is two jobs: {[_job_of(each) for each in both]}")
        return next((each for each in both if _job_of(each) is not None), both[0])

    async def _send_again(self, path: str, fields: Mapping[str, str], number: int) -> None:
        """As somebody does who goes back in their browser."""
        self.person.journal.counts["forms sent again after their answer"] += 1
        again = _job_of(await self.person.browser.post(path, fields))
        if again not in (number, None):
            self.person.journal.faults.append(f"a form that was sent again is another job: {number}, {again}")

    async def ask_at_rest(self) -> None:
        """When nothing is killed and no money moves. Who may asks for each customer once more, since what was on its
        way had to wait and others of their payments came; the other one for a margin."""
        forms = [self._next_margin()]
        if self.may_anonymise:
            customers = {(each.merchant_id, each.phone_number): each for each in self.person.journal.forgotten.values()}
            forms = [self._forgetting(replace(each, paid=frozenset())) for each in customers.values()]
        for form in forms:
            number = await self._ask(form, at_rest=True)
            if number is not None:
                await self._wait_for(f"{form.path}?job={number}")

    async def _wait_for(self, path: str) -> None:
        for _ in range(_LONG_PATIENCE):
            if _WORKING not in (await self.person.open(path)).text:
                return
            await asyncio.sleep(0.2)
        self.person.journal.faults.append(f"a job does not end: {path}")


def deed_name(kind: StaffJobKind, merchant_id: MerchantId | None, email: str) -> str:
    """Forms of one kind by one person are counted together: no entry and no row says more of a question."""
    return f"{kind}/{merchant_id or ''}/{email}"


def _job_of(answer: Answered | None) -> int | None:
    found = _JOB.search(answer.place) if answer is not None else None
    return int(found[1]) if found else None
