"""What a live key does to the webhooks: rows in the team's activity, and mails to the owners."""

import asyncio
import re

import pytest
from sqlalchemy import select

from guichet.audit_log import entries
from guichet.clock import HOUR, Instant, later
from guichet.db.tables import api_keys, audit_log, key_acts, mails
from guichet.domain.audit_log import Act, Actor
from guichet.domain.mails import MailKind
from guichet.mail.messages import text_of
from guichet.mail.outbox import Outbox
from tests.console.conftest import ConsoleFixture
from tests.console.test_developers import merchant_of
from tests.service_fixture import MerchantClient

_URL = "https://boutique.example/hook"
_KIND: MailKind = "key_used_on_webhooks"


async def _acts(console: ConsoleFixture) -> list[tuple[str, str | None]]:
    rows = await console.service.ctx.db.scan(select(key_acts.c.action, key_acts.c.detail).order_by(key_acts.c.id))
    return [tuple(row) for row in rows]


async def _mails(console: ConsoleFixture) -> list[tuple[str, str, Instant]]:
    """Recipient, text and when it is due, or was written."""
    ctx = console.service.ctx
    columns = (mails.c.id, mails.c.recipient, mails.c.next_attempt_at, mails.c.created_at)
    rows = await ctx.db.scan(select(*columns).where(mails.c.kind == _KIND).order_by(mails.c.id))
    latest = {mail.id: mail.message for mail in await Outbox(ctx.vault).latest(ctx.db)}
    found = []
    for number, recipient, due, created_at in rows:
        message = latest[number]
        found.append((recipient, text_of(_KIND, message).body if message else "", due or created_at))
    return found


async def _put(client: MerchantClient, url: str | None = _URL, *, rotate: bool = False) -> None:
    answer = await client.put("/webhooks/endpoint", {"url": url, "rotate_secret": rotate})
    assert answer.status == 200, answer.raw


@pytest.mark.both_databases
async def test_each_change_is_a_row_and_reads_are_one_an_hour_and_key(console: ConsoleFixture) -> None:
    service = console.service
    client = await service.merchant("Kora")
    live = client.live
    for _ in range(3):
        await live.get("/webhooks/endpoint")
    await _put(live)
    await _put(live)  # Changes nothing: its answer is one more read within the hour.
    await _put(live, None, rotate=True)
    read, changed, rotated = "webhook_secret.shown", "webhook_endpoint.changed", "webhook_secret.rotated"
    assert await _acts(console) == [(read, None), (changed, _URL), (changed, None), (rotated, None)]
    service.clock.advance(3599)
    await live.get("/webhooks/endpoint")
    assert len(await _acts(console)) == 4
    service.clock.advance(1)
    await _put(live, None)
    assert (await _acts(console))[4:] == [(read, None)]
    await client.get("/webhooks/endpoint")
    await _put(client, rotate=True)
    assert len(await _acts(console)) == 5, "test keys move no money"
    logged = {action for (action,) in await service.ctx.db.scan(select(audit_log.c.action))}
    assert not any(action.startswith("webhook") for action in logged), "no program queues at the end of the log"


@pytest.mark.both_databases
async def test_reads_at_the_same_time_are_one_row(console: ConsoleFixture) -> None:
    live = (await console.service.merchant()).live
    await asyncio.gather(*(live.get("/webhooks/endpoint") for _ in range(8)))
    assert await _acts(console) == [("webhook_secret.shown", None)]
    service, other = console.service, await console.service.merchant()
    await other.live.get("/webhooks/endpoint")
    assert len(await _acts(console)) == 2, "each key for itself"
    answer = await service.merchant()
    assert (await answer.live.get("/balance")).status == 200
    assert len(await _acts(console)) == 2


@pytest.mark.both_databases
async def test_owners_are_mailed_once_an_hour_and_no_read_hides_a_change(console: ConsoleFixture) -> None:
    service = console.service
    client = await service.merchant("Kora")
    merchant = await merchant_of(console, client)
    await console.joined("awa@example.com", merchant)
    await console.joined("ada@example.com", merchant, "developer")
    live, started = client.live, service.clock.now()
    await live.get("/webhooks/endpoint")
    [(recipient, text, due)] = await _mails(console)
    assert (recipient, due) == ("awa@example.com", started)
    assert "a lu le secret" in text
    assert live.keys["live"][:12] in text
    assert live.keys["live"] not in text
    assert f"/console/{merchant.id}/live/activity" in text
    await _put(live)
    await _put(live, rotate=True)
    await _put(live, None)
    [_, (_, text, due)] = await _mails(console)
    assert due == later(started, HOUR), "the changes of this hour are told together when it has passed"
    assert "a changé l’adresse" in text
    service.clock.advance(3599)
    await _put(live)
    assert len(await _mails(console)) == 2
    service.clock.advance(1)
    await live.get("/webhooks/endpoint")
    assert len(await _mails(console)) == 2, "the second one left in this hour"
    service.clock.advance(3600)
    await live.get("/webhooks/endpoint")
    mailed = await _mails(console)
    assert [due for *_, due in mailed] == [later(started, hours * HOUR) for hours in (0, 1, 2)]
    [(mailed_at,)] = await service.ctx.db.scan(
        select(api_keys.c.owners_mailed_at).where(api_keys.c.owners_mailed_at.is_not(None))
    )
    assert mailed_at == later(started, 2 * HOUR)


async def test_a_change_that_is_not_made_leaves_nothing(sqlite_console: ConsoleFixture) -> None:
    live = (await sqlite_console.service.merchant()).live
    for body in ({"url": "x"}, {}, b"{"):
        assert (await live.put("/webhooks/endpoint", body)).status == 422
    assert await _acts(sqlite_console) == []


@pytest.mark.both_databases
async def test_the_activity_shows_keys_among_people(console: ConsoleFixture) -> None:
    ctx = console.service.ctx
    client = await console.service.merchant("Kora")
    merchant, other = await merchant_of(console, client), await console.service.merchant("Balafon")
    awa = await console.joined("awa@example.com", merchant)
    finance = await console.joined("finance@example.com", merchant, "finance")
    await _put(other.live, "https://other.example/hook")
    await _put(client.live)
    preview = client.keys["live"][:12]
    here = f"/console/{merchant.id}/live/activity"
    page = await awa.get(here)
    [first, *_] = page.text.partition('<ul class="rows">')[2].split("<li>")[1:]
    assert "Adresse des webhooks modifiée" in first
    assert f"Clé {preview}…" in first
    assert _URL in first
    assert "other.example" not in page.text
    assert _URL not in (await finance.get(here)).text, "addresses of webhooks need webhooks.view"
    assert (await awa.get(here + "?by=keys")).text.partition('<ul class="rows">')[2].count("<li>") == 1
    assert f"Clé {preview}" not in (await awa.get(here + "?by=awa@example.com")).text
    assert f"Clé {preview}" not in (await awa.get(here + "?act=key.created")).text
    for place in ("x", "1", "9" * 30, f"{'9' * 19}.1", "-1.0"):
        for name in ("before", "after"):
            assert (await awa.get(f"{here}?{name}={place}")).status == 200, place

    async def entry(number: int) -> None:
        act = Act(Actor("awa@example.com", "console"), "key.created", "key", "1", merchant.id, after={"count": number})
        async with ctx.db.transaction() as tx:
            await entries.record(tx, act, ctx.clock.now())

    expected = []
    for number in range(130):
        if number % 3 == 0:
            await entry(1000 + number)
            expected.append(str(1000 + number))
        else:
            await _put(client.live, f"https://boutique.example/{number}-hook")
            expected.append(str(number))
    pages, path = [], here
    while path:
        page = await awa.get(path)
        rows = page.text.partition('<ul class="rows">')[2].split("<li>")[1:]
        pages.append([found for row in rows for found in re.findall(r"<p>(\d{4})</p>|example/(\d+)-hook", row)])
        older = re.findall(r'href="([^"]+)" rel="next"', page.text)
        path = older[0].replace("&amp;", "&") if older else ""
    walked = [first or second for each in pages for first, second in each]
    assert walked == expected[::-1]
    for number in range(len(pages) - 1, 0, -1):
        [newer] = re.findall(r'href="([^"]+)" rel="prev"', page.text)
        page = await awa.get(newer.replace("&amp;", "&"))
        rows = page.text.partition('<ul class="rows">')[2].split("<li>")[1:]
        again = [found for row in rows for found in re.findall(r"<p>(\d{4})</p>|example/(\d+)-hook", row)]
        assert again == pages[number - 1]
