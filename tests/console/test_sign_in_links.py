"""The links that `guichet demo` prints: they sign in without a password, so they must not work anywhere else."""

import re
from dataclasses import replace

import aiohttp

from guichet.accounts import users
from guichet.audit_log import entries as audit_log
from guichet.clock import SECOND
from guichet.db.engine import require
from guichet.domain.accounts import User
from guichet.settings import Settings
from guichet_demo.access import SIGN_IN_LINK_LASTS
from tests.console.conftest import PASSWORD, ConsoleFixture
from tests.service_fixture import open_service

AWA = "awa@example.com"


async def _link(console: ConsoleFixture, email: str) -> str:
    """The path of a new link."""
    user = require(await users.by_email(console.service.ctx.db, email))
    return f"/console/sign-in/{console.service.demo.new_link(user.id, console.service.clock.now())}"


async def test_a_link_signs_in_once_with_a_fresh_second_factor(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    merchant = await console.merchant()
    await console.joined(AWA, merchant)
    path = await _link(console, AWA)
    browser = console.browser()
    page = await browser.get(path)
    assert (page.status, page.path) == (200, f"/console/{merchant.id}/live")
    page = await browser.get(f"/console/{merchant.id}/live/team")
    page = await browser.submit("email", "name", email="kofi@example.com", name="Kofi", role="reader", act="invite")
    assert (page.status, page.path) == (200, f"/console/{merchant.id}/live/team")  # an act that asks for a fresh factor
    last = await audit_log.latest(console.service.ctx.db, 10)
    assert "user.sign_in_link_used" in [entry.action for entry in last]
    stranger = console.browser()
    page = await stranger.get(path)
    assert page.status == 410
    assert "Relancez-la" in page.text
    assert not stranger.cookies


async def test_a_link_of_the_staff_leads_to_the_back_office(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    await console.joined("equipe@example.com", None, "admin")
    page = await console.browser().get(await _link(console, "equipe@example.com"))
    assert (page.status, page.path) == (200, "/admin")


async def test_a_link_ends_after_a_quarter_of_an_hour_and_with_the_account(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    ctx = console.service.ctx
    await console.joined(AWA, await console.merchant(), "reader")
    in_time, too_late, disabled = [await _link(console, AWA) for _ in range(3)]
    console.service.clock.advance(SIGN_IN_LINK_LASTS // SECOND - 1)
    assert (await console.browser().get(in_time)).status == 200
    user = require(await users.by_email(ctx.db, AWA))
    await users.set_status(ctx.db, user.id, "disabled", ctx.clock.now())
    assert (await console.browser().get(disabled)).status == 410
    await users.set_status(ctx.db, user.id, "active", ctx.clock.now())
    console.service.clock.advance(1)
    assert (await console.browser().get(too_late)).status == 410
    assert (await console.browser().get(f"/console/sign-in/{'A' * 43}")).status == 410


async def test_a_link_works_on_this_machine_only(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    await console.joined(AWA, await console.merchant(), "reader")
    path = await _link(console, AWA)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(local_addr=("127.0.0.2", 0))) as elsewhere:
        assert (await elsewhere.get(console.service.base_url + path)).status == 404
    for header in ("X-Forwarded-For", "Forwarded"):  # a tunnel on this machine
        browser = console.browser()
        browser.sends = {**browser.sends, header: "for=203.0.113.7"}
        assert (await browser.get(path)).status == 404
    assert (await console.browser().get(path)).status == 200


async def test_production_takes_no_links(sqlite_settings: Settings) -> None:
    async with open_service(replace(sqlite_settings, profile="production")) as service:
        console = ConsoleFixture(service)
        await console.joined(AWA, await console.merchant(), "reader")
        user: User = require(await users.by_email(service.ctx.db, AWA))
        secret = service.demo.new_link(user.id, service.clock.now())
        assert (await console.browser().get(f"/console/sign-in/{secret}")).status == 404


async def test_pages_show_the_codes_of_the_demos_people_and_of_nobody_else(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    ctx, merchant = console.service.ctx, await console.merchant()
    await console.joined("zoe@example.com", merchant)
    browser = console.browser()
    await browser.get(await console.invited(AWA, merchant))
    await browser.submit("password", password=PASSWORD, name="Awa")
    await console.service.demo.give_telephone(ctx, require(await users.by_email(ctx.db, AWA)))
    for _ in range(2):
        page = await browser.get("/console/factor?next=/console/security")
        found = re.search(r"son code est en ce moment (\d{6})", page.text)
        assert found is not None
        assert (await browser.submit("code", code=found[1])).path == "/console/security", "each counts once"
    assert "en ce moment" not in (await browser.get("/console/factor")).text, "the present ones are used up"
    console.service.clock.advance(60)
    assert "en ce moment" in (await browser.get("/console/factor")).text
    browser.sends["X-Forwarded-For"] = "203.0.113.7"
    assert "en ce moment" not in (await browser.get("/console/factor")).text, "a tunnel asks for somebody elsewhere"
    other = console.browser()
    await other.sign_in("zoe@example.com")
    assert (other.page.path, "en ce moment" in other.page.text) == ("/console/factor", False)
