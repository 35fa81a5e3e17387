"""A browser's part in the console, over real HTTP: cookies, forms as the pages show them, redirects."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from guichet.accounts import users
from guichet.accounts.factors import begin_totp
from guichet.accounts.invitations import Invitation, invite
from guichet.accounts.link_acceptance import accept
from guichet.accounts.own_account import add_telephone
from guichet.accounts.passwords import Passwords
from guichet.accounts.sessions import Devices
from guichet.accounts.sign_in import Accounts, Browser, state_of
from guichet.console.cookies import DEVICE, SESSION
from guichet.console.sign_in_limits import SignInLimits
from guichet.db.engine import require
from guichet.domain.audit_log import Actor
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Merchant
from guichet.mail.messages import text_of
from guichet.mail.outbox import Mail, Outbox
from guichet.merchants import repository as merchants
from guichet.pages.cookies import HostCookies
from guichet.server.rate_limit import RateLimiter
from tests.accounts.totp import code_of
from tests.console.pages import Page
from tests.service_fixture import ServiceFixture

PASSWORD = "trois chats dorment"
_PASSWORDS: Final = Passwords()


@dataclass
class ConsoleBrowser:
    """Follows redirects as a browser does, and says that its forms come from our own pages."""

    service: ServiceFixture
    cookies: dict[str, str] = field(default_factory=dict)
    sends: dict[str, str] = field(default_factory=lambda: {"Sec-Fetch-Site": "same-origin", "User-Agent": "Firefox"})
    page: Page = field(default_factory=lambda: Page(0, "", "", {}))

    async def get(self, path: str) -> Page:
        return await self._follow("GET", path, None)

    async def submit(self, *with_fields: str, **values: str) -> Page:
        """Sends the form of the present page that has these fields, with `values` typed in."""
        form = self.page.form(*with_fields)
        return await self.post(form.action or self.page.path, {**form.fields, **values})

    async def post(self, path: str, fields: Mapping[str, str]) -> Page:
        return await self._follow("POST", path, fields)

    async def _follow(self, method: str, path: str, fields: Mapping[str, str] | None) -> Page:
        for _ in range(6):
            self.page = await self.ask(method, path, fields)
            if self.page.status != 303:
                return self.page
            # The public address of the settings stands for this server.
            place = self.page.headers["Location"].removeprefix(self.service.ctx.settings.public_url)
            method, path, fields = "GET", place.removeprefix(self.service.base_url), None
        raise AssertionError(f"redirected in circles: {path}")

    async def ask(self, method: str, path: str, fields: Mapping[str, str] | None = None) -> Page:
        """One request, whose redirect is not followed."""
        headers = {**self.sends, "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        async with self.service.client.request(
            method, self.service.base_url + path, data=fields, headers=headers, allow_redirects=False
        ) as answer:
            for morsel in answer.cookies.values():
                if morsel.value and morsel["max-age"] != "0":
                    self.cookies[morsel.key] = morsel.value
                else:
                    self.cookies.pop(morsel.key, None)
            content = await answer.read()
            return Page(answer.status, path, content.decode("utf-8", "replace"), answer.headers, content)

    async def sign_in(self, email: str, password: str = PASSWORD) -> Page:
        await self.get("/console/sign-in")
        return await self.submit("email", "password", email=email, password=password)


@dataclass
class ConsoleFixture:
    service: ServiceFixture

    def browser(self) -> ConsoleBrowser:
        # A clean client: the browser keeps its cookies itself.
        self.service.client.cookie_jar.clear()
        return ConsoleBrowser(self.service)

    async def merchant(self, name: str = "Boutique Kora") -> Merchant:
        client = await self.service.merchant(name)
        return require(await merchants.get(self.service.ctx.db, client.id))

    async def merchant_of(self, merchant_id: MerchantId) -> Merchant:
        return require(await merchants.get(self.service.ctx.db, merchant_id))

    async def invited(self, email: str, merchant: Merchant | None, role: Any = "owner") -> str:
        """The path of the link in the invitation's mail."""
        await self._invite(email, merchant, role)
        return await self.last_link()

    async def _invite(self, email: str, merchant: Merchant | None, role: Any) -> str | None:
        """The secret of the link."""
        ctx, site = self.service.ctx, f"{self.service.base_url}/console"
        wanted = Invitation(email, "Awa Kossou", "fr", role, merchant)
        async with ctx.db.transaction() as tx:
            return (await invite(tx, Outbox(ctx.vault), wanted, Actor("Staff", "root"), site, ctx.clock.now())).secret

    async def mails(self) -> list[Mail]:
        """Newest first."""
        return await Outbox(self.service.ctx.vault).latest(self.service.ctx.db)

    async def last_link(self) -> str:
        """The path of the link in the last mail."""
        mail = (await self.mails())[0]
        found = re.search(r"https?://[^/]+(/\S+)", text_of(mail.kind, require(mail.message)).body)
        assert found is not None
        return found[1]

    async def joined(self, email: str, merchant: Merchant | None, role: Any = "owner") -> ConsoleBrowser:
        """A browser of somebody who accepted an invitation, with a second factor if the role needs one; by what is
        behind the pages, which other tests open."""
        browser, ctx, clock = self.browser(), self.service.ctx, self.service.clock
        devices, limits = Devices(ctx.settings.secret_keys, clock), SignInLimits(RateLimiter(None, clock))
        accounts = Accounts(ctx, _PASSWORDS, devices, Outbox(ctx.vault), limits, "")
        asking = Browser("127.0.0.1", browser.sends["User-Agent"])
        secret = require(await self._invite(email, merchant, role))
        signed = await accept(accounts, secret, "Awa Kossou", PASSWORD, asking)
        if state_of(signed.session, signed.user, () if merchant is None else (role,)) == "needs_setup":
            seed, user_id = await begin_totp(ctx, signed.user), signed.user.id
            user, code = require(await users.get(ctx.db, user_id)), code_of(seed, clock.now())
            actor = Actor(email, "console")
            signed, _ = await add_telephone(accounts, user, signed.session, code, actor, asking)
            clock.advance(60)
        cookies = HostCookies(secure=ctx.settings.public_url.startswith("https"))
        for cookie, value in ((SESSION, signed.secret), (DEVICE, signed.device)):
            if value is not None:
                browser.cookies[cookies.full_name(cookie)] = value
        return browser

    async def set_up(self, browser: ConsoleBrowser) -> str:
        """Gives the first code of the set-up page that the browser shows; the telephone's seed."""
        found = re.search(r'class="mono-text">([A-Z2-7 ]+)<', browser.page.text)
        assert found is not None
        seed = found[1].replace(" ", "")
        await browser.submit("code", code=code_of(seed, self.service.clock.now()))
        self.service.clock.advance(60)
        return seed


@pytest.fixture
async def console(service: ServiceFixture) -> ConsoleFixture:
    return ConsoleFixture(service)


@pytest.fixture
async def sqlite_console(sqlite_service: ServiceFixture) -> ConsoleFixture:
    """For what has nothing to do with the kind of database."""
    return ConsoleFixture(sqlite_service)
