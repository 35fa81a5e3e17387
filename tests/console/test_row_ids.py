"""A number that is no row's id names no row: it is not cut until it names another one."""

import pytest

from guichet.accounts import passkeys, sessions, users
from guichet.domain.accounts import UserId
from tests.console.conftest import ConsoleFixture
from tests.console.test_passkeys import add, token
from tests.fakes.passkey_device import PasskeyDevice

ADA = UserId(2)


@pytest.mark.parametrize("wrong", ["{:018}0", "{:018}9", "x", "-{}", "9" * 30, " {}"])
async def test_a_wrong_id_in_a_form_is_an_unknown_page(sqlite_console: ConsoleFixture, wrong: str) -> None:
    console, merchant = sqlite_console, await sqlite_console.merchant()
    owner = await console.joined("awa@example.com", merchant)
    ada = await console.joined("ada@example.com", merchant, "finance")
    await console.browser().sign_in("ada@example.com")
    await console.joined("new@example.com", await console.merchant("Balafon"))
    db, now = console.service.ctx.db, console.service.ctx.clock.now()
    team, csrf = f"/console/{merchant.id}/live/team", await token(owner)
    named = {"csrf": csrf, "user": wrong.format(ADA)}
    assert (await owner.post(team, {**named, "act": "role", "role": "reader"})).status == 404
    assert (await owner.post(team, {**named, "act": "remove", "confirm": "yes"})).status == 404
    assert [role for role, user in await users.team(db, merchant.id) if user.id == ADA] == ["finance"]
    await owner.get(team)
    page = await owner.submit("email", act="invite", email="new@example.com", name="Nouveau", role="reader")
    invitation = int(page.form("invitation").fields["invitation"])
    form = {"csrf": csrf, "act": "withdraw", "invitation": wrong.format(invitation)}
    assert (await owner.post(team, form)).status == 404
    assert "new@example.com" in (await owner.get(team)).text
    kept = [session.id for session in await sessions.of_user(db, ADA, now)]
    csrf = (await ada.get("/console/security")).forms()[0].fields["csrf"]
    for session in kept:
        form = {"csrf": csrf, "act": "end", "session": wrong.format(session)}
        assert (await ada.post("/console/security", form)).status == 404
    site = console.service.ctx.settings.browser_url
    await add(ada, PasskeyDevice(site.partition("://")[2].partition(":")[0].partition("/")[0], site))
    [key] = await passkeys.of_user(db, ADA)
    form = {"csrf": await token(ada), "act": "remove_passkey", "passkey": wrong.format(key.id)}
    assert (await ada.post("/console/security", form)).status == 404
    assert [other.id for other in await passkeys.of_user(db, ADA)] == [key.id]
    assert [session.id for session in await sessions.of_user(db, ADA, now)] == kept
