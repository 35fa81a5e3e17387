"""Mails about payments: who gets which, once each, and none that nobody asked for."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from guichet.accounts import users
from guichet.clock import DAY, HOUR, SECOND
from guichet.db.engine import require
from guichet.settings import Settings
from tests.console.conftest import ConsoleBrowser, ConsoleFixture
from tests.console.pages import Page
from tests.fakes.scripted_provider import ScriptedProvider, done
from tests.mail.said import said_to
from tests.service_fixture import MerchantClient, open_service

#: Until the hash chain covers a posting, and the worker looks again.
COVERED = 150


class Shop:
    """A live merchant whose card payments succeed at once."""

    def __init__(self, console: ConsoleFixture, client: MerchantClient) -> None:
        self.console, self.client = console, client

    @property
    def mails(self) -> str:
        return f"/console/{self.client.id}/live/mails"

    async def link(self) -> str:
        created = (await self.client.post("/payment-links", {"amount": 5000, "description": "Deux pagnes"})).data
        return urlsplit(str(created["url"])).path

    async def pay(self, email: str = "koffi@example.com") -> str:
        """The path of the customer's page."""
        browser, path = self.console.browser(), await self.link()
        page = await browser.get(path)
        form = next(each for each in page.forms() if each.fields.get("operator") == "VISA")
        person = {"firstname": "Koffi", "lastname": "Kossou", "email": email}
        return (await browser.post(path, {**form.fields, **person})).path

    async def work(self, seconds: float = COVERED) -> None:
        for each in (seconds, 11, 11):
            await self.console.service.run_worker(each)


async def choose(browser: ConsoleBrowser, act: str, **chosen: str) -> Page:
    """Sends one of the two forms of the page; a box that is not ticked is not sent."""
    form = next(each for each in browser.page.forms() if each.fields.get("act") == act)
    fields = {name: value for name, value in form.fields.items() if name in ("csrf", "act")}
    return await browser.post(browser.page.path, {**fields, **chosen})


@pytest.fixture
async def shop(settings: Settings) -> AsyncIterator[Shop]:
    provider: Any = ScriptedProvider()
    provider.script("initiate", done)
    async with open_service(settings, accounts={"card": provider}, routes={"VISA": ["card"]}) as service:
        yield Shop(ConsoleFixture(service), (await service.merchant("Boutique Kora")).live)


async def kinds(shop: Shop, *recipients: str) -> dict[str, list[str]]:
    return {
        each: [kind for kind, _ in await said_to(shop.console, each) if kind.startswith("payment")]
        for each in recipients
    }


async def test_a_customer_gets_a_receipt_where_the_merchant_chose_it(shop: Shop) -> None:
    owner = await shop.console.joined("owner@example.com", await shop.console.merchant_of(shop.client.id))
    await shop.pay("before@example.com")
    shop.console.service.clock.advance(1)
    await owner.get(shop.mails)
    assert "noté" in (await choose(owner, "receipts", receipts="yes")).text
    path = await shop.pay()
    await shop.pay("")
    await shop.work()  # Short enough for the owner's second factor to stay fresh.
    [(kind, text)] = await said_to(shop.console, "koffi@example.com")
    assert kind == "receipt"
    plain = text.replace("\u202f", " ").replace("\u00a0", " ")
    for part in (
        "Boutique Kora",
        "Deux pagnes",
        "5 000 F CFA",
        "Koffi Kossou",
        "Visa",
        path,
        "GMT",
        "Frais de paiement",
    ):
        assert part in plain, part
    [payment] = [each for each in (await shop.client.get("/payments")).data if each["reference"] in text]
    assert payment["status"] == "succeeded"
    assert await said_to(shop.console, "before@example.com") == [], "paid before the merchant chose it"
    await owner.get(shop.mails)
    await choose(owner, "receipts")
    await shop.pay("after@example.com")
    await shop.work()
    assert await said_to(shop.console, "after@example.com") == []
    assert len(await said_to(shop.console, "koffi@example.com")) == 1, "told once"


async def test_people_hear_of_each_payment_or_of_each_day(shop: Shop) -> None:
    merchant = await shop.console.merchant_of(shop.client.id)
    people = {}
    for email, role, chosen in (
        ("each@example.com", "reader", "each"),
        ("daily@example.com", "finance", "daily"),
        ("none@example.com", "developer", ""),
        ("left@example.com", "reader", "each"),
    ):
        people[email] = browser = await shop.console.joined(email, merchant, role)
        await browser.get(shop.mails)
        await choose(browser, "own", own=chosen)
    async with shop.console.service.ctx.db.transaction() as tx:
        left = require(await users.by_email(tx, "left@example.com"))
        assert await users.leave(tx, left.id, merchant.id)
    await shop.pay()
    await shop.pay()
    await shop.work()
    heard = await kinds(shop, *people)
    assert heard["each@example.com"] == ["payment_received"] * 2
    assert heard["daily@example.com"] == heard["none@example.com"] == heard["left@example.com"] == []
    await shop.work(DAY / SECOND)
    await shop.work(HOUR / SECOND)
    assert (await kinds(shop, "daily@example.com"))["daily@example.com"] == ["payments_of_day"]
    text = (await said_to(shop.console, "daily@example.com"))[-1][1].replace("\u202f", " ").replace("\u00a0", " ")
    assert "10 000 F CFA en 2 paiements" in text
    assert "Visa (2)" in text
    await shop.work(DAY / SECOND)
    assert (await kinds(shop, "daily@example.com"))["daily@example.com"] == ["payments_of_day"], "nothing was paid"


async def test_a_cashier_is_offered_no_mails(shop: Shop) -> None:
    cashier = await shop.console.joined("caisse@example.com", await shop.console.merchant_of(shop.client.id), "cashier")
    assert (await cashier.get(shop.mails)).status == 403
