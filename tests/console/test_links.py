"""Payment links in the console: making, listing, sharing and closing them, and that nobody reaches another's."""

import html
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from guichet.audit_log import entries as audit_log
from guichet.clock import iso
from guichet.console.links.link_pages import PAGE_SIZE
from guichet.db.engine import require
from guichet.domain.merchants import Caller, Merchant
from guichet.domain.payment_links import PaymentLink
from guichet.domain.roles import MERCHANT_ROLES, may_as_merchant
from guichet.links import repository as link_repository
from guichet.links.links import create_link, requested_link
from guichet.links.repository import LinkList
from guichet.merchants import repository as merchants
from tests.console.conftest import ConsoleFixture
from tests.console.links_payer import hosted_path, pay

XSS = '<script>alert("x")</script>&\'"{{7*7}}'


async def links_of(console: ConsoleFixture, merchant: Merchant, env: Any = "live") -> list[PaymentLink]:
    return await link_repository.walk(console.service.ctx.db, LinkList(merchant.id, env), 100)


async def link_in(console: ConsoleFixture, merchant: Merchant, env: Any = "live", **more: str) -> PaymentLink:
    """A link made by the API's own function; `more`: members of its body as JSON."""
    body = {"amount": "5000", "description": '"Commande 42"', **more}
    raw = "{" + ",".join(f'"{name}":{value}' for name, value in body.items()) + "}"
    ctx = console.service.ctx
    caller = Caller(merchant, env)
    return (await create_link(ctx.db, caller, requested_link(ctx.clock, ctx.settings, caller, raw.encode()))).link


async def test_a_link_is_made_shown_paid_and_closed(console: ConsoleFixture) -> None:
    merchant = await console.merchant()
    browser = await console.joined("awa@example.com", merchant, "cashier")
    base = f"/console/{merchant.id}/test/links"
    await browser.get(f"{base}/new")
    typed = {
        "amount": "12 500",
        "description": "Cotisation 2026",
        "type": "limité",
        "max_uses": "2",
        "expires_at": "2030-12-31T23:30",
        "external_id": "cotisation",
        "return_url": "https://boutique.example/merci",
        "metadata": '{"rang": 1.50}',
    }
    page = await browser.submit("amount", **typed)
    assert page.status == 200
    [link] = await links_of(console, merchant, "test")
    assert page.path == f"{base}/{link.id}"
    assert (link.amount, link.max_uses, link.metadata) == (1_250_000, 2, '{"rang": 1.50}')
    assert iso(require(link.expires_at)) == "2030-12-31T22:30:00.000000Z", "typed in the merchant's time zone, GMT+1"
    shown = html.unescape(page.text)
    for text in ("12\u202f500", "Cotisation 2026", "0 / 2", "ouvert", "boutique.example/merci", "<svg"):
        assert text in shown
    path = hosted_path(page)
    paid = await pay(browser, path, "0197000000")
    assert "Paiement réussi" in paid.text
    page = await browser.get(f"{base}/{link.id}")
    assert "1 / 2" in page.text
    assert re.search(rf"/console/{merchant.id}/test/payments/[0-9a-f-]{{36}}", page.text)
    assert "0197000000" not in page.text, "numbers are masked"
    [form] = [each for each in page.forms() if each.fields.keys() == {"csrf"} and not each.action]
    page = await browser.post(page.path, form.fields)
    assert (page.status, page.path) == (200, f"{base}/{link.id}")
    assert "fermé" in page.text
    assert (await browser.get(path)).status == 410
    again = await browser.post(f"{base}/{link.id}", form.fields)
    assert again.status == 200
    acts = [(each.action, each.actor, each.subject) for each in await audit_log.latest(console.service.ctx.db)]
    about = [each for each in acts if each[0].startswith("link.")]
    assert about == [(f"link.{act}", "awa@example.com", str(link.id)) for act in ("closed", "created")]


async def test_a_faulty_form_says_what_is_wrong_and_keeps_what_was_typed(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    merchant = await console.merchant()
    browser = await console.joined("awa@example.com", merchant, "cashier")
    path = f"/console/{merchant.id}/live/links/new"
    for typed, sentence in (
        ({"amount": "beaucoup", "description": "x"}, "Un nombre est attendu."),
        ({"amount": "", "description": "x"}, "Ce champ est obligatoire."),
        ({"amount": "12,5", "description": "x"}, "pas de décimales"),
        ({"amount": "0", "description": "x"}, "compris entre 1 et 99 999 999"),
        ({"amount": "5", "description": ""}, "Ce champ est obligatoire."),
        ({"amount": "5", "description": "é" * 256}, "255 caractères au maximum."),
        ({"amount": "5", "description": "x\0"}, "caractère interdit"),
        ({"amount": "5", "description": "x", "type": "limité"}, "obligatoire pour un lien de type limité"),
        ({"amount": "5", "description": "x", "type": "limité", "max_uses": "0"}, "comprise entre 1 et"),
        ({"amount": "5", "description": "x", "expires_at": "demain"}, "Une date ISO-8601 est attendue"),
        (
            {"amount": "5", "description": "x", "starts_at": "2030-01-02T00:00", "expires_at": "2030-01-01T00:00"},
            "postérieure à l'ouverture",
        ),
        ({"amount": "5", "description": "x", "return_url": "javascript:alert(1)"}, "http"),
        ({"amount": "5", "description": "x", "metadata": "[1]"}, "Un objet JSON est attendu"),
        ({"amount": "5", "description": "x", "metadata": '{}, "amount": 1'}, "Un objet JSON est attendu"),
    ):
        await browser.get(path)
        page = await browser.submit("amount", **typed)
        shown = html.unescape(page.text)
        assert page.status == 422, typed
        assert sentence in shown, typed
        assert 'aria-invalid="true"' in shown
        for value in typed.values():
            assert value.replace("\0", "�") in shown.replace("\0", "�") or "\0" in value, typed
    assert await links_of(console, merchant) == []


async def test_one_form_makes_one_link(console: ConsoleFixture) -> None:
    merchant = await console.merchant()
    browser = await console.joined("awa@example.com", merchant, "cashier")
    path = f"/console/{merchant.id}/live/links/new"
    form = (await browser.get(path)).form("amount")
    fields = {**form.fields, "amount": "5000", "description": "Don"}
    first = await browser.post(path, fields)
    assert (await browser.post(path, fields)).path == first.path
    changed = await browser.post(path, {**fields, "amount": "6000"})
    assert changed.status == 409, "the form of another link"
    assert changed.form("amount").fields["form"] != form.fields["form"]
    assert (await browser.post(path, {**fields, "form": ""})).status == 422
    named = {**changed.form("amount").fields, "amount": "1", "description": "x", "external_id": "facture-1"}
    assert (await browser.post(path, named)).status == 200
    taken = await browser.post(path, {**named, "amount": "2"})
    assert taken.status == 409
    assert "porte déjà cet identifiant" in html.unescape(taken.text)
    # The same identifier is free in the other environment.
    other = f"/console/{merchant.id}/test/links/new"
    await browser.get(other)
    assert (await browser.submit("amount", amount="2", description="x", external_id="facture-1")).status == 200
    assert [len(await links_of(console, merchant, env)) for env in ("live", "test")] == [2, 1]


async def test_nobody_reaches_a_link_of_another_merchant_or_environment(console: ConsoleFixture) -> None:
    own, foreign = await console.merchant("Kora"), await console.merchant("Balafon")
    browser = await console.joined("awa@example.com", own)
    theirs, test_link = await link_in(console, foreign), await link_in(console, own, "test")
    csrf = {"csrf": (await browser.get("/console")).form("csrf").fields["csrf"]}
    for env, link_id in (
        ("live", theirs.id),
        ("live", test_link.id),
        ("test", theirs.id),
        ("live", "9" * 5000),
        ("live", "x"),
    ):
        for end in ("links/{}", "links/{}/poster", "cash-desk/{}"):
            page = await browser.get(f"/console/{own.id}/{env}/{end.format(link_id)}")
            assert page.status == 404, page.path
        for end in ("links/{}", "cash-desk/{}"):
            assert (await browser.post(f"/console/{own.id}/{env}/{end.format(link_id)}", csrf)).status == 404
    assert (await browser.post(f"/console/{foreign.id}/live/links/{theirs.id}", csrf)).status == 403
    assert [each.expires_at for each in await links_of(console, foreign)] == [None]
    assert [each.expires_at for each in await links_of(console, own, "test")] == [None]
    page = await browser.get(f"/console/{own.id}/test/links/{test_link.id}")
    assert page.status == 200
    assert (await browser.get(f"/console/{own.id}/live/links?external_id=x")).status == 200


@pytest.mark.parametrize("role", MERCHANT_ROLES)
async def test_who_sees_makes_and_closes_links(sqlite_console: ConsoleFixture, role: Any) -> None:
    console = sqlite_console
    merchant = await console.merchant()
    browser = await console.joined("x@example.com", merchant, role)
    for env in ("live", "test"):
        link = await link_in(console, merchant, env)
        base = f"/console/{merchant.id}/{env}"
        may_change = may_as_merchant(role, "links.change", env)
        page = await browser.get(f"{base}/links/{link.id}")
        assert page.status == 200
        assert ("Fermer maintenant" in page.text) is may_change
        fields = {"csrf": page.forms()[0].fields["csrf"]}
        assert ("links/new" in (await browser.get(f"{base}/links")).text) is may_change
        assert (await browser.get(f"{base}/links/new")).status == (200 if may_change else 403)
        assert (await browser.post(f"{base}/links/{link.id}", fields)).status == (200 if may_change else 403)
        created = {**fields, "form": "a" * 32, "amount": "5", "description": "x"}
        assert (await browser.post(f"{base}/links/new", created)).status == (200 if may_change else 403)
        desk = may_as_merchant(role, "cash_desk.use", env)
        assert (await browser.get(f"{base}/cash-desk")).status == (200 if desk else 403)
        assert len(await links_of(console, merchant, env)) == 1 + may_change


async def test_pages_of_many_links(console: ConsoleFixture) -> None:
    merchant = await console.merchant()
    browser = await console.joined("awa@example.com", merchant, "reader")
    for number in range(2 * PAGE_SIZE + 3):
        await link_in(console, merchant, description=f'"Lien-{number:03}"')
    path, seen = f"/console/{merchant.id}/live/links", []
    for expected in (PAGE_SIZE, PAGE_SIZE, 3):
        page = await browser.get(path)
        labels = re.findall(r"Lien-\d{3}", page.text)
        assert len(labels) == expected
        seen += labels
        path = html.unescape(found[1]) if (found := re.search(r'href="([^"]+)" rel="next"', page.text)) else ""
    assert path == ""
    assert seen == [f"Lien-{number:03}" for number in range(2 * PAGE_SIZE + 2, -1, -1)]
    back = re.search(r'href="([^"]+)" rel="prev"', page.text)
    assert re.findall(r"Lien-\d{3}", (await browser.get(html.unescape(require(back)[1]))).text) == seen[25:50]
    page = await browser.get(f"/console/{merchant.id}/live/links?after=x&before=%00&external_id=%00")
    assert page.status == 200


async def test_titles_cannot_break_pages_or_addresses(sqlite_console: ConsoleFixture) -> None:
    """What a merchant writes is text: in pages, on the poster, in the messages that are shared."""
    console = sqlite_console
    merchant = await console.merchant(f"Kora {XSS}")
    browser = await console.joined("awa@example.com", merchant, "cashier")
    base = f"/console/{merchant.id}/live/links"
    await browser.get(f"{base}/new")
    label = f"{XSS}\r\nBcc: x@example.com&body=y"
    page = await browser.submit("amount", amount="5", description=label)
    link = (await links_of(console, merchant))[0]
    for path in (base, f"{base}/{link.id}", f"{base}/{link.id}/poster"):
        shown = (await browser.get(path)).text
        assert "<script>alert" not in shown, path
        assert "&lt;script&gt;alert" in shown, path
        assert "{{7*7}}" in html.unescape(shown), path
    text = page.text
    [whatsapp] = re.findall(r'href="(https://wa\.me/[^"]+)"', text)
    [mail] = re.findall(r'href="(mailto:[^"]+)"', text)
    [sms] = re.findall(r'href="(sms:[^"]+)"', text)
    for address in (whatsapp, mail, sms):
        assert re.fullmatch(r"[\w:/?=&;.%~-]+", address), address
    asked = parse_qs(urlsplit(html.unescape(mail)).query)
    assert asked.keys() == {"subject", "body"}
    assert "\n" not in asked["subject"][0]
    assert link.description in asked["body"][0]
    assert f"/pay/{link.path}" in asked["body"][0]
    assert parse_qs(urlsplit(html.unescape(whatsapp)).query).keys() == {"text"}


async def test_the_poster_is_in_both_languages(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    merchant = await console.merchant("Boutique Kora")
    browser = await console.joined("awa@example.com", merchant, "reader")
    link = await link_in(console, merchant)
    path = f"/console/{merchant.id}/live/links/{link.id}/poster"
    page = await browser.get(path)
    shown = html.unescape(page.text)
    for text in ("Boutique Kora", "Commande 42", "5\u202f000", "<svg", "MTN MoMo", "Choisissez votre opérateur"):
        assert text in shown
    assert '<small lang="en">Choose your operator' in shown
    english = html.unescape((await browser.get(f"{path}?lang=en")).text)
    assert '<small lang="fr">Choisissez votre opérateur' in english
    assert "style=" not in shown.partition("<body")[2].replace("stroke", ""), "the policy of the page blocks it"


async def test_a_merchant_that_is_not_active_makes_test_links_only(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    client = await console.service.merchant("Kora", status="pending")
    merchant = require(await merchants.get(console.service.ctx.db, client.id))
    browser = await console.joined("awa@example.com", merchant, "cashier")
    for env, status in (("live", 403), ("test", 200)):
        await browser.get(f"/console/{merchant.id}/{env}/links/new")
        assert (await browser.submit("amount", amount="500", description="Don")).status == status
        assert len(await links_of(console, merchant, env)) == (status == 200)
    [link] = await links_of(console, merchant, "test")
    path = f"/pay/{link.path}"
    assert "Paiement réussi" in (await pay(browser, path, "0197000000")).text


async def test_the_api_knows_nothing_of_test_links(sqlite_console: ConsoleFixture) -> None:
    """The contract: links are live only, and a test key reads none (D17)."""
    console = sqlite_console
    client = await console.service.merchant("Kora")
    merchant = require(await merchants.get(console.service.ctx.db, client.id))
    link = await link_in(console, merchant, "test", external_id='"e"')
    for key in (client, client.live):
        assert (await key.get("/payment-links")).data == []
        assert (await key.get(f"/payment-links/{link.id}")).status == 404
        assert (await key.get(f"/payment-links?after={link.id}")).status == 422
    made = await client.live.post("/payment-links", {"amount": 5, "description": "x", "external_id": "e"})
    assert made.status == 201
    assert made.data["id"] != link.id


async def test_test_payments_through_a_link(sqlite_console: ConsoleFixture) -> None:
    """Refused, never confirmed, and a card: what the numbers of the test environment do on a hosted page."""
    console = sqlite_console
    merchant = await console.merchant()
    customer = console.browser()
    link = await link_in(console, merchant, "test")
    path = f"/pay/{link.path}"
    assert "test" in (await customer.get(path)).text.lower()
    assert "n’a pas abouti" in (await pay(customer, path, "0197000001")).text
    assert "n’a pas abouti" in (await pay(customer, path, "0197000003")).text
    waiting = await pay(customer, path, "0196000002")
    assert "Validez le paiement" in waiting.text
    customer = console.browser()  # The other one is led back to the payment that waits.
    page = await pay(customer, path, "0197000000", "coris", do="code")
    assert "aucun SMS ne part" in page.text
    names = {"firstname": "Awa", "lastname": "Diop", "email": "awa@example.com"}
    page = await pay(customer, path, "", "VISA", **names)
    [chosen] = set(re.findall(r"/checkout/\w{20,}", page.text))
    await customer.get(chosen)
    page = await customer.post(chosen, {"outcome": "succeeded"})
    assert page.path.startswith(path), "back on the payment's own page"
    assert "Paiement réussi" in page.text
    stored = require(await link_repository.by_id(console.service.ctx.db, merchant.id, "test", link.id))
    assert stored.uses_count == 1
