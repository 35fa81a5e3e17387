"""The audit log's page: filters, order, and the proof that nothing was changed."""

import re
import sqlite3
from contextlib import closing

from guichet.audit_log import entries
from guichet.domain.audit_log import Act, Actor
from tests.console.admin.conftest import Staff
from tests.console.conftest import ConsoleFixture
from tests.console.pages import Page


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
    with closing(sqlite3.connect(staff.console.service.ctx.settings.sqlite_path)) as connection:
        triggers = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit_log'"
        )
        for (name,) in triggers.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE audit_log SET actor = 'nobody' WHERE number = 2")
        connection.commit()


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


async def test_a_filter_that_no_database_takes_finds_what_is_left_of_it(console: ConsoleFixture) -> None:
    """PostgreSQL refuses NUL."""
    staff = Staff(console)
    auditor = await staff.browser("auditor")
    await _record(staff, 1, "Ada", "payment.settled")
    for query in ("actor=%00", "action=payment.settled%00", "subject=%007"):
        page = await auditor.get(f"/admin/audit-log?{query}")
        assert page.status == 200
        assert "payment.settled" in page.text
