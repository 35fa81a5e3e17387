"""The first page of the back office says what the checks of `guichet doctor` mark; names stand where codes did."""

import re

from guichet.back_office import provider_balances
from guichet.clock import MINUTE, SECOND
from guichet.domain.money import Hundredths
from guichet.providers.capabilities import FloatBalance
from guichet.server.doctor.service_checks import keep_checks, last_checks
from tests.console.admin.conftest import Staff
from tests.console.conftest import ConsoleFixture
from tests.console.pages import Page
from tests.console.test_contested_payments import REFERENCE, contested


def _marks(page: Page) -> list[str]:
    """Where the rows of the table lead."""
    return re.findall(r'<td><b><a class="go" href="([^"]+)"', page.text)


async def test_each_mark_of_a_worker_leads_to_its_page(console: ConsoleFixture) -> None:
    staff, service = Staff(console), console.service
    client = await service.merchant("Balafon")
    finance = await staff.browser("finance")
    page = await finance.get("/admin")
    assert "Aucun worker n’a encore fait les vérifications" in page.text
    assert "Rien à signaler" not in page.text
    await service.make_checks()
    page = await finance.get("/admin")
    assert _marks(page) == ["/admin/ledger"], "never audited"
    assert "Aucun worker" not in page.text
    await client.live.report_mismatch("0d4f4a52-6f7e-4a5b-9f6d-2f1f0f1a8f10")
    assert '<td><a class="go" href="/admin/incidents">' in (await finance.get("/admin/doctor")).text
    await service.make_checks()
    assert _marks(await finance.get("/admin")) == ["/admin/ledger"], "a minute is not over"
    await service.make_checks(MINUTE / SECOND)
    assert _marks(await finance.get("/admin")) == ["/admin/incidents", "/admin/ledger"]
    support = await staff.browser("support")
    assert "/admin/ledger" not in _marks(await support.get("/admin")), "support may not open it"


async def test_old_marks_are_no_all_clear(sqlite_staff: Staff) -> None:
    service = sqlite_staff.console.service
    await service.make_checks()
    await service.make_checks(MINUTE / SECOND)
    finance = await sqlite_staff.browser("finance")
    assert "assurez-vous qu’un worker tourne" not in (await finance.get("/admin")).text
    service.clock.advance(16 * MINUTE / SECOND)
    assert "assurez-vous qu’un worker tourne" in (await finance.get("/admin")).text


async def test_two_workers_make_the_checks_once(sqlite_staff: Staff) -> None:
    ctx = sqlite_staff.console.service.ctx
    await keep_checks(ctx)
    first = await last_checks(ctx.db)
    await keep_checks(ctx)
    assert await last_checks(ctx.db) == first is not None


async def test_a_payment_that_nobody_will_poll_shows_no_date_for_it(sqlite_staff: Staff) -> None:
    console = sqlite_staff.console
    merchant = await console.merchant()
    client = await console.service.merchant("Balafon")
    reference = (await client.pay("0002"))["reference"]
    await console.service.run_worker(60)
    support = await sqlite_staff.browser("support")
    await support.get("/admin/payments")
    page = await support.submit("q", q=reference)
    [href] = re.findall(r'href="(/admin/payments/[0-9]+)"', page.text)
    page = await support.get(href)
    assert "9999" not in page.text
    assert "Balafon</a> · " in page.text, "the merchant by name"
    assert "MTN MoMo · Bénin" in page.text
    assert merchant.id != client.id


async def test_the_case_of_a_contested_payment_says_until_when_to_answer(console: ConsoleFixture) -> None:
    await contested(console)
    page = await (await Staff(console).browser("finance")).get(f"/admin/incidents/{REFERENCE}")
    assert page.status == 200
    assert "répondre avant le" in page.text


async def test_our_balances_stand_by_provider(sqlite_staff: Staff) -> None:
    ctx = sqlite_staff.console.service.ctx
    balances = [FloatBalance("togocom_tg", Hundredths(500_00), "XOF"), FloatBalance("", Hundredths(700_00), "XOF")]
    await provider_balances.store(ctx.db, "gone", balances, {}, ctx.clock.now())
    page = await (await sqlite_staff.browser("finance")).get("/admin/wallets")
    assert page.text.count('<tr class="day">') == 1
    assert "togocom_tg" not in page.text
    assert f">{ctx.catalogues.base.name_of('togocom_tg')}<" in page.text


async def test_after_each_act_the_next_page_says_what_was_done(sqlite_staff: Staff) -> None:
    console = sqlite_staff.console
    merchant = await console.merchant()
    admin, file = await sqlite_staff.browser("admin"), f"/admin/merchants/{merchant.id}"
    await admin.get(file)
    page = await admin.submit("name", act="name", name="Kora Deux")
    assert "C’est enregistré." in page.text
    assert page.path == file, "the address says nothing"
    assert "C’est enregistré." not in (await admin.get(file)).text
    await admin.get("/admin/ledger")
    page = await admin.post("/admin/ledger", admin.page.forms()[-1].fields)
    assert "L’audit est lancé." in page.text
    page = await admin.post("/admin/ledger", admin.page.forms()[-1].fields)
    assert "Un audit vient d’être lancé" in page.text
