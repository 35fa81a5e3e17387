"""The team of a merchant: who sees it, who changes it, and that nobody reaches the team of another merchant."""

import re

import pytest

from guichet.accounts import people, users
from guichet.clock import SECOND
from guichet.db.engine import require
from guichet.domain.accounts import STEP_UP_LASTS
from guichet.domain.audit_log import Actor
from guichet.domain.roles import MERCHANT_ROLES, may_as_merchant
from guichet.mail.messages import text_of
from guichet.mail.outbox import Outbox
from tests.console.conftest import ConsoleFixture


@pytest.mark.parametrize("role", MERCHANT_ROLES)
async def test_who_sees_and_changes_a_team(sqlite_console: ConsoleFixture, role: str) -> None:
    console = sqlite_console
    merchant = await console.merchant()
    await console.joined("owner@example.com", merchant)
    browser = await console.joined("x@example.com", merchant, role)
    page = await browser.get(f"/console/{merchant.id}/live/team")
    sees, changes = (may_as_merchant(role, right, "live") for right in ("team.view", "team.change"))  # type: ignore[arg-type]
    assert page.status == (200 if sees else 403)
    assert ("Inviter quelqu’un" in page.text) is changes
    await browser.get("/console")
    fields = {"csrf": browser.page.form("csrf").fields["csrf"], "act": "invite", "role": "reader", "name": "Ada"}
    page = await browser.post(f"/console/{merchant.id}/live/team", {**fields, "email": "new@example.com"})
    assert (page.status == 200) is changes
    assert ("new@example.com" in {mail.recipient for mail in await console.mails()}) is changes


async def test_nobody_reaches_the_team_of_another_merchant(
    console: ConsoleFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    own, foreign = await console.merchant("Kora"), await console.merchant("Balafon")
    await console.joined("ada@example.com", foreign)
    browser = await console.joined("awa@example.com", own)
    csrf = (await browser.get("/console")).form("csrf").fields["csrf"]
    fields = {"csrf": csrf, "act": "invite", "role": "owner", "name": "T"}
    for merchant_id in (foreign.id, 999_999, 10**17):
        page = await browser.get(f"/console/{merchant_id}/live/team")
        assert page.status == 403
        assert "Balafon" not in page.text
        page = await browser.post(f"/console/{merchant_id}/live/team", {**fields, "email": "t@example.com"})
        assert page.status == 403
    theirs = (await browser.get(f"/console/{own.id}/live/team")).text
    assert "ada@example.com" not in theirs
    assert "Traceback" not in "".join(capsys.readouterr()), "a refusal is no bug"


async def test_an_owner_invites_changes_and_removes(console: ConsoleFixture) -> None:
    merchant = await console.merchant()
    owner = await console.joined("awa@example.com", merchant)
    cashier = await console.joined("ada@example.com", merchant, "cashier")
    await owner.get(f"/console/{merchant.id}/live/team")
    page = await owner.submit("email", act="invite", email="New@Example.com", name="Nouveau", role="reader")
    assert "new@example.com" in page.text
    ada = next(form for form in page.forms() if form.fields.get("user") == "2")
    page = await owner.post(page.path, {**ada.fields, "act": "role", "role": "finance"})
    assert page.status == 200
    assert (await cashier.get("/console")).path == "/console/factor/setup", "the role counts at once"
    page = await owner.post(page.path, {**ada.fields, "act": "role", "role": "cashier"})
    assert (await cashier.get(f"/console/{merchant.id}/live/cash-desk")).status == 200
    page = await owner.post(page.path, {**ada.fields, "act": "remove"})
    assert ("Retirer Awa Kossou" in page.text, "ada@example.com" in page.text) == (True, True), (
        "it says what it is about"
    )
    assert ("C’est vous" in page.text, "pour cette personne" in page.text) == (False, True)
    assert (await cashier.get(f"/console/{merchant.id}/live/cash-desk")).status == 200, "nothing has happened yet"
    page = await owner.submit("confirm", act="remove")
    assert "ada@example.com" not in page.text
    assert (await cashier.get(f"/console/{merchant.id}/live/cash-desk")).status == 403
    awa = next(form for form in page.forms() if form.fields.get("user") == "1")
    page = await owner.post(page.path, {**awa.fields, "act": "remove"})
    assert "C’est vous" in page.text
    assert "Quitter l’équipe" in page.text
    assert "il vous faudra une nouvelle invitation" in page.text
    assert ("cette personne" in page.text, "Retirer" in page.text) == (False, False)
    page = await owner.submit("confirm", act="remove")
    assert page.status == 409
    assert "titulaire" in page.text


async def test_an_owner_learns_nothing_about_an_address_but_that_it_was_invited(console: ConsoleFixture) -> None:
    """A new person, an account of another merchant's team, the staff, a disabled account: one answer."""
    kora, balafon = await console.merchant("Kora"), await console.merchant("Balafon")
    stranger = await console.joined("stranger@example.com", balafon, "cashier")
    await console.joined("gone@example.com", balafon, "reader")
    await console.joined("staff@example.com", None, "admin")
    ctx = console.service.ctx
    async with ctx.db.transaction() as tx:
        gone = require(await users.by_email(tx, "gone@example.com"))
        await people.disable(tx, Outbox(ctx.vault), gone, Actor("Staff", "root"), ctx.clock.now())
    owner = await console.joined("awa@example.com", kora)
    team = f"/console/{kora.id}/live/team"
    known = ("stranger@example.com", "gone@example.com", "staff@example.com")
    rows = []
    for email in (*known, "new@example.com"):
        await owner.get(team)
        page = await owner.submit("email", act="invite", email=email, name="Moussa", role="owner")
        assert (page.status, page.path) == (200, team)
        [row] = [each for each in page.text.split("<li>") if email in each]
        row = re.sub(r'name="(csrf|invitation)" value="[^"]*"', "", row.partition("</li>")[0])
        rows.append(row.replace(email, "EMAIL"))
    assert set(rows) == {rows[0]}
    assert "invité" in rows[0]
    activity = (await owner.get(f"/console/{kora.id}/live/activity")).text
    assert activity.count("Personne invitée") > 4
    assert "Moussa" not in activity
    sent = [mail.recipient for mail in await console.mails()][:2]
    assert sent == ["new@example.com", "stranger@example.com"], "none to the staff, none to a disabled account"

    assert (await stranger.get(f"/console/{kora.id}/live")).status == 403
    mail = next(each for each in await console.mails() if each.recipient == "stranger@example.com")
    link = require(re.search(r"https?://[^/]+(/\S+)", text_of(mail.kind, require(mail.message)).body))[1]
    page = await stranger.get(link)
    assert "Kora" in page.text
    assert 'name="password"' not in page.text
    await stranger.post(link, page.forms()[-1].fields)
    assert stranger.page.path.startswith("/console/factor/setup"), "an owner needs a second factor from here on"
    assert (await stranger.get(link)).status == 410
    page = await owner.get(team)
    assert "Awa Kossou" in next(each for each in page.text.split("<li>") if "stranger@example.com" in each)


async def test_an_invitation_is_taken_back_by_the_team_that_sent_it(console: ConsoleFixture) -> None:
    kora, balafon = await console.merchant("Kora"), await console.merchant("Balafon")
    owner, other = await console.joined("awa@example.com", kora), await console.joined("ada@example.com", balafon)
    await owner.get(f"/console/{kora.id}/live/team")
    await owner.submit("email", act="invite", email="new@example.com", name="Moussa", role="reader")
    link, number = await console.last_link(), owner.page.form("invitation").fields["invitation"]
    page = await other.get(f"/console/{balafon.id}/live/team")
    csrf = page.forms()[-1].fields["csrf"]
    await other.post(page.path, {"csrf": csrf, "act": "withdraw", "invitation": number})
    assert (await console.browser().get(link)).status == 200
    page = await owner.submit("invitation", act="withdraw")
    assert "new@example.com" not in page.text
    assert (await console.browser().get(link)).status == 410


async def test_a_change_needs_a_fresh_factor(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    merchant = await console.merchant()
    owner = await console.joined("awa@example.com", merchant)
    await owner.get(f"/console/{merchant.id}/live/team")
    console.service.clock.advance(STEP_UP_LASTS / SECOND + 1)
    page = await owner.submit("email", act="invite", email="new@example.com", name="Nouveau", role="reader")
    assert page.path.startswith("/console/factor?next=")
    assert "new@example.com" not in (await owner.get(f"/console/{merchant.id}/live/team")).text


@pytest.mark.parametrize("changes", [{"email": "no address"}, {"name": " "}, {"role": "admin"}, {"role": ""}])
async def test_an_incomplete_invitation_is_refused_and_keeps_what_was_typed(
    sqlite_console: ConsoleFixture, changes: dict[str, str]
) -> None:
    console = sqlite_console
    merchant = await console.merchant()
    owner = await console.joined("awa@example.com", merchant)
    await owner.get(f"/console/{merchant.id}/live/team")
    typed = {"act": "invite", "email": "new@example.com", "name": "Nouveau nom", "role": "reader", **changes}
    page = await owner.submit("email", **typed)
    assert page.status == 422
    assert f'value="{typed["email"]}"' in page.text


async def test_live_webhook_addresses_and_exports_need_a_fresh_factor(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    merchant = await console.merchant()
    owner = await console.joined("awa@example.com", merchant)
    developer = await console.joined("ada@example.com", merchant, "developer")
    console.service.clock.advance(STEP_UP_LASTS / SECOND + 1)
    export = {"kind": "payments", "format": "csv", "from": "2026-11-01", "to": "2026-11-23"}
    webhook = {"act": "configure", "url": "https://localhost/hook"}
    for path, fields in (("exports", export), ("webhooks", webhook)):
        for env, asked in (("live", True), ("test", False)):
            page = await owner.get(f"/console/{merchant.id}/{env}/{path}")
            csrf = page.forms()[0].fields["csrf"]
            page = await owner.post(f"/console/{merchant.id}/{env}/{path}", {"csrf": csrf, **fields})
            assert page.path.startswith("/console/factor?next=") is asked
            assert page.status == 200
    assert (await owner.get(f"/console/{merchant.id}/live/exports/1/file")).path.startswith("/console/factor?next=")

    page = await developer.get(f"/console/{merchant.id}/live/webhooks")
    page = await developer.post(page.path, {"csrf": page.forms()[0].fields["csrf"], **webhook})
    assert page.path.startswith("/console/factor/setup?next="), "who has no second factor is led to one, and told why"
    assert "ce que vous voulez faire, demande un code" in page.text
    assert (await developer.submit("code", code="000000")).status == 422
    again = re.search(r'href="(/console/factor/setup\?next=[^"]+)"', developer.page.text)
    assert again is not None
    await developer.get(again[1])
    await console.set_up(developer)
    assert f'href="/console/{merchant.id}/live/webhooks?repeat=yes"' in developer.page.text, "and goes on from there"
    page = await developer.get(f"/console/{merchant.id}/live/webhooks")
    page = await developer.post(page.path, {"csrf": page.forms()[0].fields["csrf"], **webhook})
    assert "https://localhost/hook" in page.text
