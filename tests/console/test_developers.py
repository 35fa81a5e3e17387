"""Keys and the log of requests in the console; and that nobody reaches those of another merchant or environment."""

import asyncio
import html
import re

import msgspec
import pytest
from sqlalchemy import func, select

from guichet.audit_log import entries as audit_log
from guichet.clock import DAY, SECOND
from guichet.db.engine import require
from guichet.db.errors import StorageUnavailable
from guichet.db.tables import api_keys, api_requests
from guichet.domain.accounts import STEP_UP_LASTS
from guichet.domain.ids import ApiKeyId
from guichet.domain.key_access import FULL_ACCESS, KEY_SCOPES
from guichet.domain.merchants import Caller, Merchant
from guichet.merchants import api_keys as stored_keys
from guichet.merchants import repository, request_log
from tests.console.conftest import ConsoleBrowser, ConsoleFixture
from tests.console.test_webhooks import acts, press
from tests.service_fixture import MerchantClient


async def merchant_of(console: ConsoleFixture, client: MerchantClient) -> Merchant:
    return require(await repository.get(console.service.ctx.db, client.id))


async def test_a_key_is_created_shown_once_used_given_an_end_and_revoked(console: ConsoleFixture) -> None:
    service = console.service
    client = await service.merchant("Boutique Kora")
    merchant = await merchant_of(console, client)
    ada = await console.joined("ada@example.com", merchant, "developer")
    here = f"/console/{merchant.id}/test/developers"
    page = await ada.get(here)
    assert page.text.count("jamais utilisée") == 1
    assert await press(ada, "create", expires="2000-01-01") == 422
    assert await press(ada, "create", expires="demain") == 422
    form = ada.page.forms()[-1].fields
    assert await press(ada, "create", expires="") == 200
    [key] = re.findall(r'id="key">(sk_test_\w{32})<', ada.page.text)
    assert 'data-copy="key" data-done="Clé copiée" hidden' in ada.page.text, "the script shows this button"
    for after in (form["after"], "", "x", "-1", "9" * 30):
        page = await ada.post(here, {**form, "act": "create", "expires": "", "after": after})
        assert (page.status, "déjà été envoyé" in page.text, "sk_test_" in page.text) == (409, True, True), after
        assert 'id="key"' not in page.text
    page = await ada.get(here)
    assert key not in page.text
    assert page.text.count(key[:12]) == 2
    user = MerchantClient(service, client.id, {"test": key})
    assert (await user.get("/balance")).status == 200
    await service.ctx.request_log.flush(service.ctx.db)
    page = await ada.get(here)
    assert page.text.count("dernier usage le") == 1
    number = next(form.fields["key"] for form in page.forms() if "key" in form.fields)
    assert await press(ada, "expire", key=number, expires="2000-01-01") == 422
    for _ in range(2):  # Sent again, as after a lost answer: one act, as the log below says.
        assert await press(ada, "expire", key=number, expires="2099-12-31") == 200
    assert "expire le 1er janvier 2100 à 00:00" in ada.page.text
    for _ in range(2):
        assert await press(ada, "revoke", key=number) == 200
        if "confirm" in ada.page.forms()[-1].fields:
            assert (await user.get("/balance")).status == 200, "the page says first what will happen"
            await ada.submit("confirm", act="revoke")
        assert "La clé est révoquée" in ada.page.text
    service.clock.advance(2)
    assert (await user.get("/balance")).status == 401
    assert await acts(console, merchant) == ["key.created", "key.expiry_set", "key.revoked"]
    assert await press(ada, "expire", key=number, expires="2099-12-31") == 422


async def test_a_key_has_the_name_that_its_merchant_gave_it(console: ConsoleFixture) -> None:
    client = await console.service.merchant("Boutique Kora")
    merchant = await merchant_of(console, client)
    ada = await console.joined("ada@example.com", merchant)
    here = f"/console/{merchant.id}/live"
    await ada.get(f"{here}/developers")
    assert await press(ada, "create", name="x" * 61) == 422
    assert await press(ada, "create", name="www.evil.example") == 422
    assert 'value="www.evil.example"' in ada.page.text, "what was typed stays"
    assert await press(ada, "create", name=" <b>Caisse") == 200
    [key] = re.findall(r'id="key">(sk_live_\w{32})<', ada.page.text)
    assert (
        f'<b>&lt;b&gt;Caisse</b> <span class="mono-text">{key[:12]}…</span>'
        in (await ada.get(f"{here}/developers")).text
    )
    assert "&lt;b&gt;Caisse" in (await ada.get(f"{here}/activity")).text
    user = MerchantClient(console.service, client.id, {"live": key}, "live")
    assert (await user.put("/webhooks/endpoint", {"url": "https://kora.example/h"})).status == 200
    assert f"Clé &lt;b&gt;Caisse · {key[:12]}…" in (await ada.get(f"{here}/activity")).text
    await console.service.ctx.request_log.flush(console.service.ctx.db)
    assert f"&lt;b&gt;Caisse · {key[:12]}…" in (await ada.get(f"{here}/developers/requests")).text


async def test_a_key_that_may_less_and_only_from_some_addresses(console: ConsoleFixture) -> None:
    service = console.service
    client = await service.merchant("Boutique Kora")
    merchant = await merchant_of(console, client)
    awa = await console.joined("awa@example.com", merchant)
    here = f"/console/{merchant.id}/live/developers"
    page = await awa.get(here)
    assert page.text.count('value="yes" checked') == len(KEY_SCOPES), "a full key, unless somebody unchecks a box"
    some = {"scopes": "offered", "payments:read": "yes", "links": "yes"}
    for wrong, told in (
        ({"scopes": "offered"}, "Cochez au moins une case"),
        ({**some, "networks": "203.0.113.7/24"}, "203.0.113.7/24 n’est ni une adresse"),
        ({**some, "networks": "<b>"}, "&lt;b&gt; n’est ni une adresse"),
        ({**some, "networks": " ".join(f"203.0.113.{n}" for n in range(21))}, "20"),
    ):
        assert await press(awa, "create", expires="", **wrong) == 422
        assert told in awa.page.text
        assert "sk_live_" not in awa.page.text.partition('id="key"')[2]
        assert awa.page.text.count('value="yes" checked') == len(wrong.keys() & set(KEY_SCOPES)), "as it was sent"
    assert await press(awa, "create", expires="", networks="127.0.0.0/8, ::ffff:203.0.113.7 127.0.0.0/8", **some) == 200
    [key] = re.findall(r'id="key">(sk_live_\w{32})<', awa.page.text)
    shown = html.unescape(re.sub(r"<[^>]+>", "", awa.page.text))
    assert "Peut seulement\u00a0: payments:read, links" in shown
    assert "Seulement depuis\u00a0: 127.0.0.0/8, 203.0.113.7" in shown
    made = MerchantClient(service, client.id, {"live": key}, "live")
    assert [(await made.get(path)).status for path in ("/payments", "/payment-links", "/refunds")] == [200, 200, 200]
    assert (await made.get("/webhooks/endpoint")).error["code"] == "insufficient_scope"
    [entry] = [each for each in await audit_log.latest(service.ctx.db) if each.action == "key.created"]
    facts = msgspec.json.decode(entry.after)
    assert (facts["scopes"], facts["networks"]) == (["payments:read", "links"], ["127.0.0.0/8", "203.0.113.7"])
    test_page = await awa.get(here.replace("/live/", "/test/"))
    assert 'name="networks"' not in test_page.text
    assert await press(awa, "create", expires="", networks="203.0.113.7") == 422, "only live keys have addresses"
    assert await press(awa, "create", expires="", scopes="offered", **dict.fromkeys(KEY_SCOPES, "yes")) == 200
    newest = (await stored_keys.not_revoked(service.ctx.db, merchant.id, "test", 1))[0]
    assert (newest.scopes, newest.networks) == (FULL_ACCESS, None)


async def test_who_changes_keys_and_that_a_fresh_factor_is_asked_for(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    service, client = console.service, await console.service.merchant()
    merchant = await merchant_of(console, client)
    awa = await console.joined("awa@example.com", merchant)
    ada = await console.joined("ada@example.com", merchant, "developer")
    here = f"/console/{merchant.id}/live/developers"
    page = await ada.get(here)
    assert "Créer une clé" not in page.text
    assert await press(ada, "create", expires="") == 403
    await awa.get(here)
    service.clock.advance(STEP_UP_LASTS / SECOND + 1)
    await press(awa, "create", expires="")
    assert awa.page.path.startswith("/console/factor?next=")
    found = await service.ctx.db.scan(select(api_keys.c.id).where(api_keys.c.merchant_id == merchant.id))
    assert len(found) == 2, "those that a merchant begins with"


@pytest.mark.both_databases
async def test_nobody_reaches_keys_and_requests_of_another_merchant_or_environment(console: ConsoleFixture) -> None:
    service = console.service
    mine, foreign = await service.merchant("Kora"), await service.merchant("Balafon")
    own = await merchant_of(console, mine)
    ada = await console.joined("ada@example.com", own, "developer")
    for client in (mine, mine.live, foreign):
        await client.get(f"/payments/of-{client.id}-{client.env}")
    await service.ctx.request_log.flush(service.ctx.db)
    rows = await service.ctx.db.scan(select(api_keys.c.id, api_keys.c.merchant_id, api_keys.c.env))
    others = [str(key) for key, merchant, env in rows if merchant != own.id or env != "test"]
    here = f"/console/{own.id}/test/developers"
    await ada.get(here)
    csrf = ada.page.forms()[-1].fields["csrf"]
    for key in (*others, "999999", "", "-1", "9" * 30, "x"):
        for act in ("revoke", "expire"):
            page = await ada.post(
                here, {"csrf": csrf, "act": act, "key": key, "expires": "2099-12-31", "confirm": "yes"}
            )
            assert page.status == 404
    left = await service.ctx.db.scan(select(api_keys.c.revoked_at, api_keys.c.expires_at))
    assert {tuple(row) for row in left} == {(None, None)}
    page = await ada.get(here + "/requests")
    assert f"/v1/payments/of-{own.id}-test" in page.text
    assert page.text.count("/v1/payments/of-") == 1
    for env in ("test", "live"):
        for path in ("", "/requests"):
            assert (await ada.get(f"/console/{foreign.id}/{env}/developers{path}")).status == 403
        page = await ada.post(f"/console/{foreign.id}/{env}/developers", {"csrf": csrf, "act": "create"})
        assert page.status == 403


@pytest.mark.both_databases
async def test_the_log_of_requests_has_filters_and_pages(console: ConsoleFixture) -> None:
    service, ctx = console.service, console.service.ctx
    client = await service.merchant()
    merchant = await merchant_of(console, client)
    await client.pay("0000", external_id="o-1")
    await client.get("/payments/<b>%20%2Fb?token=secret")
    await client.post("/payments", {"amount": 0})
    await client.get("/payments?page=2")
    await service.call("GET", "/v1/balance", headers={"Authorization": "Bearer sk_test_" + "x" * 32})
    await ctx.request_log.flush(ctx.db)
    logged = await ctx.db.scan(select(api_requests).order_by(api_requests.c.id))
    assert [(row[5], row[6], row[7], row[9]) for row in logged] == [
        ("POST", "/v1/payments", 201, None),
        ("GET", "/v1/payments/<b>%20%2Fb", 404, "not_found"),
        ("POST", "/v1/payments", 422, "invalid_request"),
        ("GET", "/v1/payments", 200, None),
    ]
    assert all("secret" not in row[6] and row[8] > 0 for row in logged)
    ada = await console.joined("ada@example.com", merchant, "developer")
    here = f"/console/{merchant.id}/test/developers/requests"
    assert (await ada.get(here + "?status=4")).text.count('data-label="Date"') == 2
    page = await ada.get(here + "?status=4&begins=/v1/payments/")
    assert page.text.count('data-label="Date"') == 1
    assert "not_found" in page.text
    assert "/v1/payments/&lt;b&gt;%20%2Fb" in page.text
    assert (await ada.get(here + "?begins=/v1/x&before=x&after=-1&status=9")).text.count('data-label="Date"') == 0
    many = {name: value for name, value in zip(api_requests.c.keys(), logged[0], strict=True) if name != "id"}
    await ctx.db.write_many(request_log._INSERT, [{**many, "path": f"/n/{number}"} for number in range(100)])
    newest = await ada.get(here + "?begins=/n/")
    [older] = re.findall(r'href="([^"]+)" rel="next"', newest.text)
    second = await ada.get(older.replace("&amp;", "&"))
    found = [re.findall(r"/n/(\d+)", page.text.partition("<tbody>")[2]) for page in (newest, second)]
    assert [int(number) for number in found[0] + found[1]] == list(range(99, -1, -1))
    assert 'rel="next"' not in second.text
    [newer] = re.findall(r'href="([^"]+)" rel="prev"', second.text)
    back = await ada.get(newer.replace("&amp;", "&"))
    assert re.findall(r"/n/(\d+)", back.text.partition("<tbody>")[2]) == found[0]


@pytest.mark.both_databases
async def test_the_log_is_sampled_and_pruned(console: ConsoleFixture) -> None:
    service, ctx = console.service, console.service.ctx
    client = await service.merchant()
    for _ in range(request_log.SAMPLE + 5):
        await client.get("/payment-modes")
    await ctx.request_log.flush(ctx.db)
    assert await _rows(console) == request_log.SAMPLE
    service.clock.advance(request_log.SAMPLE_TIME / SECOND)
    await client.get("/balance")
    await ctx.request_log.flush(ctx.db)
    assert await _rows(console) == request_log.SAMPLE + 1, "some again ten seconds later"
    await service.run_worker(7 * DAY / SECOND - 0.5)
    assert await _rows(console) == 1
    await service.run_worker(3700)
    assert await _rows(console) == 0


@pytest.mark.both_databases
async def test_a_path_is_logged_as_it_was_sent(console: ConsoleFixture) -> None:
    """Whatever a path may hold, on both databases: a batch that one refused would be tried for ever."""
    service, ctx = console.service, console.service.ctx
    client = await service.merchant()
    sent = (
        "/payments/\\\\n\\u0000\"'`{}[]|^<>~!$&();,+=@:*",
        "/payments/%00%01%1F%7F%ED%A0%80%F0%9F%98%80%C3%A9%zz%",
        "/payments/NULL",
        "/payments/" + "x" * 3000,
    )
    for path in sent:
        assert (await client.get(path)).status == 404
    await ctx.request_log.flush(ctx.db)
    rows = await ctx.db.scan(select(api_requests.c.path).order_by(api_requests.c.id))
    assert [row[0] for row in rows] == [f"/v1{path}"[:200] for path in sent]
    ada = await console.joined("ada@example.com", await merchant_of(console, client), "developer")
    page = await ada.get(f"/console/{client.id}/test/developers/requests")
    shown = html.unescape(page.text)
    assert all(row[0] in shown for row in rows)


@pytest.mark.both_databases
async def test_the_oldest_rows_go_when_a_merchant_has_too_many(console: ConsoleFixture) -> None:
    """With the real limits the first rows are inserted by SQL, and the last ones are told to the log without HTTP."""
    service, ctx = console.service, console.service.ctx
    client, other = await service.merchant(), await service.merchant()
    for each in (client, other):
        await each.get("/balance")
    await ctx.request_log.flush(ctx.db)
    [row] = await ctx.db.scan(select(api_requests).where(api_requests.c.merchant_id == client.id))
    many = {name: value for name, value in zip(api_requests.c.keys(), row, strict=True) if name != "id"}
    for start in range(0, request_log.MOST_ROWS, 5000):
        await ctx.db.write_many(request_log._INSERT, [{**many, "status": start + n} for n in range(5000)])
    caller = Caller(await merchant_of(console, client), "test", ApiKeyId(many["key_id"]))
    for _ in range(11):
        for _ in range(1000):
            service.clock.advance(0.1)
            ctx.request_log.add(caller, ApiKeyId(many["key_id"]), "GET", "/v1/payment-modes", 200, 0.001, None)
        await ctx.request_log.flush(ctx.db)
    mine = select(func.count(), func.min(api_requests.c.id)).where(api_requests.c.merchant_id == client.id)
    [(count, first)] = await ctx.db.scan(mine)
    assert count == request_log.MOST_ROWS + 1000, "the newest that were there at the last look, and those since"
    assert first > row[0]
    assert await _rows(console) == count + 1, "those of others stay"


async def test_requests_wait_for_the_database_but_not_without_a_limit(
    sqlite_console: ConsoleFixture,
) -> None:
    console = sqlite_console
    service, ctx = console.service, console.service.ctx
    client = await service.merchant()
    log, key = ctx.request_log, next(iter(await api_keys_of(console, client.id)))
    await client.get("/balance")
    with pytest.raises(StorageUnavailable):
        await log.flush(Unavailable())
    await log.flush(ctx.db)
    assert await _rows(console) == 1
    caller = Caller(await merchant_of(console, client), "test", key)
    for number in range(request_log.MOST_WAITING + 10):
        service.clock.advance(0.1)
        log.add(caller, key, "GET", f"/{number}", 200, 0.001, None)
    await log.flush(ctx.db)
    assert await _rows(console) == 1 + request_log.MOST_WAITING


class Unavailable:
    """A database that does not answer."""

    async def write_many(self, *_: object) -> None:
        raise StorageUnavailable("away")


async def api_keys_of(console: ConsoleFixture, merchant_id: int) -> list[ApiKeyId]:
    return [
        key
        for (key,) in await console.service.ctx.db.scan(
            select(api_keys.c.id).where(api_keys.c.merchant_id == merchant_id)
        )
    ]


async def _rows(console: ConsoleFixture) -> int:
    return int((await console.service.ctx.db.scan(select(func.count()).select_from(api_requests)))[0][0])


async def test_the_test_clock_is_advanced_once_by_each_form_and_in_test_only(console: ConsoleFixture) -> None:
    service, client = console.service, await console.service.merchant()
    merchant = await merchant_of(console, client)
    ada = await console.joined("ada@example.com", merchant, "developer")
    await client.pay(test_scenario="expired")
    here = f"/console/{merchant.id}/test/developers/clock"
    assert "l’heure réelle" in (await ada.get(here)).text
    form = {**ada.page.form("seen").fields, "act": "clock_advance", "number": "2", "unit": "d"}
    for wrong in ({"number": "0"}, {"number": "367"}, {"number": "x"}, {"unit": "y"}, {"seen": ""}, {"act": ""}):
        changed = {**form, "number": "", **wrong} if "act" in wrong else {**form, **wrong}
        assert (await ada.post(here, changed)).status == 422, wrong
    both = [ConsoleBrowser(service, dict(ada.cookies)) for _ in range(2)]
    answers = await asyncio.gather(*(each.post(here, form) for each in both))
    assert sorted(each.status for each in answers) == [200, 409]
    page = await ada.get(here)
    assert "En avance de 2 j 0 h 0 min" in page.text
    await service.run_worker()
    assert [each["status"] for each in (await client.get("/payments")).data] == ["failed"]
    for _ in range(2):
        page = await ada.post(here, {"csrf": form["csrf"], "act": "clock_reset"})
    assert "l’heure réelle" in page.text
    assert await acts(console, merchant) == ["test_clock.advanced", "test_clock.reset"]
    owner = await console.joined("awa@example.com", merchant)
    live = here.replace("/test/", "/live/")
    page = await owner.get(live)
    assert "n’existe que dans l’environnement de test" in page.text
    page = await owner.post(live, {**form, "csrf": page.forms()[0].fields["csrf"]})
    assert (page.status, len(await acts(console, merchant))) == (422, 2)
