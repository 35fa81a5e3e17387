"""Answers of docs/security.md about rights, hostile requests and errors that no other test holds."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select
from yarl import URL

from guichet.accounts import sessions
from guichet.console.page_tables import MERCHANT_PAGES, STAFF_PAGES
from guichet.console.sections import MerchantPage, StaffPage
from guichet.db.tables import memberships, users
from guichet.settings import Settings
from tests.console.conftest import PASSWORD, ConsoleBrowser, ConsoleFixture
from tests.service_fixture import open_service

AWA = "awa@example.com"
#: Forms of every page that is not about a merchant or of the back office.
OWN_FORMS = (
    "/sign-in", "/sign-out", "/factor", "/factor/setup", "/factor/change", "/passkey", "/passkey/question", "/password",
    "/password/" + "x" * 43, "/invitation/" + "x" * 43, "/security", "/security/password",
)  # fmt: skip
_WITH_FILE = ("/documents", "/statement")


def addresses(pages: Sequence[MerchantPage | StaffPage], merchant: int) -> list[tuple[Any, str]]:
    """Each page with an address of its own, for a row that does not exist where it names one."""

    def filled(path: str) -> str:
        path = path.replace("{merchant:row}", str(merchant)).replace("{link}", "7").replace("{day}", "2026-11-20")
        return re.sub(r"\{\w+\}", str(UUID(int=7)), re.sub(r"\{\w+:row\}", "7", path))

    return [(page, filled(page.path)) for page in pages]


async def answers_to(browser: ConsoleBrowser, method: str, path: str, fields: dict[str, str] | None = None) -> int:
    """The status of one request, without following it anywhere."""
    cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    service = browser.service
    async with service.client.request(
        method,
        URL(service.base_url + path, encoded=True),
        data=fields,
        headers={**browser.sends, "Cookie": cookies},
        allow_redirects=False,
    ) as answer:
        return answer.status


async def test_every_form_refuses_other_sites_and_wrong_tokens(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    merchant = await console.merchant()
    owner, admin = await console.joined(AWA, merchant), await console.joined("ada@guichet.example", None, "admin")
    forms = [(owner, f"/console{path}") for path in OWN_FORMS]
    for page, path in addresses(MERCHANT_PAGES, merchant.id):
        forms += [(owner, f"/console/{merchant.id}/test{path}")] if page.change else []
    for page, path in addresses(STAFF_PAGES, merchant.id):
        # Files have forms of their own, which are tested with them (tests/console/admin/).
        forms += [(admin, f"/admin{path}")] if page.change and not path.endswith(_WITH_FILE) else []
    assert len(forms) > 25
    csrf = {}
    for browser in (owner, admin):
        csrf[id(browser)] = (await browser.get("/console/security")).forms()[0].fields["csrf"]
    for browser, path in forms:
        token, same = csrf[id(browser)], browser.sends
        browser.sends = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
        assert await answers_to(browser, "POST", path, {"csrf": token}) == 403, path
        browser.sends = same
        for wrong in ("", "é", token[:-4] + "abcd"):
            assert await answers_to(browser, "POST", path, {"csrf": wrong}) == 403, path


async def test_a_token_is_other_bytes_in_each_page_and_each_is_good(sqlite_console: ConsoleFixture) -> None:
    """Pages are compressed: the same bytes in each of them could be guessed by their length (BREACH)."""
    browser = await sqlite_console.joined(AWA, await sqlite_console.merchant())
    pages = [await browser.get("/console/security") for _ in range(3)]
    tokens = [page.forms()[0].fields["csrf"] for page in pages]
    runs = [{token[at : at + 6] for at in range(len(token) - 5)} for token in tokens]
    assert not runs[0] & runs[1] | runs[0] & runs[2] | runs[1] & runs[2]
    for token in tokens:
        assert await answers_to(browser, "POST", "/console/security", {"csrf": token}) != 403
    stranger = await sqlite_console.joined("zoe@example.com", await sqlite_console.merchant("Autre"))
    assert await answers_to(stranger, "POST", "/console/security", {"csrf": tokens[0]}) == 403


async def test_fields_that_a_form_does_not_have_change_nothing(sqlite_console: ConsoleFixture) -> None:
    """Nor does the second of two fields with one name."""
    console = sqlite_console
    merchant, other = await console.merchant(), await console.merchant("Autre")
    browser = console.browser()
    await browser.get(await console.invited(AWA, merchant, "reader"))
    more = {"role": "owner", "staff_role": "admin", "status": "active", "email": "ada@example.com", "id": "99"}
    more |= {"merchant": str(other.id), "merchant_id": str(other.id), "totp_confirmed": "1"}
    page = browser.page.form("password")
    await browser.post(page.action or browser.page.path, {**page.fields, "password": PASSWORD, "name": "Awa", **more})
    db = console.service.ctx.db
    [row] = await db.all(select(users.c.email, users.c.staff_role, users.c.totp_confirmed))
    assert tuple(row) == (AWA, None, False)
    [row] = await db.all(select(memberships.c.merchant_id, memberships.c.role))
    assert tuple(row) == (merchant.id, "reader")
    stranger, service = console.browser(), console.service
    twice = f"email={AWA}&password=wrong+password&email=nobody%40example.com&password={PASSWORD.replace(' ', '+')}"
    async with service.client.post(
        f"{service.base_url}/console/sign-in",
        data=twice,
        headers={**stranger.sends, "Content-Type": "application/x-www-form-urlencoded"},
    ) as answer:
        assert answer.status == 422
        assert f'value="{AWA}"' in await answer.text()


async def test_what_people_call_themselves_is_no_markup(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    evil = "<script>alert(1)</script>\"'{{7919*7919}}"
    merchant = await console.merchant(evil)
    owner = await console.joined(AWA, merchant)
    owner.sends["User-Agent"] = evil
    await owner.get(f"/console/{merchant.id}/test/team")
    await owner.submit("email", "name", email="ada@example.com", name=evil, role="reader")
    for path in ("/console", f"/console/{merchant.id}/test/team", "/console/security", f"/console/sign-in?next={evil}"):
        page = await owner.get(path)
        assert page.status == 200
        assert "<script>alert" not in page.text
        assert "{{7919*7919}}" in page.text or "62710561" not in page.text
    page = await owner.get(f"/console/{merchant.id}/test/team")
    assert "&lt;script&gt;alert(1)" in page.text
    page = await console.browser().sign_in(evil, "wrong password")
    assert "<script>alert" not in page.text


@pytest.mark.parametrize(("public_url", "sent"), [("https://pay.example", "max-age=31536000"), (None, None)])
async def test_browsers_are_told_to_use_tls_if_the_service_is_reached_by_it(
    sqlite_settings: Settings, public_url: str | None, sent: str | None
) -> None:
    """Whatever answers: pages, the API, refusals and addresses that do not exist."""
    async with open_service(replace(sqlite_settings, public_url=public_url or sqlite_settings.public_url)) as service:
        for path in ("/console/sign-in", "/console", "/v1/payments", "/nowhere", "/pay/x", "/readyz"):
            async with service.client.get(service.base_url + path, allow_redirects=False) as answer:
                assert answer.headers.getall("Strict-Transport-Security", []) == ([sent] if sent else []), path


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
async def test_pages_know_two_methods(sqlite_console: ConsoleFixture, method: str) -> None:
    console = sqlite_console
    browser = await console.joined(AWA, await console.merchant(), "reader")
    for path in ("/console", "/console/security", "/console/sign-in", "/admin", "/console/1/live/team"):
        assert await answers_to(browser, method, path) == 405
    assert await answers_to(browser, "POST", "/console") == 405


@pytest.mark.parametrize(
    "name",
    [
        "../app.py", "..%2fapp.py", "%2e%2e/%2e%2e/pyproject.toml", "..%5capp.py", "%2fetc%2fpasswd", "", ".git/config",
        "pages.js", "pages.css%00", "....//app.py",
    ],
)  # fmt: skip
async def test_assets_are_a_list_and_no_folder(sqlite_console: ConsoleFixture, name: str) -> None:
    browser = sqlite_console.browser()
    for root in ("/console/assets/", "/pay/assets/"):
        assert await answers_to(browser, "GET", root + name) == 404


async def test_the_script_is_the_only_thing_that_browsers_may_keep(sqlite_console: ConsoleFixture) -> None:
    browser = sqlite_console.browser()
    page = await browser.get("/console/sign-in")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert (page.headers["Cache-Control"], page.headers["X-Content-Type-Options"]) == ("no-store", "nosniff")
    found = re.search(r'src="([^"]+)"', page.text)
    assert found is not None
    script = await browser.get(found[1])
    assert script.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert "immutable" in script.headers["Cache-Control"]
    assert script.headers["X-Content-Type-Options"] == "nosniff"
    for word in ("eval(", "new Function", "document.write", "localStorage", "sessionStorage", "document.cookie"):
        assert word not in script.text


async def test_a_fault_of_ours_tells_nothing_and_opens_nothing(
    sqlite_console: ConsoleFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = sqlite_console
    merchant = await console.merchant()
    owner = await console.joined(AWA, merchant)

    async def broken(*_: object) -> None:
        raise ZeroDivisionError("SELECT password_hash FROM users")

    monkeypatch.setattr(sessions, "find", broken)
    for path in ("/console", f"/console/{merchant.id}/live/team", "/console/security"):
        page = await owner.get(path)
        assert page.status == 500
        assert page.headers["X-Request-Id"]
        for word in ("SELECT", "password_hash", "ZeroDivisionError", "Traceback", "guichet/", "Python", AWA):
            assert word not in page.text, word


async def test_the_forms_of_passwords_help_people_and_their_managers(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    browser = console.browser()
    page = await browser.get("/console/sign-in")
    assert 'type="password" value="" autocomplete="current-password"' in page.text
    assert 'data-reveal="password"' in page.text
    page = await browser.get(await console.invited(AWA, await console.merchant(), "reader"))
    assert 'type="password" value="" autocomplete="new-password"' in page.text
    assert 'data-reveal="password"' in page.text
    assert '<meter data-strength="password"' in page.text
