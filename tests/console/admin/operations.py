"""Two people of the staff, and live payments with a scripted provider that they look after."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import bindparam, update

from guichet.audit_log import approval_requests, entries
from guichet.clock import DAY, Instant, earlier
from guichet.db.tables import users
from guichet.domain.ids import ApprovalId
from guichet.settings import Settings
from tests.console.conftest import ConsoleBrowser, ConsoleFixture
from tests.console.pages import Page
from tests.payments.conftest import LivePayments, live_payments


@dataclass
class Operations:
    live: LivePayments
    console: ConsoleFixture

    async def staff(
        self, email: str = "awa@example.com", role: str = "finance", *, new: bool = False
    ) -> ConsoleBrowser:
        """Somebody who has been in the staff for a day, so that they may approve; `new`: only since now."""
        browser = await self.console.joined(email, None, role)
        if not new:
            await self.in_staff_since(email, earlier(self.live.ctx.clock.now(), DAY))
        return browser

    async def in_staff_since(self, email: str, since: Instant) -> None:
        await self.live.ctx.db.write(
            update(users).where(users.c.email == bindparam("of")).values(staff_since=bindparam("since")),
            of=email,
            since=since,
        )

    async def acts(self, *actions: str) -> list[tuple[str, str, str, Any]]:
        """(action, actor, subject, after) of the audit log, oldest first; of these actions only."""
        found = reversed(await entries.latest(self.live.ctx.db))
        return [
            (each.action, each.actor, each.subject, msgspec.json.decode(each.after))
            for each in found
            if each.action in actions
        ]

    async def status(self, request: int = 1) -> str | None:
        found = await approval_requests.get(self.live.ctx.db, ApprovalId(request))
        return None if found is None else found.status_at(self.live.ctx.clock.now())


async def open_operations(settings: Settings) -> AsyncIterator[Operations]:
    async for live in live_payments(settings):
        yield Operations(live, ConsoleFixture(live.service))


async def act(browser: ConsoleBrowser, path: str, **fields: str) -> Page:
    """Posts to a page with the token of its forms."""
    page = await browser.get(path)
    assert page.status == 200, page.text
    token = next(form.fields["csrf"] for form in page.forms() if "csrf" in form.fields)
    return await browser.post(path, {"csrf": token, **fields})
