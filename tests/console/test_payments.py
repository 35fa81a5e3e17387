"""The payments of a merchant in the console: list, search, one payment, receipt, and who may see them."""

import html
import re
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from msgspec import structs
from sqlalchemy import select, update

from guichet.back_office.anonymisation import CustomerKeys, anonymise_customer
from guichet.clock import DAY, SECOND, Instant, later, to_datetime
from guichet.console.payments.list_page import PAGE_SIZE
from guichet.db import tables
from guichet.db.engine import require
from guichet.db.references import new_reference
from guichet.domain.audit_log import Actor
from guichet.domain.merchants import Merchant
from guichet.domain.payments import Payment
from guichet.history.search import MOST_FOUND
from guichet.merchants import repository as merchants
from guichet.payments import repository
from tests.console.conftest import ConsoleBrowser, ConsoleFixture
from tests.console.links_payer import pay
from tests.service_fixture import MerchantClient

ROW = re.compile(r'<a class="go" href="[^"]*/payments/([0-9a-f-]{36})[^"]*">')


async def opened(console: ConsoleFixture, role: str = "owner") -> tuple[MerchantClient, ConsoleBrowser, str]:
    """A merchant with its keys, a browser of a member of its team, and the address of its test payments."""
    client = await console.service.merchant("Boutique Kora")
    browser = await console.joined("awa@example.com", await merchant_of(console, client), role)
    return client, browser, f"/console/{client.id}/test/payments"


async def merchant_of(console: ConsoleFixture, client: MerchantClient) -> Merchant:
    return require(await merchants.get(console.service.ctx.db, client.id))


async def copies(console: ConsoleFixture, client: MerchantClient, **changes: Any) -> list[Payment]:
    """Payments like one that was made through the API, from `since` on, a second apart; `count` of them, changed as the
    rest says."""
    db, count = console.service.ctx.db, changes.pop("count", 1)
    made = await client.pay("0000")
    first = require(await repository.by_reference(db, client.id, "test", made["reference"]))
    since = changes.pop("since", later(first.created_at, SECOND))
    rows = []
    for number in range(count):
        at = later(since, number * SECOND)
        row = structs.replace(first, reference=new_reference(at), created_at=at, updated_at=at, **changes)
        rows.append(require(await repository.insert_new(db, row, row.next_poll_at)))
    return rows


def shown(text: str) -> list[str]:
    return ROW.findall(text)


def link(text: str, rel: str) -> str | None:
    found = re.search(rf'<a href="([^"]+)" rel="{rel}">', text)
    return html.unescape(found[1]) if found else None


async def test_a_list_is_read_page_by_page_in_both_directions(console: ConsoleFixture) -> None:
    client, browser, path = await opened(console)
    page = await browser.get(path)
    assert "Aucun paiement pour l’instant" in page.text
    rows = await copies(console, client, count=2 * PAGE_SIZE + 1)
    newest_first = [row.reference for row in reversed(rows)]
    first = await browser.get(path)
    assert shown(first.text) == newest_first[:PAGE_SIZE]
    assert f"Paiements dans cette liste : {len(rows) + 1}" in first.text.replace("\u00a0", " ")
    assert link(first.text, "prev") is None
    second = await browser.get(require(link(first.text, "next")))
    assert shown(second.text) == newest_first[PAGE_SIZE : 2 * PAGE_SIZE]
    third = await browser.get(require(link(second.text, "next")))
    assert shown(third.text)[0] == newest_first[-1]
    assert len(shown(third.text)) == 2
    assert link(third.text, "next") is None
    back = await browser.get(require(link(third.text, "prev")))
    assert shown(back.text) == shown(second.text)
    again = await browser.get(require(link(back.text, "prev")))
    assert shown(again.text) == shown(first.text)
    assert link(again.text, "prev") is None


@pytest.mark.both_databases
async def test_filters_by_status_and_by_days_of_the_merchants_time_zone(console: ConsoleFixture) -> None:
    client, browser, path = await opened(console)
    ctx = console.service.ctx
    async with ctx.db.transaction() as tx:
        await tx.write(update(tables.merchants).values(time_zone="Africa/Brazzaville"))
    midnight = Instant(ctx.clock.now() // DAY * DAY)
    # Half past midnight of the next day in Brazzaville.
    at = later(midnight, DAY - 1800 * SECOND)
    [late] = await copies(console, client, since=at, status="failed", next_poll_at=None)
    today, tomorrow = (to_datetime(later(midnight, days * DAY)).date() for days in (0, 1))
    assert late.reference in (await browser.get(f"{path}?from={tomorrow}&to={tomorrow}")).text
    assert late.reference not in (await browser.get(f"{path}?to={today}")).text
    assert shown((await browser.get(f"{path}?status=failed")).text) == [late.reference]
    page = await browser.get(f"{path}?status=refunded")
    assert "Aucun paiement ne correspond" in page.text


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("status=paid", "Cet état n’existe pas."),
        ("from=20%2F11%2F2026", "Une date est attendue"),
        ("to=0001-01-01", "Une date est attendue"),
        ("from=2026-11-20&to=2026-11-19", "avant son début"),
        ("after=x", "Cette page de la liste"),
        ("before=x", "Cette page de la liste"),
        ("after=01a20732-b3a5-4a75-a304-217ffe09a2e2", "Cette page de la liste"),
    ],
)
async def test_a_bad_filter_is_explained_and_kept(sqlite_console: ConsoleFixture, query: str, message: str) -> None:
    _, browser, path = await opened(sqlite_console, "reader")
    page = await browser.get(f"{path}?{query}")
    assert page.status == 422
    assert message in page.text
    if query.startswith("from=2026"):
        assert 'value="2026-11-20"' in page.text


async def test_what_the_search_finds(console: ConsoleFixture) -> None:
    client, browser, path = await opened(console)
    await copies(console, client, phone_number="22997123456")
    [awa] = await copies(
        console, client, phone_number=None, firstname="Awa", lastname="N'DOUR-Kéré", external_id="commande 7"
    )
    [eve] = await copies(console, client, phone_number=None, firstname="ÉVE", lastname=None)
    [ama] = await copies(console, client, phone_number=None, firstname="Ama", lastname="D'Almeida `Da")
    [new] = await copies(console, client, phone_number="2290197123456")

    async def found(typed: str) -> list[str]:
        page = await browser.get(f"{path}?q={quote(typed)}")
        assert page.status == 200
        return shown(page.text)

    for typed in ("2290197123456", "+229 01 97 12 34 56", "00229 97.12.34.56", "97-12-34-56", "01 97 12 34 56"):
        assert len(await found(typed)) == 2, typed
        assert (await found(typed))[0] == new.reference
    names = ("awa", "AWA N'D", "ndour kere", "n'dour-kéré", "N’DOUR-KÉRÉ Aw", "kéré awa")
    orders = ("commande 7", "com", "COMMANDE", awa.reference.upper())
    for _ in range(2):
        for typed in (*names, *orders):
            assert await found(f" {typed} ") == [awa.reference], typed
        assert await found(f"{awa.id:010d}") == [awa.reference]
        for typed in ("éve", "Éve", "EVE", "eve"):
            assert await found(typed) == [eve.reference], typed
        for typed in ("dalmeida", "d'almeida da", "AMA D’A", "da ama"):
            assert await found(typed) == [ama.reference], typed
        nothing = ("aw", "wa", "ommande", "97123457", "%", "_wa", "\0", "'", "9" * 300, "1" * 19, "\u202e")
        for typed in (*nothing, "3455", "4999", "5087,40"):
            assert await found(typed) == [], typed
        # From here on the worker has added the names, and the payments are no more of the last minutes.
        console.service.clock.advance(3 * 60)
        await console.service.run_worker(60)
    [again] = await copies(console, client, phone_number=None, firstname="Awa", lastname="N'Dour Kéré")
    assert await found("kere awa") == [again.reference, awa.reference]


async def test_four_digits_and_an_amount_find_what_is_recent(console: ConsoleFixture) -> None:
    client, browser, path = await opened(console, "reader")
    [old] = await copies(console, client, phone_number="22997123456", external_id="old")
    console.service.clock.advance(32 * DAY / SECOND)
    await browser.sign_in("awa@example.com")
    [new] = await copies(console, client, phone_number="2290197123456", external_id="new")
    prices = {"amount": 1234_00, "fee_amount": 21_50, "total_amount": 1255_50}
    [other] = await copies(console, client, phone_number="22997120000", external_id="other", **prices)
    for typed, wanted in (
        ("3456", [new.reference]),
        ("1234", [other.reference]),
        ("1 234", [other.reference]),
        ("1256", [other.reference]),  # What the customer was debited.
        ("1255,50", [other.reference]),
        ("1255", []),
        ("0000001234", []),  # The number of a payment.
        ("old", [old.reference]),
    ):
        page = await browser.get(f"{path}?q={quote(typed)}")
        assert shown(page.text) == wanted, typed


async def test_an_anonymised_customer_is_found_by_no_name(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    client, browser, path = await opened(console)
    await client.pay("0000", customer={"firstname": "Awa", "lastname": "Koné", "email": "awa@example.com"})
    for wait in (0, 3 * 60):
        console.service.clock.advance(wait)
        await console.service.run_worker(60)
        assert len(shown((await browser.get(f"{path}?q=kone")).text)) == 1
    ctx, customer = console.service.ctx, CustomerKeys(None, "awa@example.com")
    await anonymise_customer(ctx.db, ctx.clock, client.id, customer, Actor("awa@example.com", "console"), "asked")
    assert shown((await browser.get(f"{path}?q=kone")).text) == []
    assert await ctx.db.scan(select(tables.customer_names)) == []


async def test_what_is_searched_for_is_in_no_log(
    sqlite_console: ConsoleFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    _, browser, path = await opened(sqlite_console, "reader")
    capfd.readouterr()
    page = await browser.get(f"{path}?q=22997123456")
    assert 'value="22997123456"' in page.text
    logged = "".join(capfd.readouterr())
    assert "/{env}/payments" in logged
    assert "22997123456" not in logged


async def test_a_search_that_finds_many_says_so(console: ConsoleFixture) -> None:
    client, browser, path = await opened(console)
    await copies(console, client, count=MOST_FOUND + 1, phone_number="22997123456", firstname="Awa")
    for typed in ("97123456", "awa"):
        page = await browser.get(f"{path}?q={typed}")
        assert len(shown(page.text)) == MOST_FOUND
        assert f"seuls {MOST_FOUND} sont montrés" in page.text


async def test_one_payment_with_its_story_and_its_receipt(sqlite_console: ConsoleFixture) -> None:
    client, browser, path = await opened(sqlite_console, "reader")
    await client.put("/webhooks/endpoint", {"url": "https://localhost:9/hook"})
    callback = "https://localhost:9/own-hook"
    payment = await client.pay("0000", external_id="commande-1", metadata={"panier": 77}, callback_url=callback)
    reference = payment["reference"]
    await sqlite_console.service.run_worker()
    page = await browser.get(f"{path}/{reference}")
    for text in (
        "5 000",
        "Réussi",
        "Paiement créé par l’API",
        "Demande envoyée à MTN",
        "Webhook payment.succeeded",
        "tentative 1 sur 5",
        "commande-1",
        "GUICHET_KEY",
        "panier",
        f"{reference}/receipt.pdf",
    ):
        assert text in page.text.replace("\u00a0", " ").replace("\u202f", " "), text
    assert "sandbox" not in page.text, "no name of a provider's account"
    assert client.keys["test"] not in page.text
    assert f"{reference}/refund" not in page.text, "a reader may not refund"
    merchant = await merchant_of(sqlite_console, client)
    for role, balance, hooks in (("reader", True, False), ("developer", True, True)):
        member = await sqlite_console.joined(f"{role}@example.com", merchant, role)
        page = await member.get(f"{path}/{reference}")
        assert ("ajoutés à votre solde" in page.text, callback in page.text) == (balance, hooks), role
    receipt = await browser.get(f"{path}/{reference}/receipt")
    assert "Imprimer le reçu" in receipt.text
    assert payment["customer"]["phone_number"] not in receipt.text
    pending = await client.pay("1234")
    page = await browser.get(f"{path}/{pending['reference']}/receipt")
    assert page.path == f"{path}/{pending['reference']}", "what nobody paid has no receipt"
    assert "receipt" not in page.text


async def test_foreign_payments_do_not_exist(console: ConsoleFixture) -> None:
    _, browser, path = await opened(console)
    other = await console.service.merchant("Autre")
    theirs = (await other.pay("0000", external_id="theirs", phone_number="22997000000"))["reference"]
    await console.service.run_worker()
    csrf = {"csrf": (await browser.get(path)).form("csrf").fields["csrf"]}
    live = path.replace("/test/", "/live/")
    for address in (f"{path}/{theirs}", f"{live}/{theirs}", f"{path}/x", f"{path}/%00", f"{path}/1"):
        for page in ("", "/refund", "/receipt"):
            assert (await browser.get(address + page)).status == 404, address + page
        assert (await browser.post(f"{address}/refund", csrf)).status == 404
    for typed in (theirs, "theirs", "97000000"):
        assert shown((await browser.get(f"{path}?q={typed}")).text) == []
    assert (await browser.get(f"{path}?after={theirs}")).status == 422
    assert (await other.get(f"/payments/{theirs}")).data["status"] == "succeeded"


async def test_a_test_payment_is_no_live_one(console: ConsoleFixture) -> None:
    client, browser, path = await opened(console)
    reference = (await client.pay("0000"))["reference"]
    await console.service.run_worker()
    live = path.replace("/test/", "/live/")
    csrf = {"csrf": (await browser.get(live)).form("csrf").fields["csrf"]}
    assert shown((await browser.get(live)).text) == shown((await browser.get(f"{live}?q={reference}")).text) == []
    for page in ("", "/refund", "/receipt"):
        assert (await browser.get(f"{live}/{reference}{page}")).status == 404
    assert (await browser.post(f"{live}/{reference}/refund", csrf)).status == 404
    assert (await browser.get(f"{path}/{reference}")).status == 200


async def test_texts_of_others_are_shown_as_texts(sqlite_console: ConsoleFixture) -> None:
    """What a merchant's program, a customer or a receiver of webhooks may set, on every page of a payment."""
    client, browser, path = await opened(sqlite_console)
    evil = "<script>alert(1)</script>'\"\u202egnp\x1b[2J"
    [row] = await copies(
        sqlite_console,
        client,
        description=evil,
        external_id=evil,
        firstname=evil,
        lastname="</pre><img src=x onerror=alert(1)>",
        email=evil,
        address=evil,
        metadata='{"a": "</pre><script>\u202e"}',
        return_url="javascript:alert(1)",
        status="succeeded",
        next_poll_at=None,
    )
    for page in (
        "",
        f"?q={row.reference}",
        f"/{row.reference}",
        f"/{row.reference}/receipt",
        f"/{row.reference}/refund",
    ):
        text = (await browser.get(f"{path}{page}")).text
        assert "<script>alert" not in text
        assert "<img" not in text
        assert "</pre><" not in text.replace("</pre></details>", "")
        assert "\u202e" not in text
        assert "\x1b" not in text
        assert 'href="javascript' not in text
    searched = await browser.get(f"{path}?q=%3Cscript%3Ealert(1)%3C/script%3E%22%3E")
    assert "<script>alert" not in searched.text
    assert 'value="&lt;script&gt;' in searched.text


async def test_the_page_of_a_payment_bears_any_number_that_the_api_keeps(sqlite_console: ConsoleFixture) -> None:
    """`metadata` are kept as they were sent (D8): Python reads no integer of 5 000 digits."""
    client, browser, path = await opened(sqlite_console)
    number, fraction = "9" * 5_000, "0.30000000000000000000001"
    metadata = f'{{"a":{number},"b":{fraction}}}'
    order = f'{{"amount":5000,"operator":"mtn","phone_number":"2290197000000","external_id":"x","metadata":{metadata}}}'
    assert (await client.call("POST", "/payments", order.encode())).status == 201

    payment = require(await repository.by_external_id(sqlite_console.service.ctx.db, client.id, "test", "x"))
    page = await browser.get(f"{path}/{payment.reference}")

    assert page.status == 200
    assert f"&#34;a&#34;: {number}" in page.text
    assert f"&#34;b&#34;: {fraction}" in page.text


async def test_a_payment_of_a_checkout_session_is_found_by_its_order(console: ConsoleFixture) -> None:
    client, browser, path = await opened(console)
    order = {"amount": 5000, "description": "Robe", "external_id": "commande/42"}
    session = (await client.post("/checkout-sessions", order)).data
    await pay(console.browser(), urlsplit(session["url"]).path, "0197000000")
    [payment] = (await client.get("/payments")).data
    for typed in ("commande/42", session["id"], "COMM", "commande/"):
        assert shown((await browser.get(f"{path}?q={quote(typed, safe='')}")).text) == [payment["reference"]], typed
    page = (await browser.get(f"{path}/{payment['reference']}")).text
    assert "<dt>Session de paiement</dt><dd><bdi>commande/42</bdi></dd>" in page
    assert "Paiement créé sur la page d’une session de paiement" in page
    assert "Lien de paiement" not in page
