"""What people did about a merchant: who is named, what is told, and that nothing of another merchant is."""

import ast
import re
from pathlib import Path

import guichet
from guichet.audit_log import entries
from guichet.audit_log.entries import verify
from guichet.console.activity_page import NOT_SHOWN, SHOWN
from guichet.domain.audit_log import Act, Actor, Facts
from guichet.sandbox import clock as sandbox_clock
from tests.console.conftest import ConsoleFixture
from tests.console.test_webhooks import press

#: Acts whose names are put together, by the expression that does it.
_COMPOSED = {
    "merchant.": ("merchant.name_changed", "merchant.status_changed", "merchant.time_zone_changed"),
    "user.": ("user.invitation_used", "user.password_used"),
    ".settled": ("payment.settled", "refund.settled"),
}
_CONSTANTS = {
    "ADVANCED": sandbox_clock.ADVANCED,
    "RESET": sandbox_clock.RESET,
}
#: The previews of the keys below, and nothing of a random token that looks like one.
NUMBERED = re.compile(r"(?<![\w-])n(\d+)-(?![\w-])")
_NAME = re.compile(r"[a-z_]+\.[a-z_]+")


def acts_of_the_code() -> set[str]:
    """Every kind of act that the code records, as the calls that record one name it."""
    found: set[str] = set()
    for path in Path(guichet.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and _records(call):
                for value in (*call.args, *(each.value for each in call.keywords if each.arg == "action")):
                    found |= _named(value)
    return found


def _records(call: ast.Call) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    return name in ("Act", "_act", "record_read", "_record")


def _named(value: ast.expr) -> set[str]:
    if isinstance(value, ast.IfExp):
        return _named(value.body) | _named(value.orelse)
    if isinstance(value, ast.Constant) and isinstance(value.value, str) and _NAME.fullmatch(value.value):
        return {value.value}
    if isinstance(value, ast.Attribute | ast.Name):
        constant = _CONSTANTS.get(value.attr if isinstance(value, ast.Attribute) else value.id)
        return {constant} if constant else set()
    if isinstance(value, ast.JoinedStr):
        parts = [each.value for each in value.values if isinstance(each, ast.Constant)]
        return {name for start, names in _COMPOSED.items() if start in parts for name in names}
    return set()


def test_every_act_of_the_code_is_shown_to_merchants_or_kept_from_them() -> None:
    found = acts_of_the_code()
    assert len(found) > 20
    assert found <= {*SHOWN, *NOT_SHOWN}
    assert NOT_SHOWN.isdisjoint(SHOWN)


async def test_who_did_what_with_filters_and_pages(console: ConsoleFixture) -> None:
    ctx = console.service.ctx
    merchant, other = await console.merchant("Kora"), await console.merchant("Balafon")
    awa = await console.joined("awa@example.com", merchant)
    ada = await console.joined("ada@example.com", merchant, "developer")
    foreign = await console.joined("eve@example.com", other)
    await foreign.get(f"/console/{other.id}/test/developers")
    assert await press(foreign, "create", expires="") == 200
    await ada.get(f"/console/{merchant.id}/test/webhooks")
    await ada.submit("url", act="configure", url="https://localhost/<b>hook")
    secret: Facts = {"note": "SECRET", "env": "live"}
    async with ctx.db.transaction() as tx:
        for actor in (Actor("Paul", "root"), Actor("awa@example.com", "root"), Actor("nobody@example.com", "console")):
            act = Act(actor, "wallet.status_changed", "wallet", "XOF", merchant.id, "SECRET", secret, secret)
            await entries.record(tx, act, ctx.clock.now())
        act = Act(Actor("Paul", "root"), "settlement.proposed", "payment", "HIDDEN", merchant.id)
        await entries.record(tx, act, ctx.clock.now())
    here = f"/console/{merchant.id}/live/activity"
    page = await awa.get(here)
    body = page.text.partition('<ul class="rows">')[2]
    rows = [re.sub(r"<[^>]+>|\s+", " ", row) for row in body.split("<li>")[1:]]
    assert len(rows) == 8, "three of the staff, the address of the webhooks, two invitations and their acceptance"
    assert all("Guichet ·" in row and "État du solde modifié" in row for row in rows[:3])
    assert "Adresse des webhooks modifiée" in rows[3]
    assert "https://localhost/&lt;b&gt;hook" in rows[3] or "https://localhost/%3Cb%3Ehook" in rows[3]
    assert "Awa Kossou ·" in rows[3], "as every person of these tests is called"
    assert "Invitation acceptée" in rows[4]
    assert "Développement" in rows[5]
    for hidden in ("SECRET", "HIDDEN", "Paul", "Clé d’API créée</b>", "eve@"):
        assert hidden not in body
    for query, acts in (("staff", 5), ("ada@example.com", 2), ("eve@example.com&act=user.invited", 2)):
        listed = (await awa.get(f"{here}?by={query}")).text.partition('<ul class="rows">')[2]
        assert listed.count("<li>") == acts, query
    assert (await ada.get(here)).status == 403
    assert (await awa.get(f"/console/{other.id}/live/activity")).status == 403
    finance = await console.joined("finance@example.com", merchant, "finance")
    page = await finance.get(here + "?act=webhook_endpoint.changed")
    listed = page.text.partition('<ul class="rows">')[2]
    assert (listed.count("<li>"), "localhost" in listed) == (1, False), "addresses of webhooks need webhooks.view"
    async with ctx.db.transaction() as tx:
        for number in range(60):
            facts: Facts = {"preview": f"n{number}-"}
            act = Act(Actor("awa@example.com", "console"), "key.created", "key", "1", merchant.id, after=facts)
            await entries.record(tx, act, ctx.clock.now())
    first = await awa.get(here + "?act=key.created&by=awa@example.com")
    [older] = re.findall(r'href="([^"]+)" rel="next"', first.text)
    second = await awa.get(older.replace("&amp;", "&"))
    found = [re.findall(NUMBERED, page.text) for page in (first, second)]
    assert [int(number) for number in found[0] + found[1]] == list(range(59, -1, -1))
    [newer] = re.findall(r'href="([^"]+)" rel="prev"', second.text)
    assert re.findall(NUMBERED, (await awa.get(newer.replace("&amp;", "&"))).text) == found[0]
    assert (await verify(ctx.db)).fault is None
