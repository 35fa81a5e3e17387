"""A provider's statement is compared from the back office: what is found, what is refused, what is kept of it."""

import csv
import hashlib
import io
import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Final

import pytest
from msgspec import structs
from sqlalchemy import select

from guichet.back_office.jobs.statement_comparison import MAX_LINES, MAX_STATEMENT
from guichet.back_office.jobs.work import StaffJobs
from guichet.clock import iso
from guichet.console.admin.operations.statement_page import UTC
from guichet.db.tables import staff_jobs
from guichet.domain.reconciliation import MISSING_HERE
from guichet.domain.roles import STAFF_ROLES, may_as_staff
from guichet.domain.staff_jobs import RIGHT_OF, StaffJob
from guichet.ledger.reconciliation_runs import KEPT, day_of
from guichet.pages import formatting
from guichet.providers.providers_file import NO_PROVIDERS
from guichet.providers.shared.client import ProviderAccount
from guichet.settings import Settings
from tests.console.admin.conftest import Staff, csrf_of, upload
from tests.console.conftest import ConsoleBrowser, ConsoleFixture
from tests.console.page_rules import faults_of
from tests.console.pages import Page
from tests.providers.simulated_providers import Setup, SimulatedProviders, open_simulated_providers

PATH = "/admin/reconciliation/statement"
FX = ProviderAccount("fx", "feexpay", "{sim}/feexpay", {"api_key": "k", "shop": "s"})
#: It answers nothing.
DEAD = structs.replace(FX, name="dead", base_url="http://127.0.0.1:9/feexpay")
_ORANGE = {"country": "ci", "client_id": "c", "client_secret": "s", "merchant_key": "m"}
#: Two accounts with one provider, which gives no history.
ORANGES = {name: ProviderAccount(name, "orange", "{sim}/orange", _ORANGE) for name in ("orange_ci", "orange_ml")}
SETUP = Setup({"fx": FX}, {"mtn": ["fx"]})


@pytest.fixture
async def simulated(settings: Settings) -> AsyncIterator[SimulatedProviders]:
    async with open_simulated_providers(settings, SETUP) as opened:
        yield opened


async def _finance(simulated: SimulatedProviders) -> ConsoleBrowser:
    return await ConsoleFixture(simulated.service).joined("finance@guichet.example", None, "finance")


async def _paid(simulated: SimulatedProviders, count: int) -> list[Any]:
    """So many live payments that succeeded."""
    made = [await simulated.merchant.live.pay("9001", phone_number="2290161009001") for _ in range(count)]
    for _ in range(4):
        await simulated.turn(10)
    return made


async def _asked(simulated: SimulatedProviders, browser: ConsoleBrowser, content: bytes, **fields: str) -> Page:
    """The page of the job after the worker did it."""
    asked = await upload(browser, PATH, content, "releve.csv", fields={"account": "fx", "source": "file", **fields})
    assert asked.status == 200, asked.text
    assert 'data-refresh="3"' in asked.text
    await simulated.nudged(simulated.service.worker.run_until_idle())
    page = await browser.get(asked.path)
    assert faults_of(page, "") == [], page.path
    return page


def _line(payment: Any, less: int = 0) -> str:
    return f"{payment['reference']};{int(payment['total_amount'] + 0.5) - less};SUCCESSFUL\n"


def _today(simulated: SimulatedProviders) -> str:
    return iso(simulated.clock.now())[:10]


async def _jobs(simulated: SimulatedProviders) -> list[StaffJob]:
    return [StaffJob(*row) for row in await simulated.service.ctx.db.scan(select(staff_jobs))]


async def test_a_file_is_compared_and_nothing_of_it_is_kept(simulated: SimulatedProviders) -> None:
    same, lower, absent = await _paid(simulated, 3)
    today = _today(simulated)
    content = f"reference;amount;status\n{_line(same)}{_line(lower, less=1)}nobody;100;SUCCESSFUL\n".encode()
    finance = await _finance(simulated)
    page = await _asked(simulated, finance, content, **{"from": today, "to": today})
    for words in (
        "<dt>Lignes du relevé</dt><dd>3</dd>",
        "<dt>Identiques</dt><dd>1</dd>",
        "<dt>Manquent chez nous</dt><dd>1</dd>",
        "<dt>Manquent chez le prestataire</dt><dd>1</dd>",
        "<dt>Montants différents</dt><dd>1</dd>",
        absent["reference"],
        '<span class="mono-text">nobody</span><br>réussi · 100 · ligne 4',
        formatting.amount(int(lower["total_amount"] + 0.5) * 100, "XOF", "fr", coded=True),
    ):
        assert words in page.text, words
    assert same["reference"] not in page.text
    [job] = await _jobs(simulated)
    assert (job.kind, job.status, job.parameters) == ("compare_statement", "done", None)
    assert "nobody" not in str(job)
    found = await finance.ask("GET", f"{PATH}/{job.id}/differences.csv")
    assert found.headers["Content-Type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(found.content.decode("utf-8-sig")), delimiter=";"))
    assert [row["result"] for row in rows] == ["different amount", "missing there", MISSING_HERE]
    assert (rows[0]["our_reference"], rows[2]["their_reference"]) == (lower["reference"], "nobody")
    asked = await Staff(ConsoleFixture(simulated.service)).last_act("staff_job.requested")
    assert json.loads(asked.after) == {
        "kind": "compare_statement",
        "account": "fx",
        "from": f"{today}T00:00:00.000000Z",
        "to": f"{today}T23:59:59.999999Z",
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


async def test_a_provider_is_asked_for_its_history(simulated: SimulatedProviders) -> None:
    await _paid(simulated, 2)
    today = _today(simulated)
    page = await _asked(simulated, await _finance(simulated), b"", source="provider", **{"from": today, "to": today})
    assert "<dt>Identiques</dt><dd>2</dd>" in page.text
    assert "Tout correspond." in page.text


async def test_the_period_columns_and_words_are_those_that_were_typed(simulated: SimulatedProviders) -> None:
    paid, _ = await _paid(simulated, 2)
    dated = _today(simulated)
    whole = int(paid["total_amount"] + 0.5)
    content = (
        "Ref;Montant;Jour;Sens\n"
        f"{paid['reference']};{whole},00;{dated} 00:00;Encaissé\nx;9;{dated};Frais\ny;7;{dated};Remise\n"
    ).encode()
    typed = {"column_reference": "Ref", "column_amount": "Montant", "column_date": "Jour", "column_type": "Sens"}
    words = {"word_payment": "encaissé, Vente", "word_ignore": " frais ,, ", "word_refund": "Remise"}
    finance = await _finance(simulated)
    page = await _asked(simulated, finance, content, **typed, **words)
    for words_shown in ("<dt>Lignes du relevé</dt><dd>2</dd>", "<dt>Lignes laissées de côté</dt><dd>1</dd>"):
        assert words_shown in page.text
    assert "<dt>Manquent chez nous</dt><dd>1</dd>" in page.text
    assert f"Du {formatting.date_time(day_of(simulated.clock.now()), 'fr', UTC)}" in page.text
    page = await _asked(simulated, finance, content, only="payment", **typed, **words)
    assert "<dt>Manquent chez nous</dt><dd>0</dd>" in page.text


#: What is uploaded and typed, and the sentence that comes back.
WRONG: Final[list[tuple[bytes, dict[str, str], str]]] = [
    (b"", {}, "Choisissez un fichier"),
    (b"reference,amount\nx,5\n", {}, "n’a pas de dates"),
    (b"reference,amount\nx,5\n", {"account": "nobody"}, "Choisissez un compte"),
    (b"reference,amount\nx,5\n", {"from": "2026-01-01"}, "les deux jours"),
    (b"reference,amount\nx,5\n", {"from": "hier", "to": "2026-01-01"}, "n’est pas une date"),
    (b"reference,amount\nx,5\n", {"from": "2026-01-02", "to": "2026-01-01"}, "vient après le dernier"),
    (b"reference,total\nx,1\n", {}, "Ligne 1 du fichier : aucune colonne « montant » parmi reference, total"),
    (b"reference,amount\nx\n", {}, "1 au lieu de 2"),
    (b"reference,amount\n,5\n", {}, "pas de référence"),
    (b"reference,amount\nx,\n", {}, "pas de montant"),
    (b"reference,amount,status\nx,5,<b>\xe2\x80\xaedone\n", {}, "le mot « &lt;b&gt;\\u202edone » (état)"),
    (b"reference,amount,currency\nx,5,CFA\n", {}, "la devise « CFA »"),
    (b"reference,amount,date\nx,5,hier\n", {}, "« hier » (date) ne se lit pas"),
    (b"reference,amount\nx\0y,5\n", {}, "octet nul"),
    (b"reference,amount\nCaf\xe9,5\n", {}, "Ligne 2 du fichier : ce n’est pas de l’UTF-8"),
    (b'reference,amount\n"x,5\n', {}, "ce n’est pas du CSV"),
    (b"reference,amount\n" + b"x,1\n" * (MAX_LINES + 1), {}, "plus de 100 000 lignes"),
    (b"reference,amount\nx,1\n" + b"\n" * MAX_LINES, {}, "plus de 100 000 lignes"),
    (b"a," * 200_000 + b"b\n", {}, "aucune colonne « référence » parmi a, a,"),
    (b"reference,amount\n" + b"x" * MAX_STATEMENT, {}, "dépasse 5 Mio"),
    (b"", {"source": "provider"}, "Donnez les jours à demander"),
    (b"", {"source": "provider", "from": "2026-01-01", "to": "2026-02-01"}, "31 jours au plus"),
    (b"", {"source": "provider", "account": "orange"}, "orange_ci ne donne pas d’historique"),
]


async def test_a_wrong_form_comes_back_with_its_fault(sqlite_settings: Settings) -> None:
    async with open_simulated_providers(sqlite_settings, replace(SETUP, accounts={"fx": FX, **ORANGES})) as simulated:
        finance = await _finance(simulated)
        for content, fields, sentence in WRONG:
            sent = {"account": "fx", "source": "file", "column_type": "Sens", **fields}
            page = await upload(finance, PATH, content, "releve.csv", fields=sent)
            assert page.status == (413 if "Mio" in sentence else 422), sentence
            [fault] = re.findall(r'id="fault">.*?<p>(.*?)</p>', page.text)
            assert sentence in fault.replace("\u00a0", " ").replace("\u202f", " ")
            assert faults_of(page, "") == []
            assert "Rien n’a été demandé" in page.text
            if page.status == 422:
                assert 'value="Sens"' in page.text, "what was typed stands there again"
                assert "orange (tous ses comptes)" in page.text
        assert await _jobs(simulated) == []


async def test_a_thousand_differences_are_kept_and_all_are_counted(simulated: SimulatedProviders) -> None:
    lines = "".join(f"nobody-{number};5\n" for number in range(KEPT + 250))
    finance = await _finance(simulated)
    page = await _asked(
        simulated, finance, b"reference;amount\n" + lines.encode(), **{"from": "2026-01-01", "to": "2026-01-02"}
    )
    assert f"<dt>Manquent chez nous</dt><dd>{KEPT + 250}</dd>" in page.text
    assert "250 autres écarts" in page.text
    assert ("nobody-99<" in page.text, "nobody-100<" in page.text) == (True, False)
    last = await finance.get(f"{page.path}&page=10")
    assert ("nobody-999<" in last.text, 'rel="next"' in last.text) == (True, False)
    assert "nobody-999<" in (await finance.get(f"{page.path}&page=99999")).text
    for wrong in ("0", "x", "9" * 30):
        assert "nobody-0<" in (await finance.get(f"{page.path}&page={wrong}")).text


async def test_an_account_that_is_silent_or_gone_says_so(sqlite_settings: Settings) -> None:
    async with open_simulated_providers(sqlite_settings, replace(SETUP, accounts={"dead": DEAD})) as simulated:
        finance, service = await _finance(simulated), simulated.service
        today = _today(simulated)
        page = await _asked(simulated, finance, b"", account="dead", source="provider", **{"from": today, "to": today})
        assert "L’historique du compte dead n’a pas pu être lu" in page.text
        file = b"reference,amount,date\nx,5,2026-01-01\n"
        asked = await upload(finance, PATH, file, fields={"account": "dead"})
        jobs = StaffJobs(structs.replace(service.ctx, providers=NO_PROVIDERS))
        [job] = (await jobs.claim(service.clock.now(), service.clock.now(), 1, [])).jobs
        await jobs.work(job)
        assert "Le compte dead n’est plus dans le fichier" in (await finance.get(asked.path)).text


@pytest.mark.parametrize("role", STAFF_ROLES)
async def test_who_may_upload_and_see_is_what_the_table_says(sqlite_settings: Settings, role: Any) -> None:
    async with open_simulated_providers(sqlite_settings, SETUP) as simulated:
        console, finance = ConsoleFixture(simulated.service), await _finance(simulated)
        file, fields = b"reference,amount,date\nx,5,2026-01-01\n", {"account": "fx"}
        page = await _asked(simulated, finance, file, **fields)
        browser = await console.joined(f"{role}@kora.example", None, role)
        may = may_as_staff(role, RIGHT_OF["compare_statement"])
        expected = 200 if may else 403
        assert (await browser.get(page.path)).status == expected
        assert (await browser.get(f"{PATH}/1/differences.csv")).status == expected
        assert (await upload(browser, PATH, file, fields=fields)).status == expected
        jobs = await _jobs(simulated)
        assert len(jobs) == (2 if may else 1)
        assert (await upload(browser, PATH, file, csrf=await csrf_of(finance), fields=fields)).status == 403
        browser.sends["Sec-Fetch-Site"] = "cross-site"
        assert (await upload(browser, PATH, file, fields=fields)).status == 403
        owner = await console.joined("awa@example.com", await console.merchant())
        assert (await upload(owner, PATH, file, fields=fields)).status == 403
        assert (await owner.get(f"{PATH}/1/differences.csv")).status == 403
        assert (await upload(console.browser(), PATH, file, csrf="")).path.startswith("/console/sign-in")
        assert await _jobs(simulated) == jobs


@pytest.mark.both_databases
async def test_a_form_sent_twice_is_one_job(simulated: SimulatedProviders) -> None:
    finance = await _finance(simulated)
    fields = {**(await finance.get(PATH)).form("form").fields, "account": "fx"}
    csrf = fields.pop("csrf")
    file = b"reference,amount,date\nx,5,2026-01-01\n"
    paths = {(await upload(finance, PATH, file, csrf=csrf, fields=fields)).path for _ in range(3)}
    assert len(paths) == len(await _jobs(simulated)) == 1
    await upload(finance, PATH, file + b"y,6,2026-01-01\n", csrf=csrf, fields=fields)
    assert len(await _jobs(simulated)) == 2
