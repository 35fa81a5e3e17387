"""Webhooks in the console: the endpoint, its secret, test events, the log of deliveries, sending again; and that nobody
reaches those of another merchant or environment."""

import asyncio
import re

import pytest
from sqlalchemy import bindparam, select, update

from guichet.audit_log import entries
from guichet.clock import DAY, SECOND
from guichet.db.engine import require
from guichet.db.tables import user_sessions, webhook_deliveries
from guichet.domain.accounts import STEP_UP_LASTS
from guichet.domain.merchants import Merchant
from guichet.http_client import HttpClient
from guichet.merchants import repository
from tests.console.conftest import ConsoleBrowser, ConsoleFixture
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.http_server import ReceivedRequest, answers
from tests.webhooks.receivers import receiver

HOSTILE = b"<script>alert(1)</script>\x1b[2J\xe2\x80\xae\xff\0" + b"x" * 600


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority.create(tmp_path_factory.mktemp("ca"))


async def refuses(writer: asyncio.StreamWriter, request: ReceivedRequest) -> None:
    head = b"HTTP/1.1 500 No\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(HOSTILE)
    await answers(head + HOSTILE)(writer, request)


async def acts(console: ConsoleFixture, merchant: Merchant) -> list[str]:
    """What was done about the merchant in the console, oldest first."""
    found = await entries.latest(console.service.ctx.db)
    here = [each for each in reversed(found) if each.merchant_id == merchant.id and each.os_user == "console"]
    return [each.action for each in here if each.action != "user.invitation_used"]


async def press(browser: ConsoleBrowser, act: str, **fields: str) -> int:
    """Sends a form with the tokens of the last one of the present page; the status of the answer."""
    form = browser.page.forms()[-1].fields
    tokens: dict[str, str] = {name: form[name] for name in ("csrf", "after") if name in form}
    path = browser.page.path.partition("?")[0]
    return (await browser.post(path, {**tokens, "act": act, **fields})).status


async def test_an_endpoint_a_test_event_its_answer_and_sending_it_again(
    console: ConsoleFixture, authority: CertificateAuthority
) -> None:
    service, merchant = console.service, await console.merchant()
    ada = await console.joined("ada@example.com", merchant, "developer")
    here = f"/console/{merchant.id}/test/webhooks"
    async with receiver(authority, refuses) as server:
        page = await ada.get(here)
        assert await press(ada, "configure", url="http://not https") == 422
        assert 'value="http://not https"' in ada.page.text
        page = await ada.submit("url", act="configure", url=server.url())
        assert "enregistrée" in page.text
        assert await press(ada, "test", event="webhook.test") == 200
        at = ada.page.path
        assert 'data-refresh="3"' in ada.page.text
        await service.run_worker()
        page = await ada.get(at)
        assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J\\u202e" in page.text
        assert "<script>alert" not in page.text
        assert "x…</pre>" in page.text
        assert "x" * 500 not in page.text
        assert "<b>500</b>" in page.text
        assert (await ada.get(here + "/deliveries?status=failed")).text.count("/webhooks/deliveries/") == 0
        for seconds in (10, 60, 300, 900, 900):
            await ada.get(here)  # Her session would end after half an hour.
            await service.run_worker(seconds)
        page = await ada.get(here + "/deliveries?status=failed&event=webhook.test")
        assert page.text.count('data-label="État"') == 1
        assert "Envois échoués" in (await ada.get(here)).text
        page = await ada.get(at)
        assert page.text.count("<b>500</b>") == 5
        page = await ada.post(at, {"csrf": page.forms()[-1].fields["csrf"]})
        assert "0 sur 5" in page.text
        assert (await ada.post(at, {"csrf": page.forms()[-1].fields["csrf"]})).status == 409, "it waits already"
        await service.run_worker()
    bodies = {request.body for request in server.received}
    assert (len(server.received), len(bodies)) == (6, 1), "the same bytes, with the same id"
    assert await acts(console, merchant) == ["webhook_endpoint.changed", "webhook_test.sent", "delivery.resent"]


@pytest.mark.both_databases
async def test_failed_deliveries_are_sent_again_together_and_the_log_has_pages(console: ConsoleFixture) -> None:
    service, merchant = console.service, await console.merchant()
    ada = await console.joined("ada@example.com", merchant, "developer")
    here = f"/console/{merchant.id}/test/webhooks"
    await ada.get(here)
    await ada.submit("url", act="configure", url="https://localhost:1/hook")
    for _ in range(30):
        service.clock.advance(0.001)
        assert await press(ada, "test", event="webhook.test") == 200
        await ada.get(here)
    for seconds in (0, 10, 60, 300, 900, 900):
        await ada.get(here)
        await service.run_worker(seconds)
    first = await ada.get(here + "/deliveries?status=failed")
    assert "Envois\u00a0: 30" in first.text
    assert '<option value="day" selected>' in first.text
    shown = re.findall(r"/deliveries/([0-9a-f-]{36})", first.text)
    [older] = re.findall(r'href="([^"]+)" rel="next"', first.text)
    assert 'rel="prev"' not in first.text
    second = await ada.get(older.replace("&amp;", "&"))
    rest = re.findall(r"/deliveries/([0-9a-f-]{36})", second.text)
    assert (len(shown), len(rest), len({*shown, *rest})) == (25, 5, 30)
    [newer] = re.findall(r'href="([^"]+)" rel="prev"', second.text)
    assert 'rel="next"' not in second.text
    back = await ada.get(newer.replace("&amp;", "&"))
    assert re.findall(r"/deliveries/([0-9a-f-]{36})", back.text) == shown
    assert await press(ada, "resend", since="century") == 422
    await ada.get(here + "/deliveries")
    strange = "11111111-2222-4333-8444-555555555555"
    assert await press(ada, "chosen", **{shown[0]: "resend", strange: "resend"}) == 404
    await ada.get(here + "/deliveries")
    assert await press(ada, "chosen", **{shown[0]: "resend", rest[0]: "resend"}) == 200
    assert "remis en file\u00a0: 2." in ada.page.text
    assert f'name="{shown[0]}"' not in ada.page.text, "it is on its way"
    assert await press(ada, "chosen", **{shown[0]: "resend", shown[1]: "resend"}) == 200
    assert ("remis en file\u00a0: 1." in ada.page.text, "sans adresse\u00a0: 1." in ada.page.text) == (True, True)
    assert (await acts(console, merchant))[-3:] == ["delivery.resent"] * 3
    await ada.get(here + "/deliveries")
    assert await press(ada, "resend", since="day") == 200
    assert "remis en file\u00a0: 27." in ada.page.text
    assert (await acts(console, merchant))[-1] == "deliveries.resent"
    assert "Envois\u00a0: 0" in (await ada.get(here + "/deliveries?payment_reference=nothing")).text
    older_failures = {"status": "failed", "next_attempt_at": None, "created_at": service.clock.now() - 2 * DAY}
    await service.ctx.db.write(update(webhook_deliveries).values(older_failures))
    assert '<option value="week" selected>' in (await ada.get(here + "/deliveries")).text, (
        "the failures shown are older"
    )


async def test_the_secret_is_shown_on_demand_and_replaced_after_a_fresh_factor(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    service = console.service
    client = await service.merchant("Boutique Kora")
    await client.live.put("/webhooks/endpoint", {"url": "https://localhost/hook"})
    secret = (await client.live.get("/webhooks/endpoint")).data["secret"]
    merchant = require(await repository.get(service.ctx.db, client.id))
    awa = await console.joined("awa@example.com", merchant)
    here = f"/console/{merchant.id}/live/webhooks"
    page = await awa.get(here)
    assert secret not in page.text
    assert await press(awa, "show_secret") == 200
    assert f'id="secret">{secret}<' in awa.page.text
    assert 'data-copy="secret"' in awa.page.text
    assert secret not in (await awa.get(here)).text
    assert await press(awa, "rotate") == 200
    new = (await client.live.get("/webhooks/endpoint")).data
    assert new["secret"] != secret
    assert new["url"] == "https://localhost/hook"
    assert new["secret"] not in awa.page.text
    service.clock.advance(STEP_UP_LASTS / SECOND + 1)
    for act in ("show_secret", "rotate", "disable"):
        await awa.get(here)
        await press(awa, act)
        assert awa.page.path.startswith("/console/factor?next=")
    assert (await client.live.get("/webhooks/endpoint")).data["secret"] == new["secret"]
    # A fresh factor, without waiting for the next code.
    await service.ctx.db.write(update(user_sessions).values(factor_at=bindparam("now")), now=service.clock.now())
    assert awa.page.form("code").fields["next"] == f"{here}?repeat=yes"
    assert "Rien n’a encore été fait" in (await awa.get(f"{here}?repeat=yes")).text
    assert await press(awa, "disable") == 200
    assert (await client.live.get("/webhooks/endpoint")).data["url"] is None
    assert await press(awa, "test") == 409
    done = ["webhook_secret.shown", "webhook_secret.rotated", "webhook_endpoint.changed"]
    assert await acts(console, merchant) == done


async def test_the_name_in_an_address_is_looked_up_when_it_is_saved_only(
    sqlite_console: ConsoleFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[str] = []

    async def unreachable_host(_: HttpClient, url: str) -> str:
        looked_up.append(url)
        return "hook.example"

    monkeypatch.setattr(HttpClient, "unreachable_host", unreachable_host)
    ada = await sqlite_console.joined("ada@example.com", await sqlite_console.merchant(), "developer")
    [merchant] = await repository.all_merchants(sqlite_console.service.ctx.db)
    here = f"/console/{merchant.id}/test/webhooks"
    await ada.get(here)
    assert await press(ada, "configure", url="https://hook.example/a") == 200
    saved = ada.page
    assert ('role="alert"' in saved.text, looked_up) == (True, ["https://hook.example/a"])
    assert 'role="alert"' in (await ada.get(saved.path)).text
    assert 'role="alert"' not in (await ada.get(f"{here}?warning=%3Cb%3E")).text
    assert len(looked_up) == 1, "however often the page is loaded"


@pytest.mark.both_databases
async def test_nobody_reaches_deliveries_of_another_merchant_or_environment(console: ConsoleFixture) -> None:
    service, own = console.service, await console.merchant("Kora")
    foreign = await service.merchant("Balafon")
    await foreign.put("/webhooks/endpoint", {"url": "https://localhost:1/hook"})
    theirs = (await foreign.post("/webhooks/test")).data["delivery_id"]
    ada = await console.joined("ada@example.com", own, "developer")
    here = f"/console/{own.id}/test/webhooks"
    await ada.get(here)
    await ada.submit("url", act="configure", url="https://localhost:1/hook")
    await press(ada, "test", event="webhook.test")
    mine = ada.page.path.rpartition("/")[2]
    csrf = {"csrf": ada.page.forms()[-1].fields["csrf"]}
    for wanted, count in (
        (f"{mine}", 1),
        (f"{mine}&status=failed", 0),
        (f"{mine}&event=payment.failed", 0),
        (theirs, 0),
    ):
        page = await ada.get(here + f"/deliveries?payment_reference={wanted}")
        assert f"Envois\u00a0: {count}" in page.text, "a delivery's id will do, of this merchant"
    before = await service.ctx.db.scan(select(webhook_deliveries).order_by(webhook_deliveries.c.id))
    for reference, env in ((theirs, "test"), (mine, "live"), ("x" * 36, "test"), ("%00", "test")):
        at = f"/console/{own.id}/{env}/webhooks/deliveries/{reference}"
        assert (await ada.get(at)).status == 404
        assert (await ada.post(at, csrf)).status == 404
        assert (await ada.get(f"/console/{own.id}/{env}/webhooks/deliveries?after={reference}")).status == 404
    payment = await foreign.pay("0000")
    page = await ada.get(here + f"/deliveries?payment_reference={payment['reference']}")
    assert "Envois\u00a0: 0" in page.text
    for path in ("", "/deliveries", f"/deliveries/{theirs}"):
        assert (await ada.get(f"/console/{foreign.id}/test/webhooks{path}")).status == 403
        assert (await ada.post(f"/console/{foreign.id}/test/webhooks{path}", {**csrf, "act": "disable"})).status == 403
    assert (await foreign.get("/webhooks/endpoint")).data["url"] == "https://localhost:1/hook"
    after = await service.ctx.db.scan(select(webhook_deliveries).order_by(webhook_deliveries.c.id))
    assert [tuple(row) for row in before] == [tuple(row) for row in after][: len(before)]
