"""Balance, statement and documents: figures against SQL, who sees them, and what is refused."""

import io
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from pypdf import PdfReader
from sqlalchemy import func, select

from guichet.audit_log import entries as audit_log
from guichet.clock import DAY, later
from guichet.db.engine import require
from guichet.db.tables import wallet_checkpoints
from guichet.domain.roles import MERCHANT_ROLES, may_as_merchant
from guichet.ledger.balance_checkpoints import WalletKey, balance_before
from guichet.merchants import repository as merchants
from guichet.pages.days import today
from guichet.pages.pdf import PdfColumn, PdfDocument
from guichet.settings import Settings
from tests.console.conftest import ConsoleFixture
from tests.ledger.ledger_history import RawSql, live, yesterday

_NBSP = str.maketrans({"\u202f": " ", "\u00a0": " "})
_WALLET = "merchant_id = {0} AND env = 'live' AND currency = 'XOF'"
_SIGNED = "CASE WHEN destination = 'wallet' THEN amount WHEN source = 'wallet' THEN -amount ELSE 0 END"


def _francs(hundredths: int) -> str:
    return f"{hundredths // 100:,}".replace(",", " ") + " F CFA"


def _text(pdf: bytes) -> str:
    pages = PdfReader(io.BytesIO(pdf)).pages
    return "\n".join(page.extract_text() for page in pages).translate(_NBSP)


@pytest.mark.both_databases
async def test_the_figures_of_the_page_and_of_the_statement_are_those_of_the_books(settings: Settings) -> None:
    raw_sql = RawSql(settings)
    async with yesterday(settings) as service:
        console = ConsoleFixture(service)
        history = await live(service)
        merchant = require(await merchants.get(service.ctx.db, history.merchant.id))
        of_wallet = _WALLET.format(merchant.id)
        finance = await console.joined("awa@example.com", merchant, "finance")
        here = f"/console/{merchant.id}/live"
        page = (await finance.get(f"{here}/balance")).text.translate(_NBSP)
        [(balance,)] = await raw_sql.run(f"SELECT sum({_SIGNED}) FROM postings WHERE {of_wallet}")
        [(held,)] = await raw_sql.run(
            "SELECT sum(p.amount) FROM refunds r JOIN payments p ON p.id = r.payment_id"
            f" WHERE r.merchant_id = {merchant.id} AND r.env = 'live' AND r.status = 'pending' AND r.held"
        )
        assert f"<b>{_francs(balance)}</b>" in page
        assert f"{_francs(held)} retenus" in page
        assert "12,34 EUR" in page, "the other wallet"
        moved = await raw_sql.run(
            f"SELECT {_SIGNED} FROM postings WHERE {of_wallet} AND 'wallet' IN (source, destination)"
            " ORDER BY created_at DESC, id DESC"
        )
        shown = re.findall(r'data-label="Montant">([^<]+)<.*?data-label="Solde après">([^<]+)<', page)
        running = int(balance)
        expected = []
        for (signed,) in moved:
            expected.append((("+" if signed > 0 else "-") + _francs(abs(signed)), _francs(running)))
            running -= signed
        assert shown == expected
        assert f'{here}/payments/{history.paid["reference"]}"' in page

        month = today(service.clock.now(), service.ctx.settings.time_zone).strftime("%Y-%m")
        document = await finance.get(f"{here}/balance/statement.pdf?month={month}")
        assert document.status == 200
        assert document.headers["Content-Disposition"] == f'attachment; filename="releve-shop-live-{month}-xof.pdf"'
        assert (document.headers["Cache-Control"], document.headers["X-Content-Type-Options"]) == (
            "no-store",
            "nosniff",
        )
        text = _text(document.content)
        assert f"Solde de clôture {_francs(balance)}" in text.replace("\n", " ")
        for cause, name in (("payment.succeeded", "Encaissement"), ("refund.requested", "Remboursement")):
            [(total,)] = await raw_sql.run(
                f"SELECT sum({_SIGNED}) FROM postings WHERE {of_wallet} AND cause = '{cause}'"
            )
            sign = "+" if total > 0 else "-"
            assert f"{name} {sign}{_francs(abs(total))}" in text.replace("\n", " ")
        [(fees,)] = await raw_sql.run(
            "SELECT sum(CASE WHEN destination = 'fees' THEN amount ELSE -amount END) FROM postings"
            f" WHERE {of_wallet} AND 'fees' IN (source, destination)"
        )
        assert int(fees) % 100 or _francs(fees) in text
        credited = sum(signed for (signed,) in moved if signed > 0)
        [(debited,)] = await raw_sql.run(f"SELECT sum(amount) FROM postings WHERE {of_wallet} AND source = 'wallet'")
        sums = f"Total {len(moved)} {_francs(debited)} {_francs(credited)} {_francs(balance)}"
        assert sums in text.replace("\n", " "), "the last line of the table by day"
        entry = (await audit_log.latest(service.ctx.db))[0]
        assert (entry.actor, entry.action, entry.subject) == ("awa@example.com", "document.downloaded", month)

        receipt = await finance.get(f"{here}/payments/{history.paid['reference']}/receipt.pdf")
        words = _text(receipt.content).replace("\n", " ")
        for part in ("Paiement réussi", history.paid["reference"], "Shop", "Total payé", "5 001 F CFA", "MTN"):
            assert part in words
        assert "2299700" not in words, "a receipt masks the number"
        refunded = await finance.get(f"{here}/payments/{history.refunded['reference']}/receipt.pdf")
        words = _text(refunded.content)
        page = (await finance.get(f"{here}/payments/{history.refunded['reference']}/receipt")).text.translate(_NBSP)
        for name, value in re.findall(r"<dt>([^<]+)</dt><dd[^>]*>(?:<bdi>)?([^<]+)<", page):
            assert (name in words, value in words.replace("\n", " ")) == (True, True), "the page says the same"
        assert ("Créé le" in page, "Remboursé le" in page, "Payé le" in page) == (True, True, False)


@pytest.mark.both_databases
async def test_movements_are_read_page_by_page_and_a_period_keeps_what_was_typed(console: ConsoleFixture) -> None:
    client = await console.service.merchant("Boutique Kora")
    for _ in range(27):
        await client.pay("0000", amount=1000)
    await console.service.run_worker(20)
    merchant = require(await merchants.get(console.service.ctx.db, client.id))
    browser = await console.joined("ada@example.com", merchant, "reader")
    page = await browser.get(f"/console/{client.id}/test/balance")
    first = page.text.translate(_NBSP)
    assert first.count('data-label="Montant"') == 25
    [older] = re.findall(r'href="([^"]+)" rel="next"', page.text)
    page = await browser.get(older.replace("&amp;", "&"))
    last = page.text.translate(_NBSP)
    balances = [re.findall(r'"Solde après">([^<]+)<', each) for each in (first, last)]
    assert [_francs(number * 100_000) for number in range(27, 0, -1)] == balances[0] + balances[1]
    assert 'rel="prev"' in last
    assert 'rel="next"' not in last
    day = today(console.service.clock.now(), console.service.ctx.settings.time_zone)
    page = await browser.get(f"/console/{client.id}/test/balance?from={day}&to={day}&before=x.y&currency=GBP")
    assert page.text.count('data-label="Montant"') == 25
    page = await browser.get(f"/console/{client.id}/test/balance?from=2001-02-03&to=2001-02-04")
    assert "Aucun mouvement" in page.text
    for typed, words in (
        ("2026-02-30", "n’existe pas"),
        ('"><script>', "n’existe pas"),
        ("9999-12-31", "n’existe pas"),
    ):
        page = await browser.get(f"/console/{client.id}/test/balance?from={typed}")
        assert page.status == 422
        assert words in page.text
        assert "<script>" not in page.text
    page = await browser.get(f"/console/{client.id}/test/balance?from=2020-02-02&to=2020-01-01")
    assert "avant de commencer" in page.text


@pytest.mark.parametrize("role", MERCHANT_ROLES)
async def test_who_sees_the_balance_and_its_documents(sqlite_console: ConsoleFixture, role: Any) -> None:
    merchant = await sqlite_console.merchant()
    browser = await sqlite_console.joined("x@example.com", merchant, role)
    service = sqlite_console.service
    month = today(service.clock.now(), service.ctx.settings.time_zone).strftime("%Y-%m")
    for env in ("live", "test"):
        sees, exports = (may_as_merchant(role, right, env) for right in ("balance.view", "exports.download"))
        for path, right in (("/balance", sees), (f"/balance/statement.pdf?month={month}", sees), ("/exports", exports)):
            page = await browser.get(f"/console/{merchant.id}/{env}{path}")
            assert page.status == (200 if right else 403), (env, path)


async def test_documents_of_others_do_not_exist(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    client = await console.service.merchant("Kora")
    foreign = await client.pay("0000")
    pending = await client.pay("0002")
    await console.service.run_worker()
    own = await console.merchant("Balafon")
    browser = await console.joined("awa@example.com", own)
    receipt = f"/payments/{foreign['reference']}/receipt.pdf"
    assert (await browser.get(f"/console/{client.id}/test{receipt}")).status == 403
    assert (await browser.get(f"/console/{client.id}/test/balance/statement.pdf?month=2026-10")).status == 403
    assert (await browser.get(f"/console/{own.id}/test{receipt}")).status == 404
    assert (await browser.get(f"/console/{own.id}/test/payments/nothing/receipt.pdf")).status == 404
    for month in ("", "2026-13", "x", "2026-10-01", "2999-01", "1999-01"):
        page = await browser.get(f"/console/{own.id}/live/balance/statement.pdf?month={month}")
        assert page.status == 404
    kora = require(await merchants.get(console.service.ctx.db, client.id))
    member = await console.joined("ada@example.com", kora, "reader")
    assert (await member.get(f"/console/{client.id}/test{receipt}")).content.startswith(b"%PDF-")
    assert (await member.get(f"/console/{client.id}/live{receipt}")).status == 404, "of the other environment"
    page = await member.get(f"/console/{client.id}/test/payments/{pending['reference']}/receipt.pdf")
    assert page.status == 409
    assert "Pas de reçu" in page.text


@pytest.mark.both_databases
async def test_a_checkpoint_gives_the_same_balance_as_all_postings(console: ConsoleFixture) -> None:
    service = console.service
    client = await service.merchant()
    wallet = WalletKey(client.id, "test", "XOF")
    days = []
    for _ in range(3):
        for _ in range(4):
            await client.pay("0000", amount=1000)
        await service.run_worker(20)
        days.append(service.clock.now())
        service.clock.advance(40 * DAY / 1_000_000)
    now = service.clock.now()
    expected = [400_000, 800_000, 1_200_000]
    first = [await balance_before(service.ctx.db, wallet, later(each, DAY), now) for each in days]
    again = [await balance_before(service.ctx.db, wallet, later(each, DAY), now) for each in days]
    assert first == again == expected
    [(kept,)] = await service.ctx.db.scan(select(func.count()).select_from(wallet_checkpoints))
    assert kept > 3
    await client.pay("0000", amount=1000)
    await service.run_worker(20)
    assert await balance_before(service.ctx.db, wallet, later(service.clock.now(), 1), service.clock.now()) == 1_300_000


def test_a_document_draws_the_letters_of_our_languages_on_as_many_pages_as_it_takes() -> None:
    document = PdfDocument("Titre", "fr", "pied", "TEST")
    names = "Kɔfi Ŋutɔ Ɖeɖe ƒe xɔ́ · N’Djaména « Ɛyra »"
    document.heading("Relevé")
    document.paragraph("mot " * 300)
    document.lines([("Nom", names), ("Long", "x" * 400)])
    document.table([PdfColumn("A", 50), PdfColumn("B", 50, "right")], [("é" * 200, str(row)) for row in range(100)])
    content = document.done()
    reader = PdfReader(io.BytesIO(content))
    assert len(reader.pages) == 3
    assert names in reader.pages[0].extract_text()
    assert "99" in reader.pages[2].extract_text().splitlines()
    assert all("TEST" in page.extract_text() for page in reader.pages)
    assert len(content) < 120_000
    assert reader.metadata is not None
    assert reader.metadata.creation_date in (None, datetime(2000, 1, 1, tzinfo=UTC))
