"""The first page of the back office says what the checks of `guichet doctor` mark; names stand where codes did."""

import re

from guichet.back_office import provider_balances
from guichet.clock import MINUTE, SECOND
from guichet.domain.money import Hundredths
from guichet.providers.capabilities import FloatBalance
from tests.console.admin.conftest import Staff
from tests.console.conftest import ConsoleFixture
from tests.console.pages import Page
from tests.console.test_contested_payments import REFERENCE, contested


def _marks(page: Page) -> list[str]:
    """Where the rows of the table lead."""
    return re.findall(r'<td><b><a class="go" href="([^"]+)"', page.text)


async def test_each_mark_leads_to_its_page_and_is_asked_for_once_a_minute(sqlite_staff: Staff) -> None:
    console = sqlite_staff.console
    client = await console.service.merchant("Balafon")
    finance = await sqlite_staff.browser("finance")
    assert "/admin/incidents" not in _marks(await finance.get("/admin"))
    await client.live.report_mismatch("0d4f4a52-6f7e-4a5b-9f6d-2f1f0f1a8f10")
    assert "/admin/incidents" not in _marks(await finance.get("/admin")), "a minute is not over"
    console.service.clock.advance(MINUTE / SECOND)
    assert "/admin/incidents" in _marks(await finance.get("/admin"))
    assert '<td><a class="go" href="/admin/incidents">' in (await finance.get("/admin/doctor")).text
    assert "/admin/ledger" in _marks(finance.page if finance.page.path == "/admin" else await finance.get("/admin"))
    support = await sqlite_staff.browser("support")
    assert "/admin/ledger" not in _marks(await support.get("/admin")), "support may not open it"


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
