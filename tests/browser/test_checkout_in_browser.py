"""The test environment's card page in a real Chromium, up to the merchant's own site."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tests.browser.driver import customer
from tests.checkout.checkout_fixture import CheckoutFixture
from tests.service_fixture import serving

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


class Site:
    """A merchant's site on another origin; `/old` moves on, as sites do. It notes who sent the customer."""

    def __init__(self) -> None:
        self.url = ""
        self.referrers: list[str | None] = []

    async def __call__(self, scope: object, receive: object, send: object) -> None:
        request = Request(scope)  # type: ignore[arg-type]
        moved = request.url.path == "/old"
        if moved:
            self.referrers.append(request.headers.get("referer"))
        answer: Response = HTMLResponse(f"<h1>Merci</h1><p id=q>{request.url.query.replace('&', ' ')}</p>")
        if moved:
            answer = RedirectResponse(f"{self.url}/new?{request.url.query}", 302)
        await answer(scope, receive, send)  # type: ignore[arg-type]


@pytest_asyncio.fixture(loop_scope="session")
async def site() -> AsyncIterator[Site]:
    merchant = Site()
    async with serving(merchant) as url:
        merchant.url = url.replace("127.0.0.1", "localhost")
        yield merchant


@pytest.mark.parametrize(
    ("scripts", "button", "status"),
    [(True, "Paiement réussi", "succeeded"), (False, "Paiement refusé", "failed")],
    ids=["js", "nojs"],
)
async def test_back_to_the_merchant(
    browser: Browser, checkout: CheckoutFixture, site: Site, scripts: bool, button: str, status: str
) -> None:
    path = await checkout.card(return_url=f"{site.url}/old?order=42")
    name = f"checkout-{status}-{'js' if scripts else 'nojs'}"
    async with customer(browser, checkout.url, name, scripts=scripts) as awa:
        await awa.open(path)
        await awa.shoot("1-choice")
        await awa.follow(awa.page.get_by_role("button", name=button))
        await awa.page.wait_for_url("**/new?**")
        reference = (await checkout.api("GET", "/payments", checkout.test))[0]["reference"]
        assert await awa.page.locator("#q").inner_text() == f"order=42 reference={reference} status={status}"
        assert site.referrers == [None]
        title = "Paiement réussi" if status == "succeeded" else "Le paiement n’a pas abouti"
        # Going back shows what became of it, not the choice.
        await awa.page.go_back()
        await expect(awa.page.locator("h1")).to_have_text(title)
        await expect(awa.page.get_by_role("button", name=button)).to_have_count(0)
        await awa.page.reload()
        await expect(awa.page.locator("h1")).to_have_text(title)
        await awa.shoot("2-after")
        await expect(awa.page.get_by_role("button", name="Paiement refusé")).to_have_count(0)
        await awa.follow(awa.page.get_by_role("link", name="Retourner chez Boutique Kora"))
        assert f"status={status}" in awa.page.url
    assert (await checkout.api("GET", "/payments", checkout.test))[0]["status"] == status
