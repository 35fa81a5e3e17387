"""The pages of the operations in Chromium: two people decide about a payment, on a telephone and a large screen."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from guichet.availability import OperatorAvailability, set_availability
from guichet.clock import DAY, earlier
from guichet.domain.messages import verbatim
from guichet.domain.payments import Payment
from guichet.settings import Settings
from tests.browser.driver import Customer, customer
from tests.console.admin.operations import Operations, open_operations
from tests.payments.conftest import stored
from tests.payments.test_late_results import found_late
from tests.payments.test_manual_settlement import UNKNOWN

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def operations(sqlite_settings: Settings) -> AsyncIterator[Operations]:
    async for each in open_operations(sqlite_settings):
        yield each


async def _join(operations: Operations, person: Customer, email: str) -> None:
    await person.signed_in(await operations.console.joined(email, None, "admin"))


async def test_every_page_is_accessible_and_whole(operations: Operations, browser: Browser) -> None:
    live = operations.live
    late, _ = await found_late(live)
    payment = await _pending(operations)
    state = OperatorAvailability(
        "mtn", "degraded", live.ctx.clock.now(), verbatim("4 of 20"), "degraded", None, None, None
    )
    await set_availability(live.ctx.db, state)
    await live.set_wallet("Gelé", "EUR")
    async with customer(browser, live.service.base_url, "operations", signs_in=True, judged=True) as awa:
        await _join(operations, awa, "awa@example.com")
        for path in (
            "incidents",
            f"incidents/{late.reference}",
            f"incidents/{payment.reference}",
            "approvals",
            "payments",
            f"payments/{payment.id}",
            "modes",
            "wallets",
            f"wallets/{live.merchant.id}",
            f"wallets/{live.merchant.id}/statement",
            "reconciliation",
            "reconciliation/margin",
            "reconciliation/statement",
            "ledger",
            "deliveries",
            "doctor",
            "doctor/providers",
            "doctor/wave-merchants",
        ):
            step = re.sub(r"\W", "", path.replace(late.reference, "late").replace(payment.reference, "case"))
            await awa.seen(step, f"/admin/{path}")
        awa.nothing_strange()


async def test_two_people_decide_on_a_large_screen(operations: Operations, browser: Browser) -> None:
    live, base = operations.live, operations.live.service.base_url
    payment = await _pending(operations)
    async with (
        customer(browser, base, "operations-asks", desktop=True, signs_in=True) as awa,
        customer(browser, base, "operations-approves", desktop=True, signs_in=True) as zoe,
    ):
        await _join(operations, awa, "awa@example.com")
        await _join(operations, zoe, "zoe@example.com")
        await operations.in_staff_since("zoe@example.com", earlier(live.ctx.clock.now(), DAY))
        await awa.open(f"/admin/incidents/{payment.reference}")
        await awa.page.get_by_role("radio", name="réussi").check()
        await awa.page.locator("#reason-settle").fill("relevé du 3 mai, ligne 12")
        await awa.follow(awa.page.get_by_role("button", name="Demander l’approbation"))
        await awa.page.get_by_text("Vous l’avez demandé").wait_for()
        await zoe.open("/admin/approvals")
        await zoe.follow(zoe.page.get_by_role("link", name="Terminer un paiement à la main"))
        await zoe.page.get_by_role("heading", name="Décider").wait_for()
        await awa.seen("own")
        await zoe.seen("request")
        await zoe.page.get_by_label("Pourquoi").fill("vérifié avec MTN")
        await zoe.follow(zoe.page.get_by_role("button", name="Approuver et exécuter"))
        await zoe.page.get_by_text("approuvée", exact=True).wait_for()
        assert await live.state(payment.reference) == "succeeded"
        awa.nothing_strange()
        zoe.nothing_strange()


async def _pending(operations: Operations) -> Payment:
    """A payment whose provider does not say how it ended, with an incident."""
    live = operations.live
    live.first.script("status", UNKNOWN)
    payment = await stored(live, await live.merchant.pay())
    await live.merchant.report_mismatch(payment.reference)
    return payment
