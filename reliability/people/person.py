"""Somebody with an account: accepts the invitation, signs in by the real forms, gives codes of a telephone, and sends
forms as people do whose connection is cut."""

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyotp

from reliability.people.browser import Answered, Browser
from reliability.people.journal import Deed, PeopleJournal
from tests.console.pages import Page

_SEED: Final = re.compile(r'class="mono-text">([A-Z2-7 ]+)<')
_STEP: Final = 30  # seconds of a code
_BUSY: Final = (429, 503)
#: Seconds in which PostgreSQL may still commit what a killed server sent; the old cookie works until then.
_COMMIT_LATE: Final = 30
#: Pages on which somebody proves who they are, instead of the one that was asked for.
_SIGN_IN: Final = "/console/sign-in"
_SET_UP: Final = "/console/factor/setup"
_FACTOR: Final = "/console/factor"

#: What a form is sent with: its address and its fields. None: there is nothing to do here any more.
Filled = tuple[str, dict[str, str]] | None


@dataclass
class Person:
    email: str
    browser: Browser
    journal: PeopleJournal
    drawn: random.Random
    password: str = "trois chats dorment"
    #: Of the telephone, in base 32; None: no second factor.
    seed: str | None = None
    #: One thing at a time at this browser.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _last_step: int = 0
    #: Whether an answer with a new cookie was lost: whoever gave a code then has to sign in again (docs/security.md).
    _cookie_lost: bool = True
    #: When it was lost (`time.monotonic()`).
    _lost_at: float = 0

    async def join(self, path: str) -> None:
        """Accepts the invitation, once, however often its answers are lost."""
        while True:
            page = await self.browser.get(path)
            if page.status == 410:  # An answer was lost: the account has its password.
                break
            form = page.form("password")
            answer = await self.browser.post(path, {**form.fields, "password": self.password, "name": "Awa Kossou"})
            if answer is not None and answer.redirected:
                break
            if answer is not None and answer.status not in _BUSY:
                self.journal.faults.append(f"{self.email} could not join: {answer.status}")
                return
            await asyncio.sleep(0.2)
        self.journal.done("user.invitation_used", self.email, self.email)
        await self.open("/console")

    async def open(self, path: str) -> Page:
        """The page, after whatever must be proved first."""
        while True:
            page = await self.browser.get(path)
            if page.path.startswith((_SIGN_IN, _FACTOR)):
                await self._prove(page)
                continue
            if page.status not in _BUSY:
                if time.monotonic() - self._lost_at > _COMMIT_LATE:
                    self._cookie_lost = False
                return page
            await asyncio.sleep(1)

    async def _prove(self, page: Page) -> None:
        """What this page asks for."""
        if page.path.startswith(_SIGN_IN):
            await self._sign_in(page)
        elif page.path.startswith(_SET_UP):
            await self._set_up(page)
        else:
            await self._give_code(page)

    async def sign_out(self) -> None:
        page = await self.open("/console/security")
        self._answered(await self.browser.post("/console/sign-out", {"csrf": csrf_of(page)}))
        self._cookie_lost = True

    async def _sign_in(self, page: Page) -> None:
        if not self._cookie_lost:
            self.journal.faults.append(f"{self.email} was signed out by nobody")
        self._cookie_lost = True
        fields = {**page.form("email", "password").fields, "email": self.email, "password": self.password}
        answer = await self.browser.post(_SIGN_IN, fields)
        self.journal.counts["sign-ins"] += 1
        if answer is not None and not answer.redirected:
            if answer.status not in _BUSY:
                self.journal.faults.append(f"{self.email} could not sign in: {answer.status}")
            await asyncio.sleep(2)

    async def _set_up(self, page: Page) -> None:
        found = _SEED.search(page.text)
        assert found is not None, page.path
        self.seed = found[1].replace(" ", "")
        answer = await self.browser.post(_SET_UP, {**page.form("code").fields, "code": await self._code()})
        self._answered(answer)
        self.journal.done("user.factor_added", self.email, self.email)

    async def _give_code(self, page: Page) -> None:
        answer = await self.browser.post(_FACTOR, {**page.form("code").fields, "code": await self._code()})
        self.journal.counts["codes given"] += 1
        self._answered(answer)
        if answer is not None and not answer.redirected:
            self.journal.counts[f"codes refused: {answer.status}"] += 1
            await asyncio.sleep(2)

    def _answered(self, answer: Answered | None) -> None:
        """To a form that changes the cookie. A refusal gives none and proves nothing: what a killed server sent before
        may have been committed in the same moment."""
        if answer is None:
            self._cookie_lost, self._lost_at = True, time.monotonic()
        elif answer.redirected and not answer.place.startswith(_SIGN_IN):
            self._cookie_lost = False

    async def _code(self) -> str:
        """A code that was never sent before: each counts once, and what became of a lost form nobody knows."""
        assert self.seed is not None
        step = max(self._last_step + 1, int(time.time()) // _STEP - 1)
        while step > int(time.time()) // _STEP + 1:
            await asyncio.sleep(0.2)
        self._last_step = step
        return pyotp.TOTP(self.seed).generate_otp(step)

    async def act(
        self,
        deed: Deed,
        path: str,
        fill: Callable[[Page], Filled],
        look: Callable[[], Awaitable[bool]] | None = None,
        *,
        once: bool = True,
        send: Callable[[str, Mapping[str, str]], Awaitable[Answered | None]] | None = None,
    ) -> Answered | None:
        """Opens a page and sends its form. Without an answer, the person looks whether it was done, or sends the same
        form again. `once`: the form acts once however often it is sent. `send`: instead of sending it once. What it was
        answered with in the end; None if there was nothing to do, or a look found it done."""
        filled, unanswered, send = None, False, send or self.browser.post
        while True:
            if filled is None:
                filled = fill(await self.open(path))
                if filled is None:
                    await self._look_again(deed, look if unanswered else None)
                    return None
            deed.most = 1 if once else deed.most + 1
            answer = await send(*filled)
            if answer is None:
                self.journal.counts["forms without an answer"] += 1
                unanswered = True
                await asyncio.sleep(self.drawn.uniform(0.1, 0.4))
                if once and (look is None or self.drawn.random() < 0.5):
                    self.journal.counts["forms sent again"] += 1
                    continue
                if look is not None and await look():
                    deed.least = 1 if once else deed.least + 1
                    return None
                filled = None
            elif answer.place.startswith((_FACTOR, _SIGN_IN)):
                if not (once and unanswered):
                    deed.most -= 1
                await self._prove(answer.page)
                filled = None
            elif answer.redirected or answer.status == 200:
                deed.least = 1 if once else deed.least + 1
                return answer
            elif answer.status in _BUSY:
                await asyncio.sleep(1)
            else:
                await self._refused(deed, answer, look, unanswered=unanswered, once=once)
                return answer

    async def _look_again(self, deed: Deed, look: Callable[[], Awaitable[bool]] | None) -> None:
        """There is nothing to do any more: a form without an answer did it, a moment after the last look."""
        if look is not None and await look():
            deed.least = max(deed.least, 1)

    async def _refused(
        self,
        deed: Deed,
        answer: Answered,
        look: Callable[[], Awaitable[bool]] | None,
        *,
        unanswered: bool,
        once: bool,
    ) -> None:
        """Refused by itself, or because an answer was lost and it has been done."""
        if answer.status != 409:
            self.journal.faults.append(f"{self.email}: {deed.action} {deed.about}: {answer.status}")
        self.journal.counts[f"{deed.action} refused"] += 1
        if not (once and unanswered):
            deed.most -= 1
        elif once and look is not None and await look():
            deed.least = 1


def csrf_of(page: Page) -> str:
    """The token of the session's forms."""
    return next(form.fields["csrf"] for form in page.forms() if "csrf" in form.fields)


def with_csrf(page: Page, fields: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """A form of this page that is sent to its own address."""
    return page.path.partition("?")[0], {"csrf": csrf_of(page), **fields}
