"""Webhooks, keys, requests and activity in Chromium: on a telephone, on a large screen, in dark."""

import re

import pytest
from playwright.async_api import Browser

from guichet.db.engine import require
from guichet.merchants import repository
from tests.browser.driver import customer
from tests.console.conftest import ConsoleFixture

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_developer_sets_webhooks_up_and_creates_a_key(console: ConsoleFixture, browser: Browser) -> None:
    service = console.service
    client = await service.merchant("Boutique Kora et Fils de Porto-Novo")
    merchant = require(await repository.get(service.ctx.db, client.id))
    await client.pay("0000", external_id="a-very-long-order-number-that-has-no-place-to-break-2026-11-23")
    await client.get("/payments/a-very-long-order-number-that-has-no-place-to-break-and-is-not-there")
    await service.ctx.request_log.flush(service.ctx.db)
    here = f"/console/{merchant.id}/test"
    async with customer(browser, service.base_url, "developers", signs_in=True, judged=True) as awa:
        await awa.signed_in(await console.joined("awa@example.com", merchant))
        await awa.open(here + "/webhooks")
        await awa.page.get_by_label("Adresse").fill("https://hooks.kora.invalid/webhooks/guichet/notifications")
        await awa.follow(awa.page.get_by_role("button", name="Enregistrer l’adresse"))
        await awa.page.get_by_text("L’adresse est enregistrée").wait_for()
        await awa.follow(awa.page.get_by_role("button", name="Afficher le secret"))
        await awa.page.locator("#secret").wait_for()
        await awa.seen("webhooks")
        await awa.follow(awa.page.get_by_role("button", name="Envoyer un événement de test"))
        await awa.page.get_by_role("heading", name=re.compile("webhook.test")).wait_for()
        await service.run_worker()
        await awa.seen("delivery", awa.page.url.removeprefix(service.base_url))
        await awa.seen("deliveries", here + "/webhooks/deliveries")
        await awa.open(here + "/developers")
        await awa.follow(awa.page.get_by_role("button", name="Créer une clé"))
        await awa.page.locator("#key").wait_for()
        await awa.seen("keys")
        await awa.page.get_by_role("button", name="Copier la clé").click()
        chosen = await awa.page.evaluate("getSelection().toString().trim()")
        assert chosen == await awa.page.locator("#key").inner_text()
        await awa.page.get_by_text("Modifier").first.click()
        await awa.follow(awa.page.get_by_role("button", name="Révoquer la clé").first)
        await awa.page.get_by_role("heading", name="Révoquer la clé").wait_for()
        await awa.seen("key-revocation")
        await awa.seen("requests", here + "/developers/requests")
        await awa.seen("clock", here + "/developers/clock")
        await awa.seen("activity", here + "/activity")
        awa.nothing_strange()
