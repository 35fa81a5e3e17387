"""People and what they do, on both databases; only the clock and the limits of attempts are fakes."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from guichet.accounts import users
from guichet.accounts.invitations import Invitation, invite
from guichet.accounts.link_acceptance import accept, count_request, mail_new_password
from guichet.accounts.passwords import Passwords
from guichet.accounts.sessions import Devices
from guichet.accounts.sign_in import Accounts, AttemptKind, Browser, SignedIn, sign_in
from guichet.back_office.merchants import create_merchant
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.accounts import User
from guichet.domain.audit_log import Actor
from guichet.domain.merchants import Merchant
from guichet.domain.roles import MerchantRole, StaffRole
from guichet.mail.messages import text_of
from guichet.mail.outbox import Mail, Outbox
from tests.accounts.totp import code_of
from tests.fakes.clock import ManualClock
from tests.service_fixture import ServiceFixture

PASSWORD = "trois chats dorment"
ACTOR = Actor("Staff", "root")
PHONE = Browser("203.0.113.7", "Firefox sur Android")


@dataclass
class CountedAttempts:
    """Attempts by kind and key; those of a kind in `full` are refused."""

    taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    full: set[str] = field(default_factory=set)

    async def take(self, kind: AttemptKind, key: str) -> int:
        self.taken[kind, key] += 1
        return 60 if kind in self.full else 0


@dataclass
class People:
    accounts: Accounts
    limits: CountedAttempts
    clock: ManualClock

    @property
    def ctx(self) -> AppContext:
        return self.accounts.ctx

    async def merchant(self, name: str = "Boutique Kora") -> Merchant:
        return (await create_merchant(self.ctx, name))[0]

    async def invited(
        self, email: str, merchant: Merchant | None, role: MerchantRole | StaffRole, name: str = "Awa Kossou"
    ) -> str | None:
        """The secret of the link that was mailed."""
        wanted = Invitation(email, name, "fr", role, merchant)
        async with self.ctx.db.transaction() as tx:
            outbox, url, now = self.accounts.outbox, "https://pay.example/console", self.clock.now()
            return (await invite(tx, outbox, wanted, ACTOR, url, now)).secret

    async def joined(
        self, email: str, merchant: Merchant | None = None, role: MerchantRole | StaffRole = "owner"
    ) -> SignedIn:
        """Somebody who accepted an invitation and is signed in."""
        secret = await self.invited(email, merchant or await self.merchant(), role)
        return await accept(self.accounts, require(secret), None, PASSWORD, PHONE)

    async def sign_in(self, email: str, password: str = PASSWORD, browser: Browser = PHONE) -> SignedIn:
        return await sign_in(self.accounts, email, password, browser)

    async def ask_for_password(self, email: str) -> None:
        await count_request(self.accounts, email, PHONE)
        await mail_new_password(self.accounts, email)

    async def user(self, email: str) -> User:
        return require(await users.by_email(self.ctx.db, email))

    async def mails(self) -> list[Mail]:
        """Oldest first."""
        return (await self.accounts.outbox.latest(self.ctx.db))[::-1]

    async def last_link(self) -> str:
        """The secret of the link in the last mail."""
        mail = (await self.mails())[-1]
        found = re.search(r"https?://\S+/([A-Za-z0-9_-]{43})\s", text_of(mail.kind, require(mail.message)).body)
        assert found is not None, mail
        return found[1]

    def code(self, seed: str, steps: int = 0) -> str:
        """What the telephone shows now, or so many codes later."""
        return code_of(seed, self.clock.now(), steps)


@pytest.fixture(scope="session")
def passwords() -> Iterator[Passwords]:
    made = Passwords()
    yield made
    made.close()


@pytest.fixture
async def people(service: ServiceFixture, passwords: Passwords) -> People:
    return _people(service, passwords)


@pytest.fixture
async def sqlite_people(sqlite_service: ServiceFixture, passwords: Passwords) -> People:
    """For what has nothing to do with the kind of database."""
    return _people(sqlite_service, passwords)


def _people(service: ServiceFixture, passwords: Passwords) -> People:
    ctx, limits = service.ctx, CountedAttempts()
    devices = Devices(ctx.settings.secret_keys, ctx.clock)
    address = "https://pay.example/console/password"
    accounts = Accounts(ctx, passwords, devices, Outbox(ctx.vault), limits, address)
    return People(accounts, limits, service.clock)
