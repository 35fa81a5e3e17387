"""What two people of the staff do in the back office: notes, freezing wallets, and money acts that one asks for and the
other one approves."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from reliability.merchant import Merchant
from reliability.people.person import Filled, Person, with_csrf
from tests.console.pages import Page

_REQUEST: Final = re.compile(r"/admin/approvals/(\d+)")
_CASE: Final = re.compile(r"/admin/incidents/([0-9a-f-]{36})")
_DECISION: Final = re.compile(r'name="to" value="([a-z-]+)"')


@dataclass
class StaffMember:
    """`colleague`: approves what this one asks for."""

    person: Person
    merchants: list[Merchant]
    frozen: set[int] = field(default_factory=set)
    _colleague: "StaffMember | None" = None
    _number: int = 0

    def works_with(self, other: "StaffMember") -> None:
        self._colleague, other._colleague = other, self
        other.frozen = self.frozen

    @property
    def acts(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return [self.note, self.freeze_and_reopen, self.decide_late_money, self.note]

    def _reason(self, what: str) -> str:
        self._number += 1
        return f"{what} {self._number} de {self.person.email}"

    async def note(self) -> None:
        person = self.person
        path, text = f"/admin/merchants/{person.drawn.choice(self.merchants).id}/notes", self._reason("note")

        def fill(page: Page) -> Filled:
            return path, {**page.form("after").fields, "text": text}

        async def look() -> bool:
            return text in (await person.open(path)).text

        async with person.lock:
            await person.act(person.journal.deed("merchant.note_added", text, person.email), path, fill, look)

    async def freeze_and_reopen(self) -> None:
        """Stopping money waits for nobody; two people let it flow again."""
        merchant = self.person.drawn.choice(self.merchants).id
        if merchant in self.frozen:
            return
        self.frozen.add(merchant)
        path = f"/admin/wallets/{merchant}"
        if await self._change_wallet(path, "Gelé", "wallet.status_changed", self._reason("gel")):
            self.person.journal.counts["wallets frozen"] += 1
            await asyncio.sleep(self.person.drawn.uniform(0, 0.5))
            while True:
                reason = self._reason("réouverture")
                await self._change_wallet(path, "Actif", "approval.requested", reason)
                if await self._decided(reason, "wallet.status_changed"):
                    break
                await asyncio.sleep(self.person.drawn.uniform(0, 0.5))
        self.frozen.discard(merchant)

    async def _change_wallet(self, path: str, status: str, action: str, reason: str) -> bool:
        person = self.person

        def fill(page: Page) -> Filled:
            if f'<option value="{status}"' not in page.text:
                return None  # It has no movement yet, or this status already.
            return with_csrf(page, {"currency": "XOF", "status": status, "reason": reason})

        async def look() -> bool:
            if status == "Actif":
                return reason in (await person.open("/admin/approvals")).text
            return f'<option value="{status}"' not in (await person.open(path)).text

        deed = person.journal.deed(action, reason, person.email)
        async with person.lock:
            await person.act(deed, path, fill, look)
        return bool(deed.least)

    async def decide_late_money(self) -> None:
        """One late result that is open: the trial's other staff decide about the rest by command."""
        person = self.person
        async with person.lock:
            page = await person.open("/admin/incidents")
            known = [each for each in dict.fromkeys(_CASE.findall(page.text)) if is_for_the_console(each)]
            if not known:
                return
            reference, reason = person.drawn.choice(known), self._reason("relevé")
            path = f"/admin/incidents/{reference}"

            def fill(page: Page) -> Filled:
                fitting = _DECISION.findall(page.text)
                if not fitting:
                    return None
                to = person.drawn.choice([each for each in fitting if each != "payer"] or fitting)
                return with_csrf(page, {"act": "late", "to": to, "reason": reason})

            async def look() -> bool:
                return reason in (await person.open("/admin/approvals")).text

            await person.act(person.journal.deed("approval.requested", reason, person.email), path, fill, look)
        if person.journal.deed("approval.requested", reason, person.email).least:
            await self._decided(reason, "late_money.resolved")

    async def _decided(self, reason: str, action: str) -> bool:
        """The colleague finds the request by its reason and approves it, or refuses one in five. Whether the act was
        done then."""
        assert self._colleague is not None
        approver = self._colleague.person
        async with approver.lock:
            page = await approver.open("/admin/approvals")
            number = next(
                (found[1] for row in page.text.split("<tr>") if reason in row and (found := _REQUEST.search(row))), None
            )
            if number is None:
                return False
            decision = "refuse" if approver.drawn.random() < 0.2 else "approve"
            approved = await self._decide(approver, number, decision)
            if approved:
                self.person.journal.done(action, reason, self.person.email)
                self.person.journal.counts["money acts approved"] += 1
            return approved

    async def _decide(self, approver: Person, number: str, decision: str) -> bool:
        """Approves or refuses; what cannot be done any more is refused. Whether it was approved."""
        path = f"/admin/approvals/{number}"
        action = {"approve": "approval.approved", "refuse": "approval.refused"}[decision]

        def fill(page: Page) -> Filled:
            if 'value="refuse"' not in page.text:
                return None
            return with_csrf(page, {"act": decision, "reason": f"{decision} {number}"})

        async def look() -> bool:
            return 'value="refuse"' not in (await approver.open(path)).text

        deed = approver.journal.deed(action, number, approver.email)
        await approver.act(deed, path, fill, look)
        if deed.least or decision == "refuse":
            return decision == "approve"
        return await self._decide(approver, number, "refuse")


def is_for_the_console(reference: str) -> bool:
    """Which late results are left to the people in the console while traffic flows."""
    return int(reference[-1], 16) % 2 == 0
