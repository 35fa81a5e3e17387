"""Staff in the back office, and what they cannot do by an ordinary form: sending files."""

import io
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType

import aiohttp
import pytest

from guichet.audit_log import entries
from guichet.audit_log.entries import Entry
from guichet.settings import Settings
from tests.console.admin.operations import Operations, open_operations
from tests.console.conftest import ConsoleBrowser, ConsoleFixture
from tests.console.pages import Page


class Staff:
    """Members of the staff at their browsers, by role, each signed in at the first use."""

    def __init__(self, console: ConsoleFixture) -> None:
        self.console = console
        self._browsers: dict[str, ConsoleBrowser] = {}

    async def browser(self, role: str) -> ConsoleBrowser:
        if role not in self._browsers:
            self._browsers[role] = await self.console.joined(f"{role}@guichet.example", None, role)
        return self._browsers[role]

    async def acts(self) -> list[Entry]:
        """The audit log, newest first."""
        return await entries.latest(self.console.service.ctx.db)

    async def last_act(self, action: str) -> Entry:
        return next(entry for entry in await self.acts() if entry.action == action)


async def csrf_of(browser: ConsoleBrowser) -> str:
    """The token of the session's forms, from a page that everybody has."""
    page = await browser.get("/console/security")
    return page.forms()[0].fields["csrf"]


async def upload(
    browser: ConsoleBrowser,
    path: str,
    content: bytes,
    name: str = "a.pdf",
    csrf: str | None = None,
    fields: Mapping[str, str] = MappingProxyType({}),
) -> Page:
    """Posts a file as a browser does, after `fields`; the page after the redirect, if there is one."""
    form = aiohttp.FormData(quote_fields=False)
    form.add_field("csrf", await csrf_of(browser) if csrf is None else csrf)
    for field, value in fields.items():
        form.add_field(field, value)
    form.add_field("file", io.BytesIO(content), filename=name, content_type="application/pdf")
    cookies = "; ".join(f"{key}={value}" for key, value in browser.cookies.items())
    headers = {**browser.sends, "Cookie": cookies}
    service = browser.service
    async with service.client.post(
        service.base_url + path, data=form, headers=headers, allow_redirects=False
    ) as answer:
        text = await answer.text()
        if answer.status == 303:
            return await browser.get(answer.headers["Location"])
        return Page(answer.status, path, text, answer.headers)


@pytest.fixture
async def staff(console: ConsoleFixture) -> Staff:
    return Staff(console)


@pytest.fixture
async def sqlite_staff(sqlite_console: ConsoleFixture) -> Staff:
    """For what has nothing to do with the kind of database."""
    return Staff(sqlite_console)


@pytest.fixture
async def operations(settings: Settings) -> AsyncIterator[Operations]:
    async for each in open_operations(settings):
        yield each


@pytest.fixture
async def sqlite_operations(sqlite_settings: Settings) -> AsyncIterator[Operations]:
    """For what has nothing to do with the kind of database."""
    async for each in open_operations(sqlite_settings):
        yield each
