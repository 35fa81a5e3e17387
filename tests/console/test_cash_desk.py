"""The cash desk: an amount, its QR code, and what the screen says while the customer pays."""

import asyncio
import html
import re

import pytest
from sqlalchemy import insert

from guichet.audit_log import entries as audit_log
from guichet.back_office.merchants import set_limits
from guichet.clock import MINUTE, SECOND
from guichet.db.engine import require
from guichet.db.tables import daily_totals
from guichet.domain.audit_log import Actor
from guichet.domain.ids import LinkId
from guichet.domain.merchants import Merchant, MerchantLimits
from guichet.domain.money import Hundredths, round_to_currency
from guichet.incidents import repository as incidents
from guichet.links import repository as link_repository
from guichet.links.links import CASH_DESK_LASTS
from guichet.links.repository import LinkList
from guichet.merchants import limits as merchant_limits
from guichet.payments import repository as payments
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Succeeded
from tests.console.conftest import ConsoleBrowser, ConsoleFixture
from tests.console.links_payer import hosted_path, pay
from tests.console.pages import Page
from tests.console.test_payments import merchant_of
from tests.invariants import check_books


async def desk(console: ConsoleFixture, env: str = "test") -> tuple[Merchant, ConsoleBrowser, str]:
    """A merchant, its cashier at the cash desk, and the desk's path."""
    merchant = await console.merchant()
    browser = await console.joined("caisse@example.com", merchant, "cashier")
    path = f"/console/{merchant.id}/{env}/cash-desk"
    await browser.get(path)
    return merchant, browser, path


def says(page: Page) -> str:
    found = re.search(r"<h1[^>]*>(.*?)</h1>", page.text)
    assert found is not None
    return html.unescape(re.sub(r"<.*?>", "", found[1]))


async def test_the_screen_follows_the_customer(console: ConsoleFixture) -> None:
    _, cashier, path = await desk(console)
    page = await cashier.submit("amount", amount="2 500", description="Pagne wax")
    sale = page.path
    assert re.fullmatch(rf"{path}/\d+", sale)
    assert says(page) == "En attente du client"
    assert 'data-refresh="3"' in page.text
    assert '<noscript><meta http-equiv="refresh" content="3">' in page.text
    assert "2\u202f500\u00a0F\u00a0CFA" in html.unescape(page.text)
    assert "…0000" in page.text, "how to try it"
    customer, hosted = console.browser(), hosted_path(page)
    await pay(customer, hosted, "0197000003")
    page = await cashier.get(sale)
    assert says(page) == "Échoué, le client peut réessayer"
    assert "Code QR du lien" in page.text
    await pay(customer, hosted, "0197112345")
    page = await cashier.get(sale)
    assert says(page) == "Le client valide"
    assert hosted not in page.text, "nobody else pays meanwhile"
    await console.service.run_worker(11)
    page = await cashier.get(sale)
    assert says(page) == "Payé"
    assert "data-refresh" not in page.text
    assert 'http-equiv="refresh"' not in page.text
    shown = html.unescape(page.text)
    assert "MTN MoMo" in shown
    assert "45</span>" in shown
    assert "0197112345" not in shown
    assert (await console.browser().get(hosted)).status == 410, "one payment only"
    assert "Paiement réussi" in (await customer.get(hosted)).text, "whoever paid sees the receipt"
    page = await cashier.get(path)
    assert re.search(r"2\u202f500.{0,80}Payé", html.unescape(page.text), re.DOTALL)


async def test_a_sale_ends_and_a_mistake_is_cancelled(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    merchant, cashier, path = await desk(console, "live")
    page = await cashier.submit("amount", amount="500")
    hosted, sale = hosted_path(page), page.path
    assert "Achat en boutique" in html.unescape(page.text)
    assert "…0000" not in page.text, "numbers of the test environment"
    console.service.clock.advance(CASH_DESK_LASTS / SECOND)
    page = await cashier.get(sale)
    assert says(page) == "Expiré"
    assert (await cashier.get(hosted)).status == 410
    await cashier.get(path)
    page = await cashier.submit("amount", amount="5000")
    hosted = hosted_path(page)
    [form] = [each for each in page.forms() if not each.action]
    cancelled = page.path
    page = await cashier.post(cancelled, form.fields)
    assert page.path == path
    states = re.findall(r'<span class="tag bad">(.*?)</span>', page.text)
    assert [html.unescape(state) for state in states] == ["Annulé", "Expiré"]
    assert says(await cashier.get(cancelled)) == "Annulé"
    assert (await cashier.get(hosted)).status == 410
    acts = [each.action for each in await audit_log.latest(console.service.ctx.db)]
    assert [each for each in acts if each.startswith("link.")] == ["link.closed", "link.created", "link.created"]
    links = await link_repository.walk(console.service.ctx.db, LinkList(merchant.id, "live"), 10)
    assert links == [], "the list of links to share stays readable"
    listed = await cashier.get(f"/console/{merchant.id}/live/links?kind=desk")
    assert listed.text.count("Achat en boutique") == 2


async def test_a_form_that_is_sent_twice_makes_one_sale(console: ConsoleFixture) -> None:
    merchant, cashier, path = await desk(console)
    form = cashier.page.form("amount")
    fields = {**form.fields, "amount": "700"}
    twice = [ConsoleBrowser(console.service, dict(cashier.cookies)) for _ in range(4)]
    pages = await asyncio.gather(*(each.post(path, fields) for each in twice))
    assert [page.status for page in pages] == [200] * 4
    assert len({page.path for page in pages}) == 1
    console.service.clock.advance(2)
    assert (await cashier.post(path, fields)).path == pages[0].path, "a later click, too"
    page = await cashier.post(path, {**fields, "amount": "900"})
    assert page.status == 409, "another amount is another sale"
    assert 'value="900"' in page.text
    page = await cashier.submit("amount", amount="900")
    assert page.status == 409, "and the first one still waits"
    page = await cashier.submit("amount", waiting="keep")
    assert page.status == 200
    db = console.service.ctx.db
    sales = await link_repository.walk(db, LinkList(merchant.id, "test", cash_desk=True), 10)
    assert [(sale.amount, sale.max_uses) for sale in sales] == [(90_000, 1), (70_000, 1)]
    acts = [each.action for each in await audit_log.latest(db)]
    assert acts.count("link.created") == 2


async def test_wrong_amounts_are_refused_and_kept(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    merchant, cashier, path = await desk(console)
    for typed in ("", "0", "-5", "12,5", "5.000", "5,000", "1e9", "abc", '5,"max_uses":9', "100000000"):
        await cashier.get(path)
        page = await cashier.submit("amount", amount=typed, description='<b>"x"</b>')
        assert page.status == 422, typed
        assert ("Écrivez 5000 ou 5 000" in page.text) is typed.endswith(("5.000", "5,000")), typed
        assert 'id="amount-err"' in page.text
        assert page.form("amount").fields["amount"] == typed
        assert "<b>" + '"x"' not in page.text
    page = await cashier.submit("amount", amount="5", description="x" * 256)
    assert page.status == 422
    assert 'id="description-err"' in page.text
    assert await link_repository.walk(console.service.ctx.db, LinkList(merchant.id, "test", cash_desk=True), 10) == []


async def test_the_limits_of_a_merchant_are_shown_and_hold_for_sales(sqlite_console: ConsoleFixture) -> None:
    """A sale over them could never be paid."""
    console, ctx = sqlite_console, sqlite_console.service.ctx
    merchant, cashier, path = await desk(console, "live")
    base = path.removesuffix("/cash-desk")
    reader = await console.joined("lecture@example.com", merchant, "reader")
    assert "Vos limites" not in (await reader.get(base)).text
    limits = MerchantLimits(120, Hundredths(4_000_00), Hundredths(10_000_00))
    await set_limits(ctx.db, ctx.clock, merchant.id, limits, Actor("Ada", "root"))
    today = merchant_limits.day_of(merchant, ctx.clock.now(), ctx.settings.time_zone)
    await ctx.db.write(insert(daily_totals).values(merchant_id=merchant.id, day=today, amount=2_500_00))
    shown = html.unescape((await reader.get(base)).text)
    assert "<dd>4\u202f000\u00a0F\u00a0CFA</dd>" in shown
    assert "<dd>10\u202f000\u00a0F\u00a0CFA, il en reste 7\u202f500\u00a0F\u00a0CFA aujourd’hui</dd>" in shown
    assert "120 par minute" in shown
    in_test = (await reader.get(base.replace("live", "test"))).text
    assert ("120 par minute" in in_test, "Un paiement réel, au plus" in in_test) == (True, False)
    for page_path, status in (
        (path, 422),
        (path.replace("cash-desk", "links/new"), 422),
        (path.replace("live", "test"), 200),
    ):
        await cashier.get(page_path)
        page = await cashier.submit("amount", amount="4001", description="x")
        over = "plafond de votre compte pour un paiement : 4\u202f000\u00a0XOF."
        assert (page.status, over in html.unescape(page.text)) == (status, status == 422)
    await cashier.get(path)
    assert (await cashier.submit("amount", amount="4000")).status == 200


async def test_a_customer_who_validates_late_is_seen(sqlite_console: ConsoleFixture) -> None:
    """A payment that was begun in time counts after the end of the link."""
    console = sqlite_console
    _, cashier, path = await desk(console)
    page = await cashier.submit("amount", amount="500")
    sale = page.path
    await pay(console.browser(), hosted_path(page), "0197000002")
    console.service.clock.advance((CASH_DESK_LASTS + MINUTE) / SECOND)
    page = await cashier.get(sale)
    assert says(page) == "Le client valide"
    assert 'data-refresh="20"' in page.text
    # A link that is no sale is none of the cash desk's.
    await cashier.get(path.replace("cash-desk", "links/new"))
    page = await cashier.submit("amount", amount="500", description="x")
    assert (await cashier.get(page.path.replace("links", "cash-desk"))).status == 404


async def cancel(cashier: ConsoleBrowser, sale: str) -> Page:
    [form] = [each for each in (await cashier.get(sale)).forms() if not each.action]
    return await cashier.post(sale, form.fields)


@pytest.mark.parametrize("over", [False, True], ids=["in time", "after its end"])
async def test_a_sale_is_cancelled_while_the_customer_confirms(console: ConsoleFixture, over: bool) -> None:
    """What is on the telephone can be accepted all the same: then the money goes back."""
    _, cashier, path = await desk(console)
    page = await cashier.submit("amount", amount="2500")
    sale, customer = page.path, console.browser()
    waiting = (await pay(customer, hosted_path(page), "0197000002")).path
    if over:
        console.service.clock.advance((CASH_DESK_LASTS + MINUTE) / SECOND)
    page = await cashier.get(sale)
    assert says(page) == "Le client valide"
    assert "peut encore l’accepter" in html.unescape(page.text)
    page = await cancel(cashier, sale)
    assert (page.path, says(page)) == (sale, "Annulé")
    assert 'data-refresh="20"' in page.text, "it is followed on"
    assert "rendu automatiquement" in html.unescape(page.text)
    ctx = console.service.ctx
    payment = (await payments.of_link(ctx.db, LinkId(int(sale.rpartition("/")[2])), 1))[0]
    await settle_payment(ctx, payment, Succeeded(round_to_currency(payment.total_amount, "XOF"), "XOF"))
    page = await cashier.get(sale)
    assert says(page) == "Annulé, l’argent est rendu"
    assert "Ne donnez pas la marchandise" in html.unescape(page.text)
    assert "Paiement en trop" in (await customer.get(waiting)).text
    await console.service.run_worker()
    page = await cashier.get(sale)
    assert says(page) == "Remboursé"
    assert "data-refresh" not in page.text
    assert "Annulé" in html.unescape((await cashier.get(path)).text)
    kinds = [each.kind for each in await incidents.about(ctx.db, payment.merchant_id, payment.reference)]
    assert kinds == ["automatic_refund"]
    await check_books(ctx.db)


async def test_a_sale_that_a_program_closes_is_cancelled(console: ConsoleFixture) -> None:
    """As by the cashier: a payment that was begun and still succeeds goes back."""
    ctx = console.service.ctx
    merchant = await console.service.merchant()
    cashier = await console.joined("caisse@example.com", await merchant_of(console, merchant), "cashier")
    await cashier.get(f"/console/{merchant.id}/live/cash-desk")
    page = await cashier.submit("amount", amount="2500")
    link_id = LinkId(int(page.path.rpartition("/")[2]))
    closed = await merchant.live.post(f"/payment-links/{link_id}/close")
    assert closed.status == 200
    assert says(await cashier.get(page.path)) == "Annulé"
    link = require(await link_repository.by_id(ctx.db, merchant.id, "live", link_id))
    assert link.cancelled_at == link.expires_at
    assert (await merchant.live.post(f"/payment-links/{link_id}/close")).data == closed.data


async def test_a_sale_that_was_paid_in_the_same_moment_is_paid(console: ConsoleFixture) -> None:
    _, cashier, _path = await desk(console)
    page = await cashier.submit("amount", amount="2500")
    sale = page.path
    fields = next(each for each in (await cashier.get(sale)).forms() if not each.action).fields
    await pay(console.browser(), hosted_path(page), "0197000000")
    await console.service.run_worker(1)
    page = await cashier.post(sale, fields)
    assert (page.path, says(page)) == (sale, "Payé")
    await console.service.run_worker()
    assert says(await cashier.get(sale)) == "Payé"
    acts = [each.action for each in await audit_log.latest(console.service.ctx.db)]
    assert "link.closed" not in acts


async def test_of_a_cancellation_and_a_success_at_once_one_comes_first(console: ConsoleFixture) -> None:
    """The lock of the link decides: either the sale is paid, or what was paid goes back."""
    ctx = console.service.ctx
    _, cashier, path = await desk(console)
    for number in range(6):
        await cashier.get(path)
        page = await cashier.submit("amount", amount=f"{1000 + number}", waiting="keep")
        link_id = LinkId(int(page.path.rpartition("/")[2]))
        await pay(console.browser(), hosted_path(page), f"01970{number}0002")
        payment = (await payments.of_link(ctx.db, link_id, 1))[0]
        success = Succeeded(round_to_currency(payment.total_amount, "XOF"), "XOF")
        [form] = [each for each in (await cashier.get(page.path)).forms() if not each.action]
        await asyncio.gather(cashier.post(page.path, form.fields), settle_payment(ctx, payment, success))
        await console.service.run_worker()
        link = require(await link_repository.by_id(ctx.db, payment.merchant_id, "test", link_id))
        stored = require(await payments.by_id(ctx.db, payment.id))
        assert stored.status == ("succeeded" if link.cancelled_at is None else "refunded")
    await check_books(ctx.db)


async def test_a_new_amount_asks_about_the_sale_that_waits(console: ConsoleFixture) -> None:
    ctx = console.service.ctx
    merchant, cashier, path = await desk(console)
    first = (await cashier.submit("amount", amount="2500")).path
    await cashier.get(path)
    page = await cashier.submit("amount", amount="900", description="Pain")
    assert page.status == 409
    assert "2\u202f500\u00a0F\u00a0CFA" in html.unescape(page.text)
    assert page.form("amount").fields["amount"] == "900"
    sales = await link_repository.walk(ctx.db, LinkList(merchant.id, "test", cash_desk=True), 10)
    assert len(sales) == 1, "nothing is done before the answer"
    # Another cashier of the shop is not asked.
    other = await console.joined("autre@example.com", merchant, "cashier")
    await other.get(path)
    assert (await other.submit("amount", amount="300")).status == 200
    kept = await cashier.submit("amount", waiting="keep")
    assert kept.status == 200
    assert says(await cashier.get(first)) == "En attente du client"
    await cashier.get(path)
    page = await cashier.submit("amount", amount="700")
    assert page.status == 409
    made = await cashier.submit("amount", waiting="cancel")
    assert "700" in made.text
    assert says(await cashier.get(kept.path)) == "Annulé", "the newest of them"
    assert says(await cashier.get(first)) == "En attente du client"
