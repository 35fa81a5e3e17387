"""The list of payments narrowed by country, operator and amount, its counts, and the export of what it shows."""

import csv
import html
import io
import re

import pytest

from guichet.clock import DAY, SECOND
from guichet.history import narrowed_list
from tests.console.conftest import ConsoleBrowser, ConsoleFixture
from tests.console.test_payments import copies, link, opened, shown


def _chips(text: str) -> dict[str, str]:
    """The number beside each state."""
    return dict(re.findall(r'<a class="chip"[^>]*>([^<]+) <span class="n">(\d+)</span></a>', text))


@pytest.mark.both_databases
async def test_filters_are_addresses_with_their_counts(console: ConsoleFixture) -> None:
    client, browser, path = await opened(console, "cashier")
    prices = {"amount": 1250_00, "fee_amount": 0, "total_amount": 1250_00}
    [old] = await copies(console, client, phone_number="22997000001", external_id="old", operator="mtn_ci", **prices)
    console.service.clock.advance(DAY / SECOND)
    await browser.sign_in("awa@example.com")
    failed = {"status": "failed", "next_poll_at": None}
    [new] = await copies(console, client, phone_number="22997000001", external_id="new", **failed)
    page = await browser.get(path)
    assert len(shown(page.text)) == 4
    assert [_chips(page.text)[name] for name in ("Tous", "Échoué", "Réussi")] == ["4", "1", "0"]
    for query, wanted in (
        ("status=failed", [new.reference]),
        ("operator=mtn_ci", [old.reference]),
        ("country=CI", [old.reference]),
        ("country=CI&operator=mtn", []),
        ("country=BJ&status=failed", [new.reference]),
        ("least=1 250&most=1250", [old.reference]),
        ("least=1250,01&most=4999", []),
        ("operator=none", []),
    ):
        page = await browser.get(f"{path}?{query}")
        assert (page.status, shown(page.text)) == (200, wanted), query
    faulty = await browser.get(f"{path}?least=much")
    assert (faulty.status, "Un montant est attendu" in faulty.text, 'value="much"' in faulty.text) == (422, True, True)
    page = await browser.get(path)
    assert "<b>Aujourd’hui · " in page.text
    assert "<b>Hier · " in page.text
    [today] = [html.unescape(href) for href in re.findall(r'<a class="chip" href="([^"]+)">Aujourd’hui', page.text)]
    page = await browser.get(today)
    assert (len(shown(page.text)), _chips(page.text)["Tous"]) == (2, "2")


async def test_a_narrowed_list_goes_on_where_it_stopped_reading(
    sqlite_console: ConsoleFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, browser, path = await opened(sqlite_console)
    [wanted] = await copies(sqlite_console, client, operator="mtn_ci", external_id="x", phone_number=None)
    for _ in range(3):
        await client.pay("0000")
    monkeypatch.setattr(narrowed_list, "MOST_READ", 2)
    page = await browser.get(f"{path}?operator=mtn_ci")
    found: list[str] = []
    for _ in range(4):
        found += shown(page.text)
        older = link(page.text, "next")
        if older is None:
            break
        if not shown(page.text):
            assert "ont été parcourus" in page.text
        page = await browser.get(older)
    assert found == [wanted.reference]
    assert link(page.text, "next") is None


async def test_the_list_that_is_shown_is_exported(sqlite_console: ConsoleFixture) -> None:
    client, browser, path = await opened(sqlite_console)
    for operator in ("mtn_ci", "mtn"):
        await copies(sqlite_console, client, operator=operator, external_id=operator, phone_number=None)
    sqlite_console.service.clock.advance(60)
    page = await browser.get(f"{path}?operator=mtn_ci&from=2020-01-01&to=2099-12-31")
    [href] = [html.unescape(each) for each in re.findall(r'href="([^"]+/exports\?[^"]+)"', page.text)]
    page = await browser.get(href)
    assert "Seulement la liste filtrée" in page.text
    assert "MTN MoMo · Côte d’Ivoire" in html.unescape(page.text).replace("'", "’")
    assert await _exported(browser) == ["mtn_ci"]
    await browser.get(href.partition("?")[0])
    assert set(await _exported(browser, kind="payments")) == {"mtn_ci", "mtn", ""}


async def _exported(browser: ConsoleBrowser, **more: str) -> list[str]:
    """The order numbers in the file that the form of the page makes."""
    period = {"from": "2020-01-01", "to": "2030-12-31"}
    page = await browser.submit("csrf", "from", **{"format": "csv", **period, **more})
    text = page.content.decode().removeprefix("\ufeff")
    return [row["Référence marchand"] for row in csv.DictReader(io.StringIO(text, newline=""), delimiter=";")]
