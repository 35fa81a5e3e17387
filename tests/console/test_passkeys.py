"""Passkeys against hostile answers: none is taken twice, late, for another person, from another site or of a copy."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from guichet.accounts import factors, passkeys
from guichet.accounts.passkeys import CHALLENGE_LASTS, MOST_PASSKEYS
from guichet.clock import SECOND
from guichet.db.tables import passkey_challenges
from guichet.domain.accounts import UserId
from tests.console.conftest import ConsoleBrowser, ConsoleFixture
from tests.fakes.passkey_device import PasskeyDevice

REFUSED = "pas été acceptée"


@pytest.fixture
def device(console: ConsoleFixture) -> PasskeyDevice:
    site = console.service.ctx.settings.browser_url
    return PasskeyDevice(site.partition("://")[2].partition(":")[0].partition("/")[0], site)


async def question(browser: ConsoleBrowser, csrf: str = "", act: str = "use") -> Any:
    return json.loads((await browser.post("/console/passkey/question", {"csrf": csrf, "act": act})).text)


async def add(browser: ConsoleBrowser, device: PasskeyDevice, name: str = "Téléphone") -> str:
    """The text of the security page afterwards."""
    csrf = await token(browser)
    made = device.make(await question(browser, csrf, "make"))
    form = {"csrf": csrf, "act": "add_passkey", "answer": made, "name": name}
    return (await browser.post("/console/security", form)).text


async def token(browser: ConsoleBrowser) -> str:
    return (await browser.get("/console/security")).forms()[0].fields["csrf"]


async def answer(browser: ConsoleBrowser, given: str, csrf: str = "") -> str:
    return (await browser.post("/console/passkey", {"csrf": csrf, "answer": given})).text


@pytest.mark.both_databases
async def test_an_answer_counts_once_in_time_for_this_site_and_only_from_the_key_itself(
    console: ConsoleFixture, device: PasskeyDevice
) -> None:
    owner = await console.joined("awa@example.com", await console.merchant())
    assert "jamais utilisée" in await add(owner, device)
    stranger = console.browser()
    good = device.use(await question(stranger))
    assert REFUSED not in await answer(stranger, good)
    assert (await stranger.get("/console/security")).status == 200
    assert "utilisée le" in stranger.page.text

    def copy(**changes: Any) -> PasskeyDevice:
        return replace(device, **changes)

    thief = console.browser()
    assert REFUSED in await answer(thief, good), "replayed"
    for other in (
        copy(origin="https://guichet.example.net"),
        copy(host="example.net"),
        copy(verifies=False),
        copy(count=0),
        copy(key=PasskeyDevice("", "").key),
        copy(credential=b"unknown"),
    ):
        assert REFUSED in await answer(thief, other.use(await question(thief)))
    asked = await question(thief)
    console.service.clock.advance(CHALLENGE_LASTS / SECOND)
    assert REFUSED in await answer(thief, copy(count=9).use(asked)), "too late"
    nonsense = '{"id":"a","response":{"clientDataJSON":"!"}}'
    for text in ("", "{}", "[]", "null", '{"id": 1}', nonsense, "é" * 99):
        assert REFUSED in await answer(thief, text)
    assert (await thief.get("/console/security")).path.startswith("/console/sign-in")


@pytest.mark.both_databases
async def test_a_key_belongs_to_one_person(console: ConsoleFixture, device: PasskeyDevice) -> None:
    merchant = await console.merchant()
    awa, ada = await console.joined("awa@example.com", merchant), await console.joined("ada@example.com", merchant)
    await add(awa, device)
    assert REFUSED in await add(ada, device), "the same key twice"
    csrf = await token(ada)
    assert REFUSED in await answer(ada, device.use(await question(ada, csrf)), csrf), "somebody else's second factor"
    theirs = replace(device, credential=b"another").make(await question(awa, await token(awa), "make"))
    form = {"csrf": csrf, "act": "add_passkey", "name": "x", "answer": theirs}
    assert REFUSED in (await ada.post("/console/security", form)).text, "the answer to somebody else's question"
    await ada.post("/console/security", {"csrf": csrf, "act": "remove_passkey", "passkey": "1"})
    assert "Téléphone" in (await awa.get("/console/security")).text


async def test_a_person_has_so_many_keys_and_a_reset_removes_them(
    sqlite_console: ConsoleFixture,
) -> None:
    site = sqlite_console.service.ctx.settings.browser_url
    device = PasskeyDevice(site.partition("://")[2].partition(":")[0].partition("/")[0], site)
    owner = await sqlite_console.joined("awa@example.com", await sqlite_console.merchant())
    for number in range(MOST_PASSKEYS):
        await add(owner, replace(device, credential=b"key %d" % number), f"Clé {number}")
    csrf = await token(owner)
    assert owner.page.text.count("jamais utilisée") == MOST_PASSKEYS
    refused = await owner.post("/console/passkey/question", {"csrf": csrf, "act": "make"})
    assert "le plus grand nombre" in refused.text
    async with sqlite_console.service.ctx.db.transaction() as tx:
        await factors.remove_all(tx, UserId(1), sqlite_console.service.clock.now())
    assert await passkeys.of_user(sqlite_console.service.ctx.db, UserId(1)) == []


@pytest.mark.both_databases
async def test_only_answers_are_stored(console: ConsoleFixture, device: PasskeyDevice) -> None:
    """Anybody may ask for questions: three hundred of them make no row, nor do refused answers."""
    owner = await console.joined("awa@example.com", await console.merchant())
    await add(owner, device)
    stored = await console.service.ctx.db.all(select(passkey_challenges.c.id))
    stranger = console.browser()
    for _ in range(300):
        question_page = await stranger.post("/console/passkey/question", {"csrf": "", "act": "use"})
        assert question_page.status in (200, 429)
    assert REFUSED in await answer(stranger, replace(device, origin="https://x.example").use(await question(stranger)))
    assert await console.service.ctx.db.all(select(passkey_challenges.c.id)) == stored
    assert REFUSED not in await answer(stranger, device.use(await question(stranger)))
    assert len(await console.service.ctx.db.all(select(passkey_challenges.c.id))) == len(stored) + 1


@pytest.mark.both_databases
async def test_a_question_is_for_one_browser_and_an_answer_counts_once_in_a_race(
    console: ConsoleFixture, device: PasskeyDevice
) -> None:
    owner = await console.joined("awa@example.com", await console.merchant())
    await add(owner, device)
    asked, other = console.browser(), console.browser()
    good = device.use(await question(asked))
    assert REFUSED in await answer(other, good), "no cookie"
    await question(other)
    assert REFUSED in await answer(other, good), "the cookie of another question"
    asked.cookies["guichet-passkey"], cookie = "A" * 43, asked.cookies["guichet-passkey"]
    assert REFUSED in await answer(asked, good), "a cookie of one's own choice"
    browsers = [replace(asked, cookies={"guichet-passkey": cookie}) for _ in range(6)]
    texts = await asyncio.gather(*(answer(each, good) for each in browsers))
    assert sum(REFUSED not in text for text in texts) == 1
    forged = {"challenge": "QUFBQQ"}
    assert REFUSED in await answer(asked, device.use(forged)), "no question of ours"


async def test_whose_session_ended_is_sent_to_sign_in(sqlite_console: ConsoleFixture) -> None:
    stranger = sqlite_console.browser()
    refused = await stranger.ask("POST", "/console/passkey/question", {"act": "make"})
    assert (refused.status, refused.headers["Location"].partition("?")[0]) == (303, "/console/sign-in")
