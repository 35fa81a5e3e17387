"""What the staff ask for and the worker does: asked, shown while it waits, done once, resumed, removed; who may."""

import asyncio
import gzip
import re
from typing import Any

import pytest
from sqlalchemy import func, select, update

from guichet.back_office.jobs import repository
from guichet.back_office.jobs.repository import JobTakenOver
from guichet.back_office.jobs.work import StaffJobs
from guichet.clock import SECOND
from guichet.db.engine import Database, require
from guichet.db.tables import payments, staff_jobs
from guichet.domain.accounts import STEP_UP_LASTS
from guichet.domain.money import plain
from guichet.domain.roles import STAFF_ROLES, may_as_staff
from guichet.domain.staff_jobs import MOST_ATTEMPTS, MOST_PENDING, RIGHT_OF, STAFF_JOB_LEASE, StaffJob
from guichet.ledger.margin import margins
from guichet.pages import formatting
from guichet.settings import Settings
from tests.console.admin.conftest import Staff, csrf_of
from tests.console.admin.operations import Operations, act
from tests.console.conftest import ConsoleBrowser, ConsoleFixture
from tests.console.page_rules import faults_of
from tests.console.pages import Page
from tests.fakes.scripted_provider import done
from tests.providers.simulated_providers import open_simulated_providers
from tests.providers.test_provider_checks import setup

MARGIN, PROVIDERS = "/admin/reconciliation/margin", "/admin/doctor/providers"
NUMBER = "22997001234"


async def _jobs(db: Database) -> list[StaffJob]:
    return [StaffJob(*row) for row in await db.scan(select(staff_jobs).order_by(staff_jobs.c.id))]


def _whole(page: Page) -> str:
    assert faults_of(page, "") == [], page.path
    assert len(gzip.compress(page.content)) < 20_000
    return page.text


async def _anonymise(browser: ConsoleBrowser, merchant_id: int, **typed: str) -> Page:
    await browser.get(f"/admin/merchants/{merchant_id}/anonymise")
    wanted = {"phone": "+229 97 00 12 34", "email": "", "reason": "Lettre du 3 mai", "confirm": "yes", **typed}
    return await browser.submit("form", **wanted)


@pytest.mark.both_databases
async def test_a_customer_is_anonymised_by_the_worker_and_the_job_forgets_them(staff: Staff) -> None:
    console, db = staff.console, staff.console.service.ctx.db
    client, other = await console.service.merchant("Kora"), await console.service.merchant("Balafon")
    paid = await client.pay("1234", customer={"firstname": "Awa", "lastname": "Kossou"})
    await other.pay("1234")
    await console.service.run_worker(60)
    admin = await staff.browser("admin")
    waiting = await client.pay("1234")
    page = await _anonymise(admin, client.id)
    assert page.path == f"/admin/merchants/{client.id}/anonymise?job=1"
    assert ("en cours" in _whole(page), 'data-refresh="3"' in page.text) == (True, True)
    [job] = await _jobs(db)
    assert (job.status, require(job.parameters).startswith("gAAAA"), NUMBER in str(job)) == ("pending", True, False)
    await console.service.run_worker()
    page = await admin.get(page.path)
    assert "terminé" in _whole(page)
    assert "data-refresh" not in page.text
    assert re.search(r"<dt>Paiements</dt><dd>1</dd>", page.text)
    assert (waiting["reference"] in page.text, paid["reference"] in page.text) == (True, False)
    [job] = await _jobs(db)
    assert (job.status, job.parameters, job.due_at) == ("done", None, None)
    left = await db.scan(select(payments.c.merchant_id, payments.c.reference).where(payments.c.phone_number == NUMBER))
    assert {tuple(row) for row in left} >= {(client.id, waiting["reference"])}
    assert {row[0] for row in left} == {client.id, other.id}
    asked, changed = await staff.last_act("staff_job.requested"), await staff.last_act("customer.anonymised")
    for each in (asked, changed):
        assert (each.actor, each.os_user, each.reason) == ("admin@guichet.example", "console", "Lettre du 3 mai")
        assert NUMBER not in str(each)
    assert paid["reference"] in changed.after
    assert (await admin.get(f"/admin/merchants/{other.id}/anonymise?job=1")).status == 404, "of another merchant"
    assert (await admin.get(f"{MARGIN}?job=1")).status == 404, "of another kind"
    await console.service.run_worker(31 * 86_400)
    assert await _jobs(db) == []


async def test_a_form_sent_twice_is_one_job_and_a_changed_one_is_another(staff: Staff) -> None:
    db, merchant = staff.console.service.ctx.db, await staff.console.merchant()
    admin = await staff.browser("admin")
    page = await admin.get(f"/admin/merchants/{merchant.id}/anonymise")
    form = {**page.form("form").fields, "phone": NUMBER, "email": "", "reason": "Lettre", "confirm": "yes"}
    both = [ConsoleBrowser(admin.service, dict(admin.cookies)) for _ in range(2)]
    answers = await asyncio.gather(*(each.post(page.path, form) for each in both))
    assert {each.path for each in answers} == {f"{page.path}?job={(await _jobs(db))[0].id}"}
    await staff.console.service.run_worker()
    await admin.post(page.path, form)
    assert len(await _jobs(db)) == 1
    assert [each.action for each in await staff.acts()].count("staff_job.requested") == 1
    await admin.post(page.path, {**form, "phone": "22997009999"})
    await admin.post(page.path, {**form, "form": "x"})
    await admin.post(page.path, {**form, "form": "x"})
    assert len(await _jobs(db)) == 4


async def test_wrong_forms_a_stale_factor_and_too_many_jobs(sqlite_staff: Staff) -> None:
    service, merchant = sqlite_staff.console.service, await sqlite_staff.console.merchant()
    admin = await sqlite_staff.browser("admin")
    for wrong in (
        {"phone": ""},
        {"phone": "123"},
        {"email": "nobody"},
        {"reason": " "},
        {"confirm": ""},
    ):
        page = await _anonymise(admin, merchant.id, **wrong)
        assert (page.status, "Rien n’a été fait" in _whole(page)) == (422, True), wrong
    for dates in ({"from": "soon"}, {"from": "2027-01-02", "to": "2027-01-01"}, {"from": ""}):
        await admin.get(MARGIN)
        assert (await admin.submit("from", **dates)).status == 422, dates
    assert (await act(admin, PROVIDERS, kind="provider_check", account="nobody")).status == 422
    assert await _jobs(service.ctx.db) == []
    for _ in range(MOST_PENDING):
        assert (await act(admin, PROVIDERS, kind="provider_check")).status == 200
    page = await act(admin, PROVIDERS, kind="provider_check")
    assert (page.status, "sont déjà en cours" in _whole(page)) == (409, True)
    assert len(await _jobs(service.ctx.db)) == MOST_PENDING
    service.clock.advance(STEP_UP_LASTS / SECOND + 1)
    assert (await _anonymise(admin, merchant.id)).path.startswith("/console/factor?next=")


async def test_a_margin_is_what_the_command_adds_up(operations: Operations) -> None:
    live, db = operations.live, operations.live.ctx.db
    live.first.script("status", done)
    await live.merchant.pay()
    await live.service.run_worker(60)
    auditor = await operations.staff(role="auditor")
    await auditor.get(MARGIN)
    page = await auditor.submit("from")
    assert "en cours" in _whole(page)
    await live.service.run_worker()
    page = await auditor.get(page.path)
    [((operator, currency), found)] = (await margins(db, None, None)).items()
    assert found.payments == 1
    figures = [
        formatting.amount(each, currency, "fr", coded=True) for each in (found.fees, found.provider_fees, found.margin)
    ]
    cells = re.findall(r'<td data-label="[^"]+">([^<]+)</td>', _whole(page).partition("Dernières demandes")[0])
    assert cells == [live.ctx.catalogues.base.name_of(operator), "1", *figures]
    ((_, actor, _, facts),) = await operations.acts("staff_job.requested")
    assert (actor, facts["kind"]) == ("awa@example.com", "ledger_margin")


async def test_a_worker_that_dies_is_followed_by_another_and_writes_nothing_more(staff: Staff) -> None:
    service, db = staff.console.service, staff.console.service.ctx.db
    finance = await staff.browser("finance")
    page = await act(finance, MARGIN, **{"from": "2026-01-01", "to": "2026-12-31"})
    job = page.path
    [first] = (await repository.claim(db, service.clock.now(), 1, [])).jobs
    await service.run_worker()
    assert "en cours" in (await finance.get(job)).text, "it is still claimed"
    service.clock.advance(60)
    await repository.renew(db, first, service.clock.now())
    await service.run_worker(61)
    assert "en cours" in (await finance.get(job)).text, "the claim was renewed"
    await service.run_worker(STAFF_JOB_LEASE / SECOND)
    page = await finance.get(job)
    assert ("terminé" in _whole(page), "essai 2" in page.text) == (True, True)
    with pytest.raises(JobTakenOver):
        await repository.renew(db, first, service.clock.now())
    with pytest.raises(JobTakenOver):
        await repository.finish(db, first, None, service.clock.now())
    assert (await _jobs(db))[0].status == "done"


async def test_a_job_that_kills_its_worker_or_cannot_be_read_is_given_up(sqlite_staff: Staff) -> None:
    service, db = sqlite_staff.console.service, sqlite_staff.console.service.ctx.db
    finance = await sqlite_staff.browser("finance")
    for _ in range(2):
        await act(finance, MARGIN, **{"from": "2026-01-01", "to": "2026-12-31"})
    await db.write(update(staff_jobs).where(staff_jobs.c.id == 1).values(attempts=MOST_ATTEMPTS))
    await db.write(update(staff_jobs).where(staff_jobs.c.id == 2).values(parameters="gAAAAother-key"))
    await service.run_worker()
    assert [(job.status, job.parameters) for job in await _jobs(db)] == [("failed", None)] * 2
    assert "abandonné" in _whole(await finance.get(f"{MARGIN}?job=1"))
    ctx = service.ctx
    await act(finance, MARGIN, **{"from": "2026-01-01", "to": "2026-12-31"})
    [job] = (await StaffJobs(ctx).claim(service.clock.now(), service.clock.now(), 1, [])).jobs
    await StaffJobs(ctx).work(job)
    await db.write(update(staff_jobs).where(staff_jobs.c.id == 3).values(result="gAAAAother-key"))
    assert "ne peut plus être lu" in _whole(await finance.get(f"{MARGIN}?job=3"))


async def test_accounts_with_providers_are_asked_by_the_worker(sqlite_settings: Settings) -> None:
    both = setup("mtn")
    both = type(both)({**both.accounts, **setup("coris").accounts}, {**both.routes, **setup("coris").routes})
    async with open_simulated_providers(sqlite_settings, both) as simulated:
        service, db = simulated.service, simulated.service.ctx.db
        finance = await ConsoleFixture(service).joined("finance@guichet.example", None, "finance")

        async def asked(kind: str, account: str = "") -> str:
            page = await act(finance, PROVIDERS, kind=kind, account=account)
            await simulated.nudged(service.worker.run_until_idle())
            return _whole(await finance.get(page.path))

        text = await asked("provider_check")
        assert re.search(r"<b>mtn</b> MTN <span class=\"tag\">✓</span>", text)
        assert re.search(r"<dt>Coris[^<]*</dt><dd>coris</dd>", text)
        assert "<b>mtn</b>" not in await asked("provider_check", "coris")
        text = await asked("provider_balances")
        [(read,)] = await db.scan(select(func.count()).select_from(staff_jobs).where(staff_jobs.c.status == "done"))
        assert read == 3
        found = require((await service.ctx.registry.with_balances()["mtn"].balances())[0])
        shown = formatting.stated_amount(plain(found.amount), found.currency, "fr")
        row = f'<td data-label="Compte prestataire">mtn</td><td data-label="Portefeuille">{found.wallet}</td>'
        assert row in text
        assert f"<b>{shown}</b>" in text
        assert "Ce prestataire ne donne pas de solde" in text
        text = await asked("provider_deep_check", "coris")
        assert "– notre adresse de notification\u00a0: ce prestataire n’envoie pas de notifications<" in text
        assert "✓ routes\u00a0: coris<" in text
        assert re.findall(r'<span lang="en">(.*?)</span>', text) == ["404 Not Found"], "what the provider said"
        acts = await db.scan(select(func.count()).select_from(staff_jobs))
        assert acts[0][0] == 4


@pytest.mark.parametrize("role", STAFF_ROLES)
async def test_each_role_asks_for_and_sees_what_its_rights_say(sqlite_staff: Staff, role: Any) -> None:
    merchant = await sqlite_staff.console.merchant()
    admin, browser = await sqlite_staff.browser("admin"), await sqlite_staff.browser(role)
    csrf = await csrf_of(browser)
    forms: dict[str, tuple[str, dict[str, str]]] = {
        "anonymise_customer": (
            f"/admin/merchants/{merchant.id}/anonymise",
            {"phone": NUMBER, "reason": "Lettre", "confirm": "yes"},
        ),
        "ledger_margin": (MARGIN, {"from": "2026-01-01", "to": "2026-01-31"}),
    } | {kind: (PROVIDERS, {"kind": kind}) for kind in RIGHT_OF if kind.startswith("provider_")}
    # These need an account with a provider: tests/console/admin/test_statement_comparison.py, test_wave_merchants.py.
    assert forms.keys() == RIGHT_OF.keys() - {"compare_statement", "wave_merchants"}
    for number, (kind, (path, fields)) in enumerate(forms.items(), 1):
        may = may_as_staff(role, RIGHT_OF[kind])  # type: ignore[index]
        made = await act(admin, path, **fields)
        assert (await browser.get(made.path)).status == (200 if may else 404 if path == PROVIDERS else 403), kind
        answer = await browser.ask("POST", path, {"csrf": csrf, **fields})
        assert answer.status == (303 if may else 403), (kind, number)
        if may_as_staff(role, RIGHT_OF["provider_check"]):
            listed = (await browser.get(PROVIDERS)).text
            assert ("Nos soldes" in listed) is may_as_staff(role, RIGHT_OF["provider_balances"])
    owner = await sqlite_staff.console.joined("awa@example.com", merchant)
    for path, fields in forms.values():
        assert (await owner.get(path)).status == 403
        assert (await owner.post(path, {"csrf": await csrf_of(owner), **fields})).status == 403
