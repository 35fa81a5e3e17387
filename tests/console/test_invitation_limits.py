"""Invitations are mails to strangers in our name: how many there may be, and what their names may hold."""

import asyncio
from collections import Counter

import pytest

from guichet.accounts.invitations import (
    FROM_MERCHANT_A_DAY,
    FROM_MERCHANT_TO_ADDRESS_A_DAY,
    TO_ADDRESS_A_DAY,
    Invitation,
    TooManyInvitations,
    invite,
)
from guichet.domain.audit_log import Actor
from guichet.domain.merchants import Merchant
from guichet.mail.outbox import Outbox
from tests.console.conftest import PASSWORD, ConsoleBrowser, ConsoleFixture

OWNER = "awa@example.com"
TEAM = "/console/1/live/team"


async def invite_by_form(browser: ConsoleBrowser, email: str, name: str = "Ada") -> int:
    fields = {"csrf": browser.cookies["csrf"], "act": "invite", "email": email, "name": name, "role": "reader"}
    return (await browser.post(TEAM, fields)).status


async def owner_of_first(console: ConsoleFixture) -> ConsoleBrowser:
    """With a fresh factor; the token of forms is kept beside the cookies."""
    owner = await console.joined(OWNER, await console.merchant())
    page = await owner.get(TEAM)
    owner.cookies["csrf"] = page.forms()[0].fields["csrf"]
    return owner


async def invitations_mailed(console: ConsoleFixture) -> Counter[str]:
    return Counter(mail.recipient for mail in await console.mails() if mail.kind == "invitation")


async def test_sixty_invitations_to_three_addresses(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    owner = await owner_of_first(console)
    addresses = [f"victim{number}@example.com" for number in range(3)]
    before = await invitations_mailed(console)
    for address in addresses:
        assert await invite_by_form(owner, address, "https://evil.example Win 500 000 F") == 422
        assert "ni adresse web ni adresse e-mail" in owner.page.text
    assert await invitations_mailed(console) == before
    statuses = Counter([await invite_by_form(owner, address) for address in addresses for _ in range(20)])
    assert statuses == {200: 9, 429: 51}
    assert "Trop d’invitations" in owner.page.text
    assert await invitations_mailed(console) - before == dict.fromkeys(addresses, FROM_MERCHANT_TO_ADDRESS_A_DAY)


async def test_a_merchant_invites_so_many_a_day(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    owner = await owner_of_first(console)
    # The owner's own invitation counts as well.
    statuses = [await invite_by_form(owner, f"p{number}@example.com") for number in range(FROM_MERCHANT_A_DAY + 2)]
    assert statuses == [200] * (FROM_MERCHANT_A_DAY - 1) + [429] * 3


async def test_what_is_counted_does_not_say_who_may_join(sqlite_console: ConsoleFixture) -> None:
    """Staff are sent nothing, but the team sees the same as for a new person."""
    console = sqlite_console
    await console.joined("root@example.com", None, "admin")
    owner = await owner_of_first(console)
    for address in ("root@example.com", "new@example.com"):
        statuses = [await invite_by_form(owner, address) for _ in range(FROM_MERCHANT_TO_ADDRESS_A_DAY + 1)]
        assert statuses == [200] * FROM_MERCHANT_TO_ADDRESS_A_DAY + [429]


async def test_who_accepts_takes_no_name_with_an_address(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    browser = console.browser()
    await browser.get(await console.invited(OWNER, await console.merchant()))
    page = await browser.submit("password", password=PASSWORD, name="Awa www.evil.example")
    assert page.status == 422
    assert "ni adresse web ni adresse e-mail" in page.text


async def test_no_merchant_has_a_name_with_an_address(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    admin = await console.joined("root@example.com", None, "admin")
    await admin.get("/admin/merchants/new")
    fields = {**admin.page.form("name", "after").fields, "currency": "XOF", "status": "active"}
    page = await admin.post("/admin/merchants/new", {**fields, "name": "Kora https://evil.example"})
    assert page.status == 422
    assert "ni adresse web ni adresse e-mail" in page.text


async def tries(console: ConsoleFixture, merchant: Merchant | None, email: str) -> bool:
    ctx = console.service.ctx
    wanted = Invitation(email, "Ada", "fr", "reader" if merchant else "support", merchant)
    try:
        async with ctx.db.transaction() as tx:
            await invite(tx, Outbox(ctx.vault), wanted, Actor("Staff", "root"), "https://x.example", ctx.clock.now())
    except TooManyInvitations:
        return False
    return True


@pytest.mark.both_databases
async def test_the_limits_hold_in_races_and_for_a_day(console: ConsoleFixture) -> None:
    merchants = [await console.merchant(f"Boutique {number}") for number in range(5)]
    first = await asyncio.gather(*(tries(console, merchants[0], f"p{number}@example.com") for number in range(40)))
    assert sum(first) == FROM_MERCHANT_A_DAY
    same = await asyncio.gather(*(tries(console, each, "one@example.com") for each in merchants[1:] for _ in range(8)))
    assert sum(same) == TO_ADDRESS_A_DAY, "of four merchants, three each at most"
    console.service.clock.advance(24 * 3600)
    assert await tries(console, merchants[0], "one@example.com")
