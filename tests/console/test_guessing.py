"""Guessing passwords and codes: what unknown browsers may try, and that a known one goes on."""

import asyncio
import re
from collections import Counter
from dataclasses import replace

from guichet.db.engine import require
from guichet.mail.messages import text_of
from guichet.settings import Settings
from tests.accounts.totp import code_of
from tests.console.conftest import PASSWORD, ConsoleBrowser, ConsoleFixture
from tests.service_fixture import ServiceFixture, open_service

AWA = "awa@example.com"
DEVICE = "guichet-device"
HOME = "/console/1/live"
OTHER = "quatre chiens aboient"
HOUR = 3600


async def owner_with_codes(console: ConsoleFixture) -> tuple[ConsoleBrowser, str]:
    """The owner's browser, signed out, and the seed of the telephone."""
    browser = console.browser()
    await browser.get(await console.invited(AWA, await console.merchant()))
    await browser.submit("password", password=PASSWORD, name="Awa Kossou")
    seed = await console.set_up(browser)
    await browser.get("/console")
    await browser.submit("csrf")
    return browser, seed


async def statuses(browser: ConsoleBrowser, attempts: int) -> list[int]:
    """Of wrong codes, each from the page that is shown."""
    return [(await browser.submit("code", code="000000")).status for _ in range(attempts)]


async def mails_of(console: ConsoleFixture, kind: str) -> list[str]:
    return [text_of(each.kind, require(each.message)).body for each in await console.mails() if each.kind == kind]


async def mailed(console: ConsoleFixture, kind: str) -> str:
    """The only mail of this kind, which is queued after the answer."""
    while not (found := await mails_of(console, kind)):
        await asyncio.sleep(0.01)
    [text] = found
    return text


def patient(settings: Settings) -> Settings:
    """The limit of an address is not what is tried here."""
    return replace(settings, page_rate_limit=600)


async def sign_in_as(service: ServiceFixture, password: str = PASSWORD) -> ConsoleBrowser:
    browser = ConsoleFixture(service).browser()
    await browser.sign_in(AWA, password)
    return browser


async def test_who_knows_the_password_has_twenty_codes_a_day_and_blocks_nobody(settings: Settings) -> None:
    async with open_service(patient(settings)) as service:
        console = ConsoleFixture(service)
        owner, seed = await owner_with_codes(console)
        tried: Counter[int] = Counter()
        for _ in range(4):  # Each in a browser of its own, which a password alone makes known to nobody.
            thief = await sign_in_as(service)
            assert DEVICE not in thief.cookies
            tried.update(await statuses(thief, 7))
        assert tried == {422: 20, 429: 8}
        assert "navigateurs inconnus" in thief.page.text
        [told] = await mails_of(console, "attempts_used_up")
        assert "connaît votre mot de passe" in told
        for hours in (1, 22):
            service.clock.advance(hours * HOUR)
            thief = await sign_in_as(service)
            assert await statuses(thief, 1) == [429], "nor in a quarter of an hour"
        assert len(await mails_of(console, "attempts_used_up")) == 1, "once a day"
        await owner.sign_in(AWA)
        page = await owner.submit("code", code=code_of(seed, service.clock.now()))
        assert (page.status, page.path) == (200, HOME), "the browser that is known"
        service.clock.advance(2 * HOUR)
        assert await statuses(await sign_in_as(service), 1) == [422], "the next day"


async def test_strangers_have_twenty_passwords_a_day_and_the_person_is_told(sqlite_settings: Settings) -> None:
    async with open_service(patient(sqlite_settings)) as service:
        console = ConsoleFixture(service)
        owner = await console.joined(AWA, await console.merchant(), "reader")
        await owner.get(HOME)
        await owner.submit("csrf")
        pages = {}
        for email in (AWA, "nobody@example.com"):
            guesses = [
                (await console.browser().sign_in(email, f"wrong password {number}")).status for number in range(22)
            ]
            assert guesses == [422] * 20 + [429] * 2, email
            stranger = console.browser()
            pages[email] = (await stranger.sign_in(email)).text.replace(email, "…")
            assert stranger.page.status == 429, "even with the right password"
            assert int(stranger.page.headers["Retry-After"]) > 23 * HOUR
            # The sixty of an address are not what is tried here.
            service.clock.advance(16 * 60)
        assert pages[AWA] == pages["nobody@example.com"]
        told = await mailed(console, "attempts_used_up")
        assert "Personne n’est entré" in told
        assert (await owner.sign_in(AWA)).path == HOME
        service.clock.advance(12 * HOUR)
        assert (await console.browser().sign_in(AWA, "wrong")).status == 429


async def test_a_known_browser_counts_its_own_attempts(sqlite_settings: Settings) -> None:
    async with open_service(patient(sqlite_settings)) as service:
        console = ConsoleFixture(service)
        owner, seed = await owner_with_codes(console)
        other = await sign_in_as(service)
        await other.submit("code", code=code_of(seed, service.clock.now()))
        assert DEVICE in other.cookies, "a browser is known once it has given both factors"
        await owner.sign_in(AWA)
        assert await statuses(owner, 9) == [422] * 8 + [429]
        service.clock.advance(60)
        other.cookies.pop("guichet-session")
        await other.sign_in(AWA)
        assert (await other.submit("code", code=code_of(seed, service.clock.now()))).path == HOME
        await owner.get("/console/factor")
        service.clock.advance(15 * 60)
        assert (await owner.submit("code", code=code_of(seed, service.clock.now()))).path == HOME
        assert await mails_of(console, "attempts_used_up") == []


async def test_a_new_password_makes_other_browsers_unknown(sqlite_settings: Settings) -> None:
    """Who knew the password could otherwise collect cookies, and guess the next one with each."""
    async with open_service(patient(sqlite_settings)) as service:
        console = ConsoleFixture(service)
        owner = await console.joined(AWA, await console.merchant(), "reader")
        thieves = [await sign_in_as(service) for _ in range(3)]
        assert all(DEVICE in thief.cookies for thief in thieves)
        known = owner.cookies[DEVICE]
        await owner.get("/console/security/password")
        await owner.submit("present", "password", present=PASSWORD, password=OTHER)
        assert owner.cookies[DEVICE] != known
        assert owner.cookies[DEVICE].partition(".")[0] == known.partition(".")[0], "its attempts are counted on"
        guesses: list[int] = []
        for thief in thieves:
            guesses += [(await thief.sign_in(AWA, f"wrong password {number}")).status for number in range(9)]
        # The three that signed in above count for the same day.
        assert guesses == [422] * 17 + [429] * 10
        owner.cookies.pop("guichet-session")
        assert (await owner.sign_in(AWA, OTHER)).path == HOME


async def test_a_cookie_that_a_password_earned_counts_for_no_code(sqlite_settings: Settings) -> None:
    async with open_service(patient(sqlite_settings)) as service:
        console = ConsoleFixture(service)
        owner = await console.joined(AWA, await console.merchant(), "reader")
        thieves = [await sign_in_as(service) for _ in range(3)]
        assert all(DEVICE in thief.cookies for thief in thieves)
        await owner.get("/console/factor/setup")
        await console.set_up(owner)
        tried: list[int] = []
        for thief in thieves:
            thief.cookies.pop("guichet-session")
            await thief.sign_in(AWA)
            tried += await statuses(thief, 8)
        assert tried == [422] * 20 + [429] * 4


async def test_a_known_browser_stays_known_when_a_mail_brings_a_new_password(sqlite_settings: Settings) -> None:
    async with open_service(patient(sqlite_settings)) as service:
        console = ConsoleFixture(service)
        owner, seed = await owner_with_codes(console)
        thief = await sign_in_as(service)
        await statuses(thief, 21)
        await owner.get("/console/password")
        await owner.submit("email", email=AWA)
        link = re.search(r"https?://[^/]+(/\S+)", await mailed(console, "password"))
        await owner.get(require(link)[1])
        page = await owner.submit("password", password=OTHER)
        assert page.path == "/console/factor"
        assert (await owner.submit("code", code=code_of(seed, service.clock.now()))).path == HOME
