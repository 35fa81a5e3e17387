"""What the people of a merchant's team do in the console: each act is one form, named so that it can be found again."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from guichet.clock import iso
from guichet.pages.days import midnight
from reliability.customers import LinkCustomers
from reliability.journal import Journal
from reliability.merchant import Merchant
from reliability.people.person import Filled, Person, with_csrf
from tests.console.pages import Page

_REFERENCE: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_PAYMENT: Final = re.compile(rf'/payments/({_REFERENCE})"')
_DELIVERY: Final = re.compile(rf'/deliveries/({_REFERENCE})"')
_LINK: Final = re.compile(r"/(?:links|cash-desk)/(\d+)")
_PAY_ADDRESS: Final = re.compile(r'(?:id="address" value="|href=")(https?://[^"]+/pay/[^"]+)"')
_EXPORT: Final = re.compile(r'href="([^"]+/exports/\d+/file)[?"]')
#: Before anything that a trial makes: each export begins on a day of its own, by which it is found again.
_LONG_AGO: Final = date(2024, 1, 2)
#: Looks for a payment that can be refunded.
_PATIENCE: Final = 10
_READS: Final = ("", "/payments", "/links", "/balance", "/activity", "/exports", "/cash-desk")


@dataclass
class Member:
    """Somebody of a merchant's team. `role`: as the console calls it."""

    person: Person
    merchant: Merchant
    role: str
    trial: Journal
    customers: LinkCustomers | None
    time_zone: ZoneInfo
    #: Addresses that this person may invite; each joins the team.
    guests: list[str] = field(default_factory=list)
    _number: int = 0
    _tried: set[str] = field(default_factory=set)

    @property
    def acts(self) -> Sequence[Callable[[], Awaitable[None]]]:
        acts = {
            "cashier": [self.sell, self.link],
            "finance": [self.refund, self.export, self.export_much, self.link, self.look_around],
            "owner": [
                self.refund, self.link, self.sell, self.key, self.rotate, self.resend, self.export, self.export_much,
                self.invite, self.look_around,
            ],
        }  # fmt: skip
        return acts[self.role]

    def _here(self, path: str, env: str = "live") -> str:
        return f"/console/{self.merchant.id}/{env}{path}"

    def _name(self, noun: str) -> str:
        self._number += 1
        return f"{noun} {self._number} de {self.person.email}"

    async def look_around(self) -> None:
        page = await self.person.open(self._here(self.person.drawn.choice(_READS)))
        if page.status != 200:
            self.person.journal.faults.append(f"{self.person.email}: {page.path}: {page.status}")

    async def refund(self) -> None:
        person = self.person
        wanted: list[str] = []
        for _ in range(_PATIENCE):
            page = await person.open(self._here("/payments?status=succeeded"))
            wanted = [each for each in dict.fromkeys(_PAYMENT.findall(page.text)) if each not in self._tried]
            if wanted:
                break
            await asyncio.sleep(0.3)
        else:
            return
        payment = person.drawn.choice(wanted)
        self._tried.add(payment)
        path = self._here(f"/payments/{payment}/refund")

        def fill(page: Page) -> Filled:
            return with_csrf(page, {"reason": "retour"}) if 'name="reason"' in page.text else None

        async def look() -> bool:
            return f"/payments/{payment}/refund" not in (await person.open(self._here(f"/payments/{payment}"))).text

        answer = await person.act(person.journal.deed("refund.requested", payment, person.email), path, fill, look)
        if answer is None or answer.redirected:
            person.journal.counts["refunds by a form"] += 1

    async def link(self) -> None:
        """A new link, which customers then pay; every second one is closed again."""
        name = self._name("Lien")
        kind = {"type": "limité", "max_uses": "5"} if self._number % 4 else {"type": "permanent"}
        await self._new_link(name, "/links/new", "/links", {"amount": "1 500", "description": name, **kind})

    async def sell(self) -> None:
        """A sale at the cash desk: a link for one payment, which is cancelled at times."""
        name = self._name("Vente")
        await self._new_link(name, "/cash-desk", "/cash-desk", {"amount": "750", "description": name})

    async def _new_link(self, name: str, path: str, shown_at: str, values: dict[str, str]) -> None:
        person = self.person
        deed = person.journal.deed("link.created", name, person.email)

        def fill(page: Page) -> Filled:
            return self._here(path), {**page.form("form").fields, **values}

        async def look() -> bool:
            return name in (await person.open(self._here(shown_at))).text

        await person.act(deed, self._here(path), fill, look)
        if not deed.least:
            return
        listed = await person.open(self._here(shown_at))
        rows = re.split(r"<(?:li|tr)\b", listed.text)
        number = next((found[1] for row in rows if name in row and (found := _LINK.search(row))), None)
        if number is None:
            person.journal.faults.append(f"{person.email} does not find {name}")
            return
        page = await person.open(self._here(f"{shown_at}/{number}"))
        if self.customers is not None and (address := _PAY_ADDRESS.search(page.text)):
            self.customers.offer(self.merchant, int(number), urlsplit(address[1]).path)
        if self._number % 2:
            await self._close(name, f"{shown_at}/{number}")

    async def _close(self, name: str, path: str) -> None:
        def fill(page: Page) -> Filled:
            # A sale that was paid meanwhile, or a link that was used up, has no such form.
            return with_csrf(page, {}) if 'class="btn no"' in page.text else None

        person = self.person
        await person.act(person.journal.deed("link.closed", name, person.email), self._here(path), fill)

    async def key(self) -> None:
        """A key for tests: made, given an end, revoked. The trial's own key stays."""
        person, path = self.person, self._here("/developers", "test")
        page = await person.open(path)
        before = page.form("after").fields["after"]

        def create(page: Page) -> Filled:
            form = page.form("after").fields
            return (path, {**form, "act": "create", "expires": ""}) if form["after"] == before else None

        async def look() -> bool:
            return (await person.open(path)).form("after").fields["after"] != before

        deed = person.journal.deed("key.created", f"{self.merchant.id}/{before}", person.email)
        await person.act(deed, path, create, look)
        number = (await person.open(path)).form("after").fields["after"]
        if number == before:
            return
        for action, values in (
            ("key.expiry_set", {"act": "expire", "expires": "2099-12-31"}),
            ("key.revoked", {"act": "revoke", "confirm": "yes"}),
        ):
            fields = {"key": number, **values}

            def change(page: Page, fields: dict[str, str] = fields) -> Filled:
                return path, {**page.form("after").fields, **fields}

            await person.act(person.journal.deed(action, number, person.email), path, change)

    async def rotate(self) -> None:
        """Another secret for webhooks of the test environment, where none are sent."""
        person, path = self.person, self._here("/webhooks", "test")
        deed = person.journal.deed("webhook_secret.rotated", f"{self.merchant.id} test", person.email)
        await person.act(deed, path, lambda page: with_csrf(page, {"act": "rotate"}), once=False)

    async def resend(self) -> None:
        person = self.person
        page = await person.open(self._here("/webhooks/deliveries?status=delivered"))
        known = [each for each in dict.fromkeys(_DELIVERY.findall(page.text)) if each not in self._tried]
        if not known:
            return
        delivery = person.drawn.choice(known)
        self._tried.add(delivery)

        def fill(page: Page) -> Filled:
            return with_csrf(page, {}) if page.text.count('<form method="post">') else None

        path = self._here(f"/webhooks/deliveries/{delivery}")
        deed = person.journal.deed("delivery.resent", delivery, person.email)
        await person.act(deed, path, fill, once=False)

    async def export(self) -> None:
        """Few rows: the file comes at once."""
        await self._export("live", self.person.drawn.choice(("payments", "refunds", "movements")))

    async def export_much(self) -> None:
        """More rows than are written while they are downloaded: the worker prepares the file."""
        await self._export("test", "payments")

    async def _export(self, env: str, kind: str) -> None:
        person, path = self.person, self._here("/exports", env)
        self._number += 1
        # A colleague's exports stand in the same list, and begin on other days.
        begins = _LONG_AGO + timedelta(days=2 * self._number + (self.role == "owner"))
        written_as = person.drawn.choice(("csv", "csv", "xlsx"))
        about = f"{self.merchant.id}/{env}/{kind}/{written_as}/{iso(midnight(begins, self.time_zone))}"

        def fill(page: Page) -> Filled:
            values = {"kind": kind, "format": written_as, "from": begins.isoformat()}
            return path, {**page.form("from").fields, **values, "currency": "XOF"}

        async def look() -> bool:
            return begins.isoformat() in (await person.open(path)).text

        deed = person.journal.deed("export.requested", f"{about}/{person.email}", person.email)
        answer = await person.act(deed, path, fill, look, once=False)
        if answer is not None and answer.redirected and answer.page.path.endswith("/file"):
            person.journal.downloads[answer.page.path] += 1

    async def fetch_exports(self, env: str) -> dict[str, bytes]:
        """Every file that this person may still download, by its path."""
        listed = await self.person.open(self._here("/exports", env))
        found = {}
        for path in dict.fromkeys(_EXPORT.findall(listed.text)):
            page = await self.person.open(path)
            if page.status != 200:
                self.person.journal.faults.append(f"{path}: {page.status}")
                continue
            self.person.journal.downloads[path] += 1
            found[path] = page.content
        return found

    async def invite(self) -> None:
        if not self.guests:
            return
        person, path, email = self.person, self._here("/team"), self.guests.pop()

        def fill(page: Page) -> Filled:
            form = page.form("name", "email").fields
            return path, {**form, "act": "invite", "name": "Kofi Adjei", "email": email, "role": "cashier"}

        async def look() -> bool:
            return email in (await person.open(path)).text

        await person.act(person.journal.deed("user.invited", email, person.email), path, fill, look, once=False)
