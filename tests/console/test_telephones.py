"""First telephones, new telephones and recovery codes: when their pages show a seed, and what is mailed."""

import re

import pytest
from sqlalchemy import select

from guichet.audit_log import entries as audit_log
from guichet.db.engine import Database
from guichet.db.tables import users
from guichet.mail.outbox import Outbox
from tests.accounts.totp import code_of
from tests.console.conftest import PASSWORD, ConsoleBrowser, ConsoleFixture

AWA = "awa@example.com"
SET_UP = "/console/factor/setup"
_SEED = re.compile(r'class="mono-text">([A-Z2-7 ]+)<')


def seed_on(browser: ConsoleBrowser) -> str | None:
    """The seed that the page shows, in any form."""
    text = browser.page.text
    found = _SEED.search(text)
    assert (found is None) == ("otpauth:" not in text) == ('class="qr"' not in text)
    return found[1].replace(" ", "") if found else None


async def confirmed(db: Database) -> bool:
    [(given,)] = await db.all(select(users.c.totp_confirmed))
    return bool(given)


async def invited_owner(console: ConsoleFixture) -> ConsoleBrowser:
    browser = console.browser()
    await browser.get(await console.invited(AWA, await console.merchant()))
    await browser.submit("password", password=PASSWORD, name="Awa Kossou")
    assert browser.page.path == SET_UP
    return browser


async def test_a_form_sent_after_fifteen_minutes_shows_no_seed_and_sets_nothing_up(
    sqlite_console: ConsoleFixture,
) -> None:
    """Whoever finds an open screen has its cookie and its form, but not the password."""
    console = sqlite_console
    browser = await invited_owner(console)
    seed, form = seed_on(browser), browser.page.form("code").fields
    assert seed is not None
    console.service.clock.advance(16 * 60)
    for code in ("000000", code_of(seed, console.service.clock.now()), ""):
        page = await browser.post(SET_UP, {**form, "code": code})
        assert page.path.startswith("/console/sign-in?again=yes"), code
        assert seed_on(browser) is None
    assert not await confirmed(console.service.ctx.db)


async def test_the_answer_to_a_wrong_code_shows_no_seed(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    browser = await invited_owner(console)
    seed = seed_on(browser)
    for _ in range(8):
        assert (await browser.submit("code", code="000000")).status == 422
        assert seed_on(browser) is None
    assert (await browser.submit("code", code="000000")).status == 429
    assert seed_on(browser) is None
    console.service.clock.advance(14 * 60)
    await browser.get(SET_UP)
    assert seed_on(browser) == seed, "within fifteen minutes of the password the page shows it again"
    assert not await confirmed(console.service.ctx.db)


async def test_a_wrong_code_of_a_new_telephone_shows_no_seed(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    browser = await invited_owner(console)
    await console.set_up(browser)
    await browser.get("/console/factor/change")
    seed = seed_on(browser)
    assert seed is not None
    assert (await browser.submit("code", code="000000")).status == 422
    assert seed_on(browser) is None
    await browser.get("/console/factor/change")
    assert seed_on(browser) == seed


async def test_a_first_telephone_and_new_recovery_codes_are_told_by_mail(console: ConsoleFixture) -> None:
    browser = await invited_owner(console)
    before = len(await console.mails())
    await console.set_up(browser)
    assert [mail.kind for mail in await console.mails()][:-before] == ["factor_changed"]
    await browser.get("/console/security")
    await browser.post("/console/security", {**browser.page.forms()[0].fields, "act": "recovery_codes"})
    assert len(re.findall(r"<li>[2-9A-Z]{4}-", browser.page.text)) == 10
    assert [mail.kind for mail in await console.mails()][:-before] == ["factor_changed"] * 2


async def test_without_its_mail_neither_is_changed(
    sqlite_console: ConsoleFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mail is queued in the transaction of the change."""
    console = sqlite_console
    browser = await invited_owner(console)

    async def dies(*_: object) -> None:
        raise OSError

    with monkeypatch.context() as broken:
        broken.setattr(Outbox, "add", dies)
        await console.set_up(browser)
    assert browser.page.status == 500
    assert not await confirmed(console.service.ctx.db)
    acts = [each.action for each in await audit_log.latest(console.service.ctx.db)]
    assert "user.factor_added" not in acts
