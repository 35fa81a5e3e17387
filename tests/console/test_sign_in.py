"""Signing in over HTTP: cookies, forms of other sites, session fixation, what each state of a session may see."""

import asyncio
import re
from dataclasses import replace

import pytest

from guichet.accounts import factors
from guichet.audit_log import entries as audit_log
from guichet.console.security_page import browser_name
from guichet.settings import Settings
from tests.accounts.totp import code_of
from tests.console.conftest import PASSWORD, ConsoleFixture
from tests.patience import PATIENCE
from tests.service_fixture import open_service

AWA = "awa@example.com"
SESSION = "guichet-session"
#: Where somebody arrives who works for the first merchant only.
HOME = "/console/1/live"


async def test_an_owner_is_invited_sets_up_codes_and_signs_in_again(console: ConsoleFixture) -> None:
    merchant = await console.merchant()
    browser = console.browser()
    page = await browser.get(await console.invited(AWA, merchant))
    assert page.status == 200
    assert AWA in page.text
    page = await browser.submit("password", password=PASSWORD, name="Awa K.")
    assert page.path == "/console/factor/setup"
    assert "<svg" in page.text
    seed = await console.set_up(browser)
    assert len(re.findall(r"<li>[2-9A-Z]{4}-", browser.page.text)) == 10
    page = await browser.get("/console")
    assert "Boutique Kora" in page.text
    await browser.submit("csrf")
    assert SESSION not in browser.cookies
    page = await browser.sign_in(AWA)
    assert page.path == "/console/factor"
    page = await browser.submit("code", code=code_of(seed, console.service.clock.now()))
    assert (page.status, page.path) == (200, HOME)


async def test_a_refusal_says_nothing_and_keeps_the_address(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    await console.joined(AWA, await console.merchant(), "reader")
    texts = []
    for email in (AWA, "nobody@example.com"):
        browser = console.browser()
        page = await browser.sign_in(email, "trois chats dormen")
        assert page.status == 422
        assert f'value="{email}"' in page.text
        assert SESSION not in browser.cookies
        texts.append(page.text.replace(email, "…"))
    assert texts[0] == texts[1]


async def test_the_session_has_a_new_secret_after_each_proof(sqlite_console: ConsoleFixture) -> None:
    """A secret that somebody planted or saw before is worth nothing afterwards."""
    console = sqlite_console
    browser = console.browser()
    browser.cookies[SESSION] = "A" * 43
    await browser.get(await console.invited(AWA, await console.merchant()))
    await browser.submit("password", password=PASSWORD, name="Awa")
    first = browser.cookies[SESSION]
    assert first != "A" * 43
    await console.set_up(browser)
    assert browser.cookies[SESSION] not in (first, "A" * 43)
    old = console.browser()
    old.cookies[SESSION] = first
    assert (await old.get("/console")).path.startswith("/console/sign-in")


@pytest.mark.parametrize("path", ["/console", "/console/security", "/console/1/live/team", "/console/factor"])
async def test_a_stranger_is_sent_to_the_sign_in_and_then_on(sqlite_console: ConsoleFixture, path: str) -> None:
    console = sqlite_console
    browser = await console.joined(AWA, await console.merchant(), "reader")
    stranger = console.browser()
    page = await stranger.get(path)
    assert page.path.startswith("/console/sign-in")
    page = await stranger.submit("email", "password", email=AWA, password=PASSWORD)
    assert "/console" in page.path
    assert page.status in (200, 403)
    assert browser.cookies[SESSION] != stranger.cookies[SESSION]


@pytest.mark.parametrize(
    "to", ["https://evil.example/", "//evil.example/", "/\\evil.example", "/v1/x", "/console/../v1"]
)
async def test_the_sign_in_leads_to_our_own_pages_only(sqlite_console: ConsoleFixture, to: str) -> None:
    console = sqlite_console
    await console.joined(AWA, await console.merchant(), "reader")
    browser = console.browser()
    await browser.get("/console/sign-in")
    page = await browser.submit("email", "password", email=AWA, password=PASSWORD, next=to)
    assert page.path in (HOME, "/console/../v1")


async def test_who_must_set_up_a_factor_sees_nothing_else(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    merchant = await console.merchant()
    browser = console.browser()
    await browser.get(await console.invited(AWA, merchant))
    await browser.submit("password", password=PASSWORD, name="Awa")
    for path in ("/console", "/console/security", f"/console/{merchant.id}/live/team", "/console/factor"):
        assert (await browser.get(path)).path == "/console/factor/setup"


async def test_who_must_give_a_factor_cannot_set_up_another_one(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    await console.joined(AWA, await console.merchant())
    thief = console.browser()
    await thief.sign_in(AWA)
    for path in ("/console", "/console/security", "/console/factor/setup"):
        assert (await thief.get(path)).path == "/console/factor"
    csrf = thief.page.form("code").fields["csrf"]
    page = await thief.post("/console/factor/setup", {"csrf": csrf, "code": "123456"})
    assert page.path == "/console/factor"


async def test_a_set_up_that_is_cut_off_is_begun_again(
    sqlite_console: ConsoleFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No telephone counts without recovery codes and an entry of the audit log."""
    merchant, browser = await sqlite_console.merchant(), sqlite_console.browser()
    await browser.get(await sqlite_console.invited("awa@example.com", merchant))
    await browser.submit("password", password=PASSWORD, name="Awa Kossou")

    async def dies(*_: object) -> list[str]:
        raise OSError

    with monkeypatch.context() as cut_off:
        cut_off.setattr(factors, "new_recovery_codes", dies)
        await sqlite_console.set_up(browser)
    assert browser.page.status == 500
    assert (await browser.get("/console/factor/setup")).path == "/console/factor/setup"
    await sqlite_console.set_up(browser)
    assert 'class="codes"' in browser.page.text
    acts = [each.action for each in await audit_log.latest(sqlite_console.service.ctx.db)]
    assert acts.count("user.factor_added") == 1


async def test_a_link_to_the_set_up_takes_nobodys_codes_away(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    owner = await console.joined(AWA, await console.merchant())
    assert (await owner.get("/console/factor/setup")).path == "/console/security"
    await owner.get("/console/security")
    assert "Activé" in owner.page.text
    new = console.browser()
    await new.get(await console.invited("ada@example.com", await console.merchant()))
    first = await new.submit("password", password=PASSWORD, name="Ada")
    seed = re.compile(r'class="mono-text">([A-Z2-7 ]+)<')
    again = await new.get("/console/factor/setup")
    assert seed.findall(again.text) == seed.findall(first.text) != [], "the same seed when the page is loaded again"


async def test_a_form_of_another_site_or_of_no_session_does_nothing(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    browser = await console.joined(AWA, await console.merchant(), "reader")
    await browser.get("/console/security")
    form = browser.page.form("csrf")
    for sends, fields in (
        ({"Sec-Fetch-Site": "cross-site"}, form.fields),
        ({"Sec-Fetch-Site": "same-site"}, form.fields),
        ({"Origin": "https://evil.example"}, form.fields),
        ({"Sec-Fetch-Site": "same-origin"}, {**form.fields, "csrf": ""}),
        ({"Sec-Fetch-Site": "same-origin"}, {**form.fields, "csrf": form.fields["csrf"][:-2] + "xx"}),
    ):
        browser.sends = sends
        page = await browser.post("/console/sign-out", fields)
        assert page.status == 403, sends
    browser.sends = {"Sec-Fetch-Site": "same-origin"}
    assert (await browser.get("/console")).path == HOME
    elsewhere = console.browser()
    elsewhere.sends = {"Sec-Fetch-Site": "cross-site"}
    page = await elsewhere.post("/console/sign-in", {"email": AWA, "password": PASSWORD})
    assert page.status == 403
    assert SESSION not in elsewhere.cookies


async def test_over_tls_the_cookies_cannot_be_set_by_another_host(sqlite_settings: Settings) -> None:
    async with open_service(replace(sqlite_settings, public_url="https://pay.example")) as service:
        console = ConsoleFixture(service)
        path = await console.invited(AWA, await console.merchant(), "reader")
        browser = console.browser()
        await browser.get(path)
        fields = {"password": PASSWORD, "name": "Awa"}
        async with service.client.post(
            service.base_url + path, data=fields, headers=browser.sends, allow_redirects=False
        ) as answer:
            set_cookies = answer.headers.getall("Set-Cookie")
        assert len(set_cookies) == 2
        for text in set_cookies:
            assert text.startswith("__Host-")
            for part in ("Secure", "HttpOnly", "SameSite=lax", "Path=/"):
                assert part in text
            assert "Domain" not in text


async def test_every_page_has_the_headers_and_no_script_of_others(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    browser = await console.joined(AWA, await console.merchant(), "owner")
    for path in ("/console", "/console/security", "/console/nowhere", "/console/999/live/team"):
        page = await browser.get(path)
        policy = page.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert page.headers["Cache-Control"] == "no-store"
        assert page.headers["Referrer-Policy"] == "no-referrer"


async def test_a_new_password_is_asked_for_and_chosen(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    await console.joined(AWA, await console.merchant(), "reader")
    browser = console.browser()
    await browser.get("/console/password")
    page = await browser.submit("email", email=AWA)
    known = page.text
    await browser.get("/console/password")
    assert (await browser.submit("email", email="nobody@example.com")).text == known
    async with asyncio.timeout(PATIENCE):  # The mail is written after the answer.
        while not (link := await console.last_link()).startswith("/console/password/"):
            await asyncio.sleep(0.01)
    await browser.get(link)
    assert (await browser.submit("password", password="court")).status == 422
    page = await browser.submit("password", password="quatre chiens aboient")
    assert page.path == HOME
    assert (await console.browser().get(link)).status == 410
    assert (await console.browser().sign_in(AWA, "quatre chiens aboient")).path == HOME


async def test_other_sessions_are_ended_from_the_security_page(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    first = await console.joined(AWA, await console.merchant(), "reader")
    second = console.browser()
    await second.sign_in(AWA)
    page = await first.get("/console/security")
    assert page.text.count("Firefox") == 2
    await first.submit("session", act="end")
    assert (await second.get("/console")).path.startswith("/console/sign-in")
    assert (await first.get("/console")).path == HOME


@pytest.mark.parametrize(("agent", "name"), [
    ("Mozilla/5.0 (Linux; Android 13; SM-A135F) AppleWebKit/537.36 Chrome/126.0 Safari/537.36", "Chrome · Android"),
    ("Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) Version/17.5 Mobile Safari/604.1", "Safari · iPhone"),
    ("Mozilla/5.0 (Windows NT 10.0; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox · Windows"),
    ("curl/8.5.0", "curl/8.5.0"),
    ("", "–"),
])  # fmt: skip
def test_a_browser_is_named_as_people_do(agent: str, name: str) -> None:
    assert browser_name(agent) == name


async def test_the_mailbox_exists_in_development_only(settings: Settings) -> None:
    for profile, status in (("development", 200), ("production", 404)):
        async with open_service(replace(settings, profile=profile)) as service:  # type: ignore[arg-type]
            console = ConsoleFixture(service)
            await console.invited(f"{profile}@example.com", await console.merchant(), "reader")
            page = await console.browser().get("/console/mailbox")
            assert page.status == status
            assert ("/console/invitation/" in page.text) is (status == 200)


async def test_a_wrong_password_does_not_lose_the_page_that_was_asked_for(sqlite_console: ConsoleFixture) -> None:
    await sqlite_console.joined(AWA, await sqlite_console.merchant(), "reader")
    browser = sqlite_console.browser()
    await browser.get("/console/security")
    assert (await browser.submit("email", "password", email=AWA, password="faux")).status == 422
    assert browser.page.form("password").fields["email"] == AWA
    assert (await browser.submit("email", "password", password=PASSWORD)).path == "/console/security"
