"""The payments of the console in Chromium: found, read, refunded, printed; on a telephone and a large screen."""

import pytest
from playwright.async_api import Browser, expect

from tests.browser.driver import Customer, customer
from tests.console.conftest import ConsoleFixture
from tests.console.test_payments import copies, merchant_of
from tests.service_fixture import MerchantClient

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
LONG = "Commande 1042 : trois pagnes wax, deux mètres de bazin riche et une livraison à Porto-Novo"


async def _join(console: ConsoleFixture, client: MerchantClient, awa: Customer, email: str) -> None:
    await awa.signed_in(await console.joined(email, await merchant_of(console, client)))


async def _some_payments(console: ConsoleFixture, client: MerchantClient) -> str:
    """The reference of a payment that succeeded, the newest of a full page."""
    await client.put("/webhooks/endpoint", {"url": "https://localhost:9/notifications/guichet"})
    await copies(console, client, count=26, description=LONG, firstname="Awa Bernadette", lastname="Kossou-Dossou")
    await copies(console, client, status="failed", failure_reason="insufficient_funds", next_poll_at=None)
    console.service.clock.advance(60)
    customer = {"firstname": "Awa", "lastname": "N'Dour", "email": "awa@example.com"}
    payment = await client.pay("0000", description=LONG, external_id="commande-1042", customer=customer)
    await console.service.run_worker()
    return str(payment["reference"])


async def test_a_payment_is_found_refunded_and_printed_on_accessible_and_whole_pages(
    console: ConsoleFixture, browser: Browser
) -> None:
    base = console.service.base_url
    client = await console.service.merchant("Boutique Kora et Fils de Porto-Novo")
    reference = await _some_payments(console, client)
    refunded = await _some_payments_refunded(console, client)
    path = f"/console/{client.id}/test/payments"
    pages = {
        "empty": path.replace("test", "live"),
        "filtered": f"{path}?status=refunded&from=2020-01-01&to=2020-01-02",
        "bad": f"{path}?from=2026-11-20&to=2026-11-19",
        "nothing": f"{path}?q=97123456",
        "found": f"{path}?q=awa",
        "refused": f"{path}/{refunded}/refund",
        "list": path,
    }
    async with customer(browser, base, "payments", signs_in=True, judged=True) as awa:
        await _join(console, client, awa, "payments@example.com")
        for step, address in pages.items():
            await awa.seen(step, address)
        await awa.follow(awa.page.get_by_role("link", name="Plus anciens"))
        await awa.follow(awa.page.get_by_role("link", name="Plus récents"))
        await awa.page.get_by_label("Chercher dans les paiements").fill("commande-1042")
        await awa.follow(awa.page.get_by_label("Chercher dans les paiements"), "Enter")
        await awa.follow(awa.page.locator("td a").first)
        await awa.page.get_by_role("heading", name="Ce qui s’est passé").wait_for()
        assert reference in awa.page.url
        await awa.seen("payment")
        await awa.follow(awa.page.get_by_role("link", name="Rembourser"))
        await awa.seen("refund")
        await awa.page.get_by_label("Motif").fill("Article indisponible")
        await awa.follow(awa.page.get_by_role("button", name="Rembourser"))
        await awa.page.get_by_text("Le paiement est remboursé").wait_for()
        await awa.seen("refunded")
        await awa.follow(awa.page.get_by_role("link", name="Reçu", exact=True))
        await awa.page.get_by_role("heading", name="Paiement remboursé").wait_for()
        await awa.seen("receipt")
        await expect(awa.page.get_by_role("button", name="Imprimer le reçu")).to_be_visible()
        await awa.page.emulate_media(media="print")
        await expect(awa.page.get_by_role("link", name="Paiements")).not_to_be_visible()
        await awa.shoot("printed")
        await awa.page.emulate_media(media="null")
        awa.nothing_strange()
    async with customer(browser, base, "payments-nojs", scripts=False, signs_in=True) as awa:
        await _join(console, client, awa, "nojs@example.com")
        await awa.open(f"{path}/{reference}/receipt")
        await expect(awa.page.get_by_role("button", name="Imprimer le reçu")).to_be_hidden()


async def _some_payments_refunded(console: ConsoleFixture, client: MerchantClient) -> str:
    payment = await client.pay("0000")
    await console.service.run_worker()
    await client.post(f"/payments/{payment['reference']}/refund", {"reason": "Article indisponible"})
    await console.service.run_worker()
    return str(payment["reference"])
