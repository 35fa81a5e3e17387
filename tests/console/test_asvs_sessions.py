"""Answers of docs/security.md about passwords, sessions, factors and the log of both that no other test holds."""

import re
from typing import Any

import pytest
from sqlalchemy import select

from guichet.audit_log import entries
from guichet.clock import DAY, SECOND
from guichet.db.tables import recovery_codes, user_sessions
from guichet.domain.accounts import secret_hash
from tests.console.conftest import PASSWORD, ConsoleFixture

AWA = "awa@example.com"
SESSION = "guichet-session"
#: Where somebody with one merchant arrives.
HOME = "/console/1/live"
OTHER = "quatre chiens aboient"


class RecordedLines:
    """In place of the log."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def info(self, event: str, **fields: Any) -> None:
        self.lines.append((event, fields))


async def test_a_new_password_needs_the_present_one(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    awa = await console.joined(AWA, await console.merchant(), "reader")
    elsewhere = console.browser()
    await elsewhere.sign_in(AWA)
    page = await awa.get("/console/security/password")
    assert 'autocomplete="current-password"' in page.text
    assert 'autocomplete="new-password"' in page.text
    assert "onpaste" not in page.text
    for present, wanted, fault in (
        ("not the one", OTHER, "pas votre mot de passe actuel"),
        (PASSWORD, "qwertyuiop123", "premiers que l’on essaierait"),
        (PASSWORD, "court", "moins de 12"),
    ):
        page = await awa.submit("present", "password", present=present, password=wanted)
        assert page.status == 422
        assert fault in page.text
        assert wanted not in page.text, "no password stands in a page"
    page = await awa.submit("present", "password", present=PASSWORD, password=OTHER)
    assert page.path == "/console/security"
    assert (await elsewhere.get("/console")).path.startswith("/console/sign-in"), "every other session ended"
    assert (await console.mails())[0].kind == "password_changed"
    assert (await entries.latest(console.service.ctx.db))[0].action == "user.password_changed"
    stranger = console.browser()
    assert (await stranger.sign_in(AWA)).status == 422
    assert (await stranger.sign_in(AWA, OTHER)).path == HOME


async def test_a_first_telephone_needs_a_recent_password(sqlite_console: ConsoleFixture) -> None:
    """Otherwise whoever finds an open screen has a second factor, and passes every step-up with it."""
    console = sqlite_console
    awa = await console.joined(AWA, await console.merchant(), "developer")
    old = awa.cookies[SESSION]
    console.service.clock.advance(16 * 60)
    assert (await awa.get("/console")).path == HOME
    page = await awa.get("/console/factor/setup")
    assert page.path.startswith("/console/sign-in?again=yes")
    page = await awa.submit("email", "password", email=AWA, password=PASSWORD)
    assert page.path == "/console/factor/setup"
    await console.set_up(awa)
    thief = console.browser()
    thief.cookies[SESSION] = old
    assert (await thief.get("/console")).path.startswith("/console/sign-in"), "the session before ended"


async def test_each_proof_and_each_refusal_is_a_line_of_the_log(
    sqlite_console: ConsoleFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, console = RecordedLines(), sqlite_console
    for module in ("guichet.accounts.sign_in", "guichet.console.app"):
        monkeypatch.setattr(f"{module}.log", log)
    merchant, other = await console.merchant(), await console.merchant("Autre")
    awa = await console.joined(AWA, merchant, "reader")
    assert log.lines[-1][0] == "sign_in.succeeded"
    assert log.lines[-1][1]["means"] == "mail"
    user = log.lines[-1][1]["user"]
    stranger = console.browser()
    await stranger.sign_in(AWA, "wrong password")
    await stranger.sign_in("nobody@example.com", "wrong password")
    refused = [fields for event, fields in log.lines if event == "sign_in.refused"]
    assert [(each["user"], each["why"]) for each in refused] == [(user, "SignInRefused"), (None, "SignInRefused")]
    assert all(each["address"] == "127.0.0.1" for each in refused)
    await awa.get(f"/console/{other.id}/live/team")
    assert log.lines[-1] == (
        "access.refused",
        {
            "method": "GET",
            "path": "/console/{merchant:row}/{env}/team",
            "why": "Forbidden",
            "user": user,
            "merchant": other.id,
        },
    )
    awa.sends = {"Sec-Fetch-Site": "cross-site"}
    await awa.post("/console/sign-out", {})
    assert log.lines[-1][1]["why"] == "FormRefused"
    written = repr(log.lines)
    assert AWA not in written
    assert "wrong password" not in written
    assert awa.cookies[SESSION] not in written


async def test_secrets_of_sessions_stand_in_cookies_only(sqlite_console: ConsoleFixture) -> None:
    """Over http, on a developer's machine, the cookie has every attribute but those that need TLS."""
    console = sqlite_console
    path = await console.invited(AWA, await console.merchant(), "reader")
    browser = console.browser()
    await browser.get(path)
    service = console.service
    fields = {"password": PASSWORD, "name": "Awa"}
    async with service.client.post(
        service.base_url + path, data=fields, headers=browser.sends, allow_redirects=False
    ) as answer:
        cookies, place, store = answer.cookies, answer.headers["Location"], answer.headers["Cache-Control"]
    secret = cookies[SESSION].value
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", secret), "256 bits"
    assert (cookies[SESSION]["httponly"], cookies[SESSION]["samesite"]) == (True, "lax")
    assert (cookies[SESSION]["path"], cookies[SESSION]["domain"], cookies[SESSION]["max-age"]) == ("/", "", "")
    assert secret not in place
    assert store == "no-store"
    browser.cookies[SESSION] = secret
    for address in ("/console", "/console/security"):
        assert secret not in (await browser.get(address)).text
    [(stored,)] = await service.ctx.db.all(select(user_sessions.c.hash))
    assert stored == secret_hash(secret)
    await browser.submit("csrf")
    assert SESSION not in browser.cookies
    browser.cookies[SESSION] = secret
    page = await browser.get("/console")
    assert page.path.startswith("/console/sign-in"), "the cookie of a session that ended opens nothing"
    assert page.headers["Cache-Control"] == "no-store", "nor does the button that goes back"


async def test_recovery_codes_have_80_bits_and_are_stored_hashed(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    browser = console.browser()
    await browser.get(await console.invited(AWA, await console.merchant()))
    await browser.submit("password", password=PASSWORD, name="Awa")
    await console.set_up(browser)
    codes = re.findall(r"<li>([0-9A-Z-]+)</li>", browser.page.text)
    assert len(set(codes)) == 10
    assert all(re.fullmatch(r"([2-9A-HJ-NP-Z]{4}-){3}[2-9A-HJ-NP-Z]{4}", code) for code in codes)
    stored = {
        tuple(row) for row in await console.service.ctx.db.all(select(recovery_codes.c.user_id, recovery_codes.c.hash))
    }
    [person] = {user for user, _ in stored}
    assert stored == {(person, secret_hash(f"{person} {code.replace('-', '')}")) for code in codes}, "with a salt"
    await browser.submit("csrf")
    await browser.sign_in(AWA)
    assert (await browser.submit("code", code=codes[0])).path == HOME


async def test_no_password_has_to_be_changed_because_it_is_old(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    browser = await console.joined(AWA, await console.merchant(), "reader")
    console.service.clock.advance(400 * DAY / SECOND)
    assert (await browser.sign_in(AWA)).path == HOME
