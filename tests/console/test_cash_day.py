"""The end of a day at the cash desk, and what a cashier does not see."""

import html
import re

from guichet.clock import DAY, SECOND
from tests.console.conftest import ConsoleBrowser, ConsoleFixture
from tests.console.links_payer import hosted_path, pay
from tests.console.pages import Page


def lines(page: Page) -> list[tuple[str, str]]:
    """The names and values of the page's lists, spaces made plain."""
    text = html.unescape(page.text).replace("\u202f", " ").replace("\u00a0", " ")
    found = re.findall(r"<dt>(.*?)</dt><dd[^>]*>(.*?)</dd>", text)
    return [(" ".join(name.split()), value) for name, value in found]


async def sell(console: ConsoleFixture, cashier: ConsoleBrowser, desk: str, amount: str, operator: str = "mtn") -> None:
    await cashier.get(desk)
    page = await cashier.submit("amount", amount=amount)
    await pay(console.browser(), hosted_path(page), "0197000000", operator)


async def test_a_cashier_counts_their_own_sales_by_operator(console: ConsoleFixture) -> None:
    merchant = await console.merchant()
    awa = await console.joined("awa@example.com", merchant, "cashier")
    ada = await console.joined("ada@example.com", merchant, "cashier")
    desk = f"/console/{merchant.id}/test/cash-desk"
    await sell(console, awa, desk, "1000")
    await sell(console, awa, desk, "2500")
    await sell(console, awa, desk, "400", "moov")
    await sell(console, ada, desk, "700")
    await awa.get(desk)
    await awa.submit("amount", amount="9000")  # Nobody pays it.
    await console.service.run_worker(11)
    own = await awa.get(f"{desk}/day")
    assert lines(own) == [
        ("Moov Money × 1", "400 F CFA"),
        ("MTN MoMo × 2", "3 500 F CFA"),
        ("3 encaissements gardés", "3 900 F CFA"),
    ]
    assert "3 encaissements" in html.unescape((await awa.get(desk)).text)
    owner = await console.joined("owner@example.com", merchant, "owner")
    everybody = lines(await owner.get(f"{desk}/day"))
    assert ("MTN MoMo × 1", "700 F CFA") in everybody
    assert len(everybody) == 5
    console.service.clock.advance(DAY / SECOND)
    await awa.sign_in("awa@example.com")
    empty = await awa.get(f"{desk}/day")
    assert lines(empty) == []
    [before] = re.findall(r'href="([^"]+)" rel="prev"', empty.text)
    assert lines(await awa.get(html.unescape(before))) == lines(own)


async def test_a_sale_that_was_given_back_is_not_kept(sqlite_console: ConsoleFixture) -> None:
    console = sqlite_console
    client = await console.service.merchant()
    merchant = await console.merchant_of(client.id)
    awa = await console.joined("awa@example.com", merchant, "cashier")
    desk = f"/console/{merchant.id}/test/cash-desk"
    await sell(console, awa, desk, "1000")
    await sell(console, awa, desk, "250")
    [newest, _] = (await client.get("/payments")).data
    assert (await client.post(f"/payments/{newest['reference']}/refund")).status == 201
    await console.service.run_worker(11)
    assert lines(await awa.get(f"{desk}/day")) == [
        ("MTN MoMo × 1", "1 000 F CFA"),
        ("MTN MoMo · Remboursé × 1", "250 F CFA"),
        ("1 encaissement gardé", "1 000 F CFA"),
    ]


async def test_a_cashier_begins_at_the_desk_and_sees_no_revenue(sqlite_console: ConsoleFixture) -> None:
    merchant = await sqlite_console.merchant()
    cashier = await sqlite_console.joined("awa@example.com", merchant, "cashier")
    here = f"/console/{merchant.id}/live"
    assert (await cashier.get("/console")).path == f"{here}/cash-desk"
    assert (await cashier.get(here)).status == 403
    page = await cashier.get(f"{here}/links")
    assert "Encaissé" not in page.text
    owner = await sqlite_console.joined("owner@example.com", merchant)
    await owner.get(f"{here}/links/new")
    await owner.submit("amount", amount="500", description="x")
    assert "Encaissé" in (await owner.get(f"{here}/links")).text
    assert (await owner.get("/console")).path == here
