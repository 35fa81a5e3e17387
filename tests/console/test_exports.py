"""Exports: what stands in the files against SQL, formulas, the worker's files, their end, and whose they are."""

import csv
import io
import re
import zipfile
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import openpyxl
import pytest
from sqlalchemy import func, select

from guichet.audit_log import entries as audit_log
from guichet.clock import SECOND, Instant
from guichet.db.engine import require
from guichet.db.tables import export_chunks, exports
from guichet.domain.accounts import UserId
from guichet.domain.exports import KEPT, MOST_ATTEMPTS, Export
from guichet.domain.ids import MerchantId
from guichet.exports import cells, files, repository, rows
from guichet.exports.file_writers import XlsxWriter
from guichet.exports.repository import ExportTakenOver
from guichet.merchants import repository as merchants
from guichet.settings import Settings
from tests.console.conftest import ConsoleBrowser, ConsoleFixture
from tests.console.links_payer import pay
from tests.console.pages import Page
from tests.ledger.ledger_history import RawSql, live, yesterday

_DANGEROUS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1")
#: Texts of one harmless beginning, which become several cells where the separator is another one.
_SPLIT = (
    *("\n=1", " =1", '"=1"', "\uff1d1", "\nx", ",=1", "-1,-2"),
    'a,=cmd|" /C calc"!A0',
    'a,"=1"',
    "a, =1",
    "a;=1",
    "a|@x",
    "a\t=1",
    "a\n+1",
    "a\r\n-1",
    'a,,""=1',
    "a\u2028=1",
    "a,\uff1d1",
)


async def _ask(browser: ConsoleBrowser, merchant_id: int, env: str = "test", **values: str) -> Page:
    await browser.get(f"/console/{merchant_id}/{env}/exports")
    fields = {"kind": "payments", "format": "csv", "from": "2020-01-01", "to": "2030-12-31", **values}
    form = browser.page.form("csrf", "from")
    return await browser.post(form.action, {**form.fields, **fields})


async def test_a_form_with_a_filter_that_no_list_has_is_refused(sqlite_console: ConsoleFixture) -> None:
    merchant = await sqlite_console.merchant()
    owner = await sqlite_console.joined("awa@example.com", merchant)
    for wrong in ({"status": "perdu"}, {"least": "beaucoup"}):
        assert (await _ask(owner, merchant.id, **wrong)).status == 422, wrong


def _csv(page: Page) -> list[dict[str, str]]:
    text = page.content.decode("utf-8")
    assert text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=";"))


def _xlsx(content: bytes) -> list[tuple[Any, ...]]:
    book = openpyxl.load_workbook(io.BytesIO(content))
    return [row for sheet in book.worksheets for row in sheet.iter_rows(values_only=True)]


async def _member(console: ConsoleFixture, merchant_id: Any, role: str = "finance") -> ConsoleBrowser:
    merchant = require(await merchants.get(console.service.ctx.db, merchant_id))
    return await console.joined(f"{role}{merchant_id}@example.com", merchant, role)


async def _count(console: ConsoleFixture, table: Any) -> int:
    return int((await console.service.ctx.db.scan(select(func.count()).select_from(table)))[0][0])


@pytest.mark.both_databases
async def test_the_sums_of_each_file_are_those_of_the_books(settings: Settings) -> None:
    raw_sql = RawSql(settings)
    async with yesterday(settings) as service:
        console = ConsoleFixture(service)
        history = await live(service)
        mine = f"merchant_id = {history.merchant.id} AND env = 'live'"
        browser = await _member(console, history.merchant.id)

        async def sums(table: str, columns: str, more: str = "") -> list[int]:
            [row] = await raw_sql.run(f"SELECT count(*), {columns} FROM {table} WHERE {mine}{more}")
            return [int(each) for each in row]

        def added(found: list[dict[str, str]], *titles: str) -> list[int]:
            cells = [[int(row[title].replace(",", "")) for row in found if row[title]] for title in titles]
            return [len(found), *(sum(each) for each in cells)]

        page = await _ask(browser, history.merchant.id, "live")
        assert page.headers["Content-Type"] == "text/csv; charset=utf-8"
        assert re.fullmatch(
            r'attachment; filename="paiements-shop-live-[0-9-]+\.csv"', page.headers["Content-Disposition"]
        )
        assert (page.headers["Cache-Control"], page.headers["X-Content-Type-Options"]) == ("no-store", "nosniff")
        wanted = await sums("payments", "sum(amount), sum(fee_amount), sum(total_amount)")
        found = _csv(page)
        assert added(found, "Montant", "Frais", "Total") == wanted
        whole = [Decimal(row["Débité au client"].replace(",", ".")) for row in found]
        francs = [each for each, row in zip(whole, found, strict=True) if row["Devise"] == "XOF"]
        assert {each % 1 for each in francs} == {0}, "an operator debits no half franc"
        exact, rounding = (sum(added([row], name)[1] for row in found) for name in ("Total", "Arrondi"))
        assert 100 * sum(whole) == exact + rounding
        assert "MTN MoMo · Bénin" in {row["Opérateur"] for row in found}
        page = await _ask(browser, history.merchant.id, "live", kind="refunds")
        refunded = _csv(page)
        assert added(refunded, "Montant") == await sums("refunds", "sum(amount)")
        copied = ("Référence marchand", "Opérateur", "Téléphone", "Prénom", "Nom")
        payments = {row["Référence"]: [row[title] for title in copied] for row in found}
        for row in refunded:
            assert [row[title] for title in copied] == payments[row["Référence du paiement"]]
        page = await _ask(browser, history.merchant.id, "live", kind="movements", currency="XOF")
        found = _csv(page)
        signs = ", ".join(
            f"sum(CASE WHEN {side} = 'wallet' THEN amount ELSE 0 END)" for side in ("source", "destination")
        )
        moved = await sums("postings", signs, " AND currency = 'XOF' AND 'wallet' IN (source, destination)")
        assert added(found, "Débit", "Crédit") == moved
        assert int(found[-1]["Solde"].replace(",", "")) == moved[2] - moved[1]
        page = await _ask(browser, history.merchant.id, "live", format="xlsx")
        titles, *lines = _xlsx(page.content)
        columns = [titles.index(title) for title in ("Montant", "Frais", "Total")]
        assert [len(lines), *(sum(round(100 * Decimal(str(line[at]))) for line in lines) for at in columns)] == wanted
        assert all(isinstance(line[0], type(lines[0][0])) and lines[0][0].year > 2000 for line in lines)
        done = [(entry.actor, entry.action) for entry in await audit_log.latest(service.ctx.db)]
        assert done.count((f"finance{history.merchant.id}@example.com", "export.requested")) == 4
        assert done.count((f"finance{history.merchant.id}@example.com", "export.downloaded")) == 4


async def test_no_formula_reaches_a_spreadsheet_and_numbers_stay_numbers(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    client = await console.service.merchant('=Kora;"x')
    for place, text in enumerate(_DANGEROUS):
        names = {"firstname": f"{text}<&>", "lastname": text, "email": "-a@example.com"}
        await client.pay("0000", description=text, external_id=f"{text.strip()}{place}", customer=names)
    browser = await _member(console, client.id)
    found = _csv(await _ask(browser, client.id))
    assert len(found) == len(_DANGEROUS)
    head, *lines = _xlsx((await _ask(browser, client.id, format="xlsx")).content)
    written = [dict(zip(head, line, strict=True)) for line in lines]
    titles = ("Libellé", "Prénom", "Nom", "E-mail", "Téléphone", "Référence marchand")
    for row, cell in zip(found, written, strict=True):
        texts = [row[title] for title in titles]
        assert all(text.startswith("'") for text in texts), texts
        assert [cell[title] for title in titles] == [text.replace("'", "") for text in texts], "it needs none"
    assert {row["Téléphone"] for row in found} == {"'+22997000000"}
    assert {row["Montant"] for row in found} == {"5000,00"}
    assert {(row["Total"], row["Arrondi"], row["Débité au client"]) for row in found} == {
        ("5087,50", "0,50", "5088,00")
    }
    amounts = ("Montant", "Frais", "Total", "Arrondi", "Débité au client")
    assert {tuple(row[title] for title in amounts) for row in written} == {(5000, 87.5, 5087.5, 0.5, 5088)}


async def test_a_payment_of_a_checkout_session_stands_under_its_order(sqlite_console: ConsoleFixture) -> None:
    client = await sqlite_console.service.merchant("Kora")
    order = {"amount": 5000, "description": "Robe", "external_id": "commande/42"}
    session = (await client.post("/checkout-sessions", order)).data
    await pay(sqlite_console.browser(), urlsplit(session["url"]).path, "0197000000")
    [payment] = (await client.get("/payments")).data
    await client.get(f"/payments/{payment['reference']}")
    assert (await client.post(f"/payments/{payment['reference']}/refund")).status == 201
    browser = await _member(sqlite_console, client.id)
    for kind in ("payments", "refunds"):
        [row] = _csv(await _ask(browser, client.id, kind=kind))
        assert row["Référence marchand"] == "commande/42", kind


async def test_a_workbook_has_filters_and_widths_and_runs_nothing(sqlite_console: ConsoleFixture) -> None:
    client = await sqlite_console.service.merchant("Kora")
    await client.pay("0000", external_id="=1+10")
    browser = await _member(sqlite_console, client.id)
    book = openpyxl.load_workbook(io.BytesIO((await _ask(browser, client.id, format="xlsx")).content))
    sheet = book.worksheets[0]
    assert sheet.auto_filter.ref == "A1:S2"
    assert sheet.column_dimensions["C"].width > sheet.column_dimensions["F"].width
    cell = sheet["D2"]
    assert (cell.value, cell.data_type, cell.quotePrefix) == ("=1+10", "s", True)


def test_no_separator_makes_a_formula_of_the_middle_of_a_text() -> None:
    for text in (*_DANGEROUS, *_SPLIT):
        file = io.StringIO(newline="")
        cells.writer(file, ["a", "b", "c"]).writerow(["x", cells.text(text), cells.amount(-500_000)])
        line = file.getvalue().splitlines()[1]
        for separator in (";", ",", "|", "\t"):
            for cell in next(csv.reader([line], delimiter=separator)):
                begins = cell.lstrip(' "')[:1]
                assert begins not in tuple("=+@\uff1d"), (text, line)
                assert begins != "-" or cell.startswith("-5000"), (text, line)


def test_an_ordinary_text_is_written_as_it_is() -> None:
    for text in (
        "Riz, 5 kg",
        "Sac - bleu",
        "a=b",
        "2 + 2",
        "awa@example.com",
        "a, b; c | d",
        "",
        "'=1",
        "10,5 %",
        "A-B,C-D",
    ):
        assert cells.text(text) == text


@pytest.mark.both_databases
async def test_a_long_export_is_prepared_by_the_worker_and_ends_after_a_day(
    console: ConsoleFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # To make 10 000 payments would take half a minute.
    monkeypatch.setattr(rows, "MOST_DIRECT_ROWS", 11)
    client = await console.service.merchant("Kora")
    for _ in range(12):
        await client.pay("0000", description="Voiture bleue d’Abɔmɛ")
    browser, other = await _member(console, client.id, "developer"), await _member(console, client.id)
    for written_as in ("csv", "xlsx"):
        page = await _ask(browser, client.id, format=written_as)
        assert page.path.endswith("/exports")
        assert "En préparation" in page.text
        assert 'data-refresh="3"' in page.text
    base = f"/console/{client.id}/test/exports"
    assert (await browser.get(f"{base}/1/file")).status == 409
    await console.service.run_worker()
    page = await browser.get(base)
    assert "En préparation" not in page.text
    assert "data-refresh" not in page.text
    links = re.findall(r'href="([^"]+/file)"', page.text)
    assert len(links) == 2
    assert not re.findall(r'href="([^"]+/file)"', (await other.get(base)).text), "a link for those who asked"
    assert (await other.get(links[0])).status == 404
    book, table = await browser.get(links[0]), await browser.get(links[1])
    assert int(table.headers["Content-Length"]) == len(table.content)
    assert [row["Libellé"] for row in _csv(table)] == ["Voiture bleue d’Abɔmɛ"] * 12
    assert len(_xlsx(book.content)) == 13
    assert zipfile.ZipFile(io.BytesIO(book.content)).testzip() is None
    stored = await console.service.ctx.db.scan(select(export_chunks.c.content))
    assert stored
    assert all("Voiture" not in content and content.startswith("gAAAA") for (content,) in stored)

    console.service.clock.advance(KEPT / SECOND)
    await browser.sign_in(f"developer{client.id}@example.com")
    page = await browser.get(links[0])
    assert page.status == 410
    assert "a expiré" in page.text
    page = await browser.get(base)
    assert page.text.count("Expiré") == 2
    assert "/file" not in page.text
    await console.service.run_worker(2 * 3600)
    assert await _count(console, export_chunks) == 0
    assert await _count(console, exports) == 2, "what was asked for is listed for longer"
    await console.service.run_worker(30 * 86_400)
    assert await _count(console, exports) == 0


async def test_the_number_of_prepared_exports_is_bounded(
    sqlite_console: ConsoleFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = sqlite_console
    monkeypatch.setattr(rows, "MOST_DIRECT_ROWS", -1)
    client = await console.service.merchant("Kora")
    browser = await _member(console, client.id, "developer")
    for _ in range(5):
        assert (await _ask(browser, client.id)).status == 200
    page = await _ask(browser, client.id, kind="refunds", **{"from": "2021-01-01"})
    assert page.status == 409
    assert "5 exports" in page.text
    assert 'value="2021-01-01"' in page.text
    form = page.form("csrf", "from")
    page = await browser.post(f"/console/{client.id}/live/exports", {**form.fields, "kind": "refunds", "format": "csv"})
    assert page.status == 403, "a developer has the test environment only"
    assert await _count(console, exports) == 5


async def test_faulty_forms_and_foreign_exports(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    kora, balafon = await console.merchant("Kora"), await console.merchant("Balafon")
    awa, ada = await _member(console, kora.id), await _member(console, balafon.id)
    await _ask(awa, kora.id, "live")
    assert (await awa.get(f"/console/{kora.id}/live/exports/1/file")).status == 200
    for path in (f"{kora.id}/live/exports/1/file", f"{kora.id}/live/exports"):
        assert (await ada.get(f"/console/{path}")).status == 403
    assert (await ada.get(f"/console/{balafon.id}/live/exports/1/file")).status == 404
    assert (await awa.get(f"/console/{kora.id}/test/exports/1/file")).status == 404, "of the other environment"
    assert (await awa.get(f"/console/{kora.id}/live/exports/{2**70}/file")).status == 404
    for faulty in (
        {"kind": "users"},
        {"format": "ods"},
        {"from": "soon"},
        {"to": "2019-01-01"},
        {"from": "2030-01-01"},
    ):
        page = await _ask(awa, kora.id, **faulty)
        assert page.status == 422, faulty
    page = await awa.post(f"/console/{kora.id}/live/exports", {"csrf": "x", "kind": "payments", "format": "csv"})
    assert page.status == 403


async def test_an_attempt_that_lost_its_claim_writes_nothing_more(
    sqlite_console: ConsoleFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = sqlite_console
    monkeypatch.setattr(rows, "MOST_DIRECT_ROWS", -1)
    client = await console.service.merchant("Kora")
    await client.pay("0000")
    await _ask(await _member(console, client.id), client.id)
    ctx, clock = console.service.ctx, console.service.clock
    [first] = (await repository.claim(ctx.db, clock.now(), 1, [])).jobs
    assert not (await repository.claim(ctx.db, clock.now(), 1, [])).jobs
    clock.advance(301)
    [second] = (await repository.claim(ctx.db, clock.now(), 1, [])).jobs
    assert (first.attempts, second.attempts) == (1, 2)
    await files.prepare(ctx, second)
    with pytest.raises(ExportTakenOver):
        await files.prepare(ctx, first)
    found = require(await repository.find(ctx.db, client.id, "test", first.id))
    assert (found.status, found.row_count) == ("ready", 1)


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_an_export_does_not_wait_for_an_act_about_the_merchant(console: ConsoleFixture) -> None:
    """The export has the head of the audit log, for which the other act waits: both would wait for ever."""
    client = await console.service.merchant("Kora")
    member = await _member(console, client.id)
    async with console.service.ctx.db.transaction() as tx:
        await merchants.lock(tx, client.id)
        assert (await _ask(member, client.id)).status == 200


@pytest.mark.parametrize(("dead", "status"), [(MOST_ATTEMPTS - 1, "ready"), (MOST_ATTEMPTS, "failed")])
async def test_processes_that_end_in_the_middle_delay_an_export_until_it_is_given_up(
    sqlite_console: ConsoleFixture, monkeypatch: pytest.MonkeyPatch, dead: int, status: str
) -> None:
    console = sqlite_console
    monkeypatch.setattr(rows, "MOST_DIRECT_ROWS", -1)
    client = await console.service.merchant("Kora")
    await _ask(await _member(console, client.id), client.id)
    ctx, clock = console.service.ctx, console.service.clock
    jobs = files.ExportJobs(ctx)
    for _ in range(dead):
        assert (await jobs.claim(clock.now(), clock.now(), 1, [])).jobs
        clock.advance(301)
    [export] = (await jobs.claim(clock.now(), clock.now(), 1, [])).jobs
    await jobs.work(export)
    assert require(await repository.find(ctx.db, client.id, "test", export.id)).status == status


def test_a_sheet_that_is_full_is_followed_by_another() -> None:
    export = Export(
        id=1, merchant_id=MerchantId(1), env="live", user_id=UserId(1), kind="refunds", format="xlsx", currency=None,
        language="en", time_zone="Africa/Porto-Novo", since=Instant(0), until=Instant(1), status="direct", attempts=0,
        due_at=None, created_at=Instant(0), expires_at=Instant(1), reached_at=None, row_count=0, size=0,
    )  # fmt: skip
    writer = XlsxWriter(export, sheet_rows=4)
    content = b""
    for piece in range(3):
        lines = [
            (0, f"r{piece}{n}", "p", "e", "s", "XOF", 1250, "o", None, None, None, "x", None, None) for n in range(3)
        ]
        content += writer.write(lines)
    content += writer.finish()
    book = openpyxl.load_workbook(io.BytesIO(content))
    assert book.sheetnames == ["Refunds", "Refunds 2", "Refunds 3"]
    assert [sheet.max_row for sheet in book.worksheets] == [5, 5, 2]
    assert _xlsx(content)[1][6] == 12.5
    assert [row[1] for row in _xlsx(content) if row[1] != "Reference"] == [
        f"r{p}{n}" for p in range(3) for n in range(3)
    ]
    assert str(_xlsx(content)[1][0]) == "1970-01-01 01:00:00"
