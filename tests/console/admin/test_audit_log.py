"""The audit log's page: filters, order, and the proof that nothing was changed."""

import re
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from msgspec import structs

import guichet.console.admin
from guichet.audit_log import entries
from guichet.console.admin.audit_log_page import READS
from guichet.domain.audit_log import Act, Actor
from tests.console.admin.conftest import Staff
from tests.console.conftest import ConsoleFixture
from tests.console.pages import Page
from tests.sqlite_file import open_sqlite

_INSTANT: Final = "2026-10-31T23:00:00.000000Z"


async def _record(staff: Staff, count: int, actor: str, action: str, subject: str = "7") -> None:
    ctx = staff.console.service.ctx
    async with ctx.db.transaction() as tx:
        for _ in range(count):
            act = Act(Actor(actor, "root"), action, "payment", subject, reason="<i>vu</i>", after={"status": "x"})
            await entries.record(tx, act, ctx.clock.now())


def _check(page: Page) -> dict[str, str]:
    """The form that asks for the check."""
    return next(form.fields for form in page.forms() if form.action == "" and "csrf" in form.fields)


async def _tamper(staff: Staff) -> None:
    """Somebody with the database's password takes the trigger away and changes a row."""
    with closing(open_sqlite(staff.console.service.ctx.settings.sqlite_path)) as connection:
        triggers = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit_log'"
        )
        for (name,) in triggers.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE audit_log SET actor = 'nobody' WHERE number = 2")


@pytest.mark.both_databases
async def test_entries_are_filtered_and_paged(staff: Staff) -> None:
    auditor = await staff.browser("auditor")
    await _record(staff, 60, "Ada", "payment.settled")
    await _record(staff, 3, "Bio", "payment.settled", "8")
    await _record(staff, 2, "Bio", "refund.settled", "8")

    async def numbers(path: str) -> list[int]:
        page = await auditor.get(path)
        assert page.status == 200
        return [int(number) for number in re.findall(r"N° (\d+) ·", page.text)]

    newest = await numbers("/admin/audit-log")
    assert newest == sorted(newest, reverse=True)
    assert len(newest) == 50
    assert "&lt;i&gt;vu" in auditor.page.text
    assert "Bio (root)" in auditor.page.text
    assert len(await numbers("/admin/audit-log?actor=Bio")) == 5
    assert len(await numbers("/admin/audit-log?actor=Bio&action=payment.settled")) == 3
    assert len(await numbers("/admin/audit-log?subject=8&action=refund.settled&actor=Bio")) == 2
    assert await numbers("/admin/audit-log?actor=Nobody") == []
    first = await numbers("/admin/audit-log?actor=Ada")
    older = re.search(r'href="([^"]+)" rel="next"', auditor.page.text)
    assert older is not None
    rest = await numbers(older[1].replace("&amp;", "&"))
    assert (len(first), len(rest)) == (50, 10)
    assert max(rest) < min(first)


async def test_the_page_proves_that_the_log_is_whole(sqlite_staff: Staff) -> None:
    db = sqlite_staff.console.service.ctx.db
    auditor = await sqlite_staff.browser("auditor")
    number, digest = await entries.head(db)
    page = await auditor.get("/admin/audit-log")
    assert f"Vérifier les {number} entrées" in page.text
    page = await auditor.post("/admin/audit-log", _check(page))
    assert f"{number} entrées vérifiées" in page.text
    assert digest in page.text
    await _tamper(sqlite_staff)
    page = await auditor.post("/admin/audit-log", _check(page))
    assert "n’est plus celui qui a été écrit" in page.text


@pytest.mark.both_databases
async def test_a_filter_that_no_database_takes_finds_what_is_left_of_it(console: ConsoleFixture) -> None:
    """PostgreSQL refuses NUL."""
    staff = Staff(console)
    auditor = await staff.browser("auditor")
    await _record(staff, 1, "Ada", "payment.settled")
    for query in ("actor=%00", "action=payment.settled%00", "subject=%007"):
        page = await auditor.get(f"/admin/audit-log?{query}")
        assert page.status == 200
        assert "payment.settled" in page.text


async def test_an_entry_says_in_french_what_was_done_and_what_changed(sqlite_staff: Staff) -> None:
    """And below it what the command prints, for whoever compares both."""
    ctx, auditor = sqlite_staff.console.service.ctx, await sqlite_staff.browser("auditor")
    merchant = await sqlite_staff.console.merchant()
    ada = Actor("Ada", "root")
    limits = Act(ada, "merchant.limits_changed", "merchant", "7", merchant.id)
    acts = (
        structs.replace(limits, before={"daily_limit": None}, after={"daily_limit": 200_000_00}),
        Act(ada, "user.role_changed", "user", "3", merchant.id, before={"role": "finance"}, after={"role": "owner"}),
        Act(ada, "payment.settled", "payment", "p", before={"status": "pending"}, after={"provider_says": "not sent"}),
        Act(ada, "staff_job.requested", "staff_job", "1", after={"kind": "ledger_margin", "from": _INSTANT}),
        Act(ada, "refund.payee_confirmed", "refund", "r", after={"payee_number": "2290197001234"}),
        Act(ada, "mode.changed", "mode", "mtn", before={"fee_percent": 17_500, "active": True}),
        Act(ada, "incidents.listed", "incident", "float_empty", after={"late": 0}),
        Act(ada, "payment.searched", "payment", "several", after={"payments": ["a", "b"]}),
        Act(ada, "thing.done", "payment", "x"),  # By another version.
    )
    async with ctx.db.transaction() as tx:
        for each in acts:
            await entries.record(tx, each, ctx.clock.now())
    page = await auditor.get("/admin/audit-log?actor=Ada&action=all")
    shown = re.sub(r"<[^>]+>", "", page.text)
    for told in (
        "Limites du compte modifiées",
        "Plafond par jour\u00a0: – → 200\u202f000",
        "Rôle\u00a0: Finances → Titulaire",
        "État\u00a0: en attente",
        "Le prestataire dit\u00a0: jamais envoyé",
        "Nature\u00a0: Marge par opérateur",
        "De\u00a0: 1er novembre 2026 à 00:00 (GMT+1)",
        "Numéro à rembourser\u00a0: +2290197001234",
        "Part proportionnelle des frais\u00a0: 1,75\u00a0%",
        "Ouvert\u00a0: oui",
        "Incidents consultés",
        "incident Solde prestataire insuffisant",
        "Paiement recherché",
        "paiement plusieurs",
        "moyen de paiement MTN MoMo · Bénin",
        "Paiements\u00a0: a, b",
        "thing.done",
        "paiement x",
        merchant.name,
    ):
        assert told in shown, told
    assert "{&#34;daily_limit&#34;:null} → {&#34;daily_limit&#34;:20000000}" in page.text
    assert '<option value="payment.settled">Résultat d’un paiement établi</option>' in page.text
    page = await auditor.get("/admin/audit-log?action=thing.done")
    assert '<option value="thing.done" selected>thing.done</option>' in page.text
    assert len(re.findall(r"N° \d+ ·", page.text)) == 1


def _recorded_reads() -> set[str]:
    """The acts that the pages record because somebody looked."""
    code = "".join(path.read_text() for path in Path(guichet.console.admin.__file__).parent.rglob("*.py"))
    return set(re.findall(r"""record_read\(\s*request,\s*"([a-z_.]+)\"""", code))


async def test_what_somebody_only_read_is_shown_to_who_asks(sqlite_staff: Staff) -> None:
    auditor = await sqlite_staff.browser("auditor")
    assert _recorded_reads() | {"document.read"} == READS
    await _record(sqlite_staff, 1, "Ada", "payment.viewed", "seen")
    await _record(sqlite_staff, 1, "Ada", "payment.settled", "done")

    async def subjects(query: str) -> list[str]:
        page = await auditor.get(f"/admin/audit-log?{query}")
        return [subject for subject in ("seen", "done") if f"subject={subject}" in page.text]

    assert await subjects("") == ["done"]
    assert await subjects("action=all") == ["seen", "done"]
    assert await subjects("action=payment.viewed") == ["seen"]
