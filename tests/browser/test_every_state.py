"""Every page in every state: accessible by axe-core in light and dark, whole at 360 px, and seen by a person."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

import pytest
from playwright.async_api import Browser

from guichet.back_office.merchants import set_status
from guichet.domain.audit_log import Actor
from guichet.domain.catalogue import ModeOverride
from guichet.ledger import wallets
from guichet.merchants.catalogue import set_override
from guichet.providers.base import Unknown
from guichet.settings import Settings
from tests.browser.driver import Customer, customer
from tests.checkout.checkout_fixture import CATALOGUE, CheckoutFixture, open_checkout

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

LONG: Final = "Commande exceptionnelle de très longue date " + "x" * 160
State = Callable[[CheckoutFixture, Customer], Awaitable[None]]


async def _link(checkout: CheckoutFixture, awa: Customer) -> None:
    await awa.open(await checkout.link(expires_at="2099-12-31T10:00:00Z"))


async def _link_with_long_texts(checkout: CheckoutFixture, awa: Customer) -> None:
    await awa.open(await checkout.link(99_999_999, LONG))


async def _link_with_faults(checkout: CheckoutFixture, awa: Customer) -> None:
    await awa.open(await checkout.link())
    mode = await awa.choose("Bénin", "Coris Money")
    await awa.follow(mode.get_by_role("button", name="Payer"))


async def _link_with_a_code_on_its_way(checkout: CheckoutFixture, awa: Customer) -> None:
    await awa.open(await checkout.link())
    mode = await awa.choose("Bénin", "Coris Money")
    await mode.get_by_label("Votre numéro Coris Money").fill("01 97 00 00 45")
    await awa.follow(mode.get_by_role("button", name="Recevoir le code par SMS"))
    await awa.page.get_by_text("Un code a été envoyé").wait_for()


async def _link_without_a_code(checkout: CheckoutFixture, awa: Customer) -> None:
    checkout.operator.code_answer = Unknown()
    await awa.open(await checkout.link())
    mode = await awa.choose("Bénin", "Coris Money")
    await mode.get_by_label("Votre numéro Coris Money").fill("01 97 00 00 45")
    await awa.follow(mode.get_by_role("button", name="Recevoir le code par SMS"))
    await awa.page.get_by_text("Attendez une minute").wait_for()


async def _link_with_card_faults(checkout: CheckoutFixture, awa: Customer) -> None:
    await awa.open(await checkout.link())
    mode = await awa.choose("Carte bancaire", "Visa")
    await awa.follow(mode.get_by_role("button"))


async def _link_too_big(checkout: CheckoutFixture, awa: Customer) -> None:
    await awa.open(await checkout.link(2_000_000))


async def _link_partly_too_big(checkout: CheckoutFixture, awa: Customer) -> None:
    await awa.open(await checkout.link(982_000))


async def _waiting(checkout: CheckoutFixture, awa: Customer) -> None:
    await awa.open(await checkout.waiting(await checkout.link()))


async def _waiting_long(checkout: CheckoutFixture, awa: Customer) -> None:
    path = await checkout.waiting(await checkout.link(description=LONG))
    checkout.pass_time(300)
    await awa.open(path)


async def _waiting_for_a_code(checkout: CheckoutFixture, awa: Customer) -> None:
    await awa.open(await checkout.waiting(await checkout.link(), operator="coris", otp="1234"))


async def _waiting_elsewhere(checkout: CheckoutFixture, awa: Customer) -> None:
    await awa.open(await checkout.waiting(await checkout.link(), operator="wave_sn", phone="771234567"))


async def _receipt(checkout: CheckoutFixture, awa: Customer) -> None:
    path = await checkout.waiting(await checkout.link(description=LONG))
    checkout.operator.approve(checkout.operator.last.payment.reference)
    checkout.pass_time(6)
    await awa.open(path)


async def _refunded(checkout: CheckoutFixture, awa: Customer) -> None:
    path = await checkout.waiting(await checkout.link())
    checkout.operator.approve(checkout.operator.last.payment.reference)
    checkout.pass_time(6)
    await checkout.get(path)
    await checkout.api("POST", f"/payments/{checkout.operator.last.payment.reference}/refund", json={})
    await checkout.work()
    await awa.open(path)


async def _failure(checkout: CheckoutFixture, awa: Customer) -> None:
    await awa.open(await checkout.waiting(await checkout.link(), phone="0197000001"))


async def _not_open(checkout: CheckoutFixture, awa: Customer) -> None:
    await awa.open(await checkout.link(starts_at="2099-01-01T00:00:00Z"))


async def _expired(checkout: CheckoutFixture, awa: Customer) -> None:
    await awa.open(await checkout.link(expires_at="2020-01-01T00:00:00Z"))


async def _busy(checkout: CheckoutFixture, awa: Customer) -> None:
    path = await checkout.link(type="limité", max_uses=1)
    await checkout.waiting(path)
    await awa.open(path)


async def _used_up(checkout: CheckoutFixture, awa: Customer) -> None:
    path = await checkout.link(type="limité", max_uses=1)
    waiting = await checkout.waiting(path)
    checkout.operator.approve(checkout.operator.last.payment.reference)
    checkout.pass_time(6)
    await checkout.get(waiting)
    await awa.open(path)


async def _suspended(checkout: CheckoutFixture, awa: Customer) -> None:
    path = await checkout.link()
    await set_status(checkout.ctx.db, checkout.ctx.clock, checkout.merchant_id, "suspended", Actor("Awa", "awa"))
    await awa.open(path)


async def _frozen(checkout: CheckoutFixture, awa: Customer) -> None:
    path = await checkout.link()
    async with checkout.ctx.db.transaction() as tx:
        await wallets.set_wallet_status(tx, checkout.merchant_id, "live", "XOF", "Gelé", checkout.ctx.clock.now())
    await awa.open(path)


async def _unknown(checkout: CheckoutFixture, awa: Customer) -> None:
    await awa.open("/pay/" + "A" * 22 + "/" + "B" * 22)


async def _server_error(checkout: CheckoutFixture, awa: Customer) -> None:
    path = await checkout.link()
    await checkout.ctx.db.close()
    assert await awa.open(path) == 500
    await checkout.ctx.db.open()


async def _poster(checkout: CheckoutFixture, awa: Customer) -> None:
    await awa.open(await checkout.link(description=LONG) + "/qr")


async def _checkout(checkout: CheckoutFixture, awa: Customer) -> None:
    await awa.open(await checkout.card(description=LONG))


async def _checkout_paid(checkout: CheckoutFixture, awa: Customer) -> None:
    path = await checkout.card(return_url="https://shop.example.com/")
    await checkout.post(path, {"outcome": "succeeded"})
    await awa.open(path)


async def _checkout_refused(checkout: CheckoutFixture, awa: Customer) -> None:
    path = await checkout.card()
    await checkout.post(path, {"outcome": "failed"})
    await awa.open(path)


STATES: Final[dict[str, State]] = {
    name.lstrip("_"): state
    for name, state in list(globals().items())
    if name.startswith("_") and not name.startswith("__") and callable(state)
}
#: About one form: those of all modes are as in `link`, so the others are closed but for these few, and stay folded.
FEW: Final = {"mtn", "coris", "VISA"}
SAME_FORMS: Final = {
    "link_with_faults",
    "link_with_a_code_on_its_way",
    "link_without_a_code",
    "link_with_card_faults",
}
ALSO_IN_ENGLISH: Final = {"link", "waiting", "receipt", "checkout"}


async def _close_most_modes(checkout: CheckoutFixture) -> None:
    for mode in CATALOGUE.modes:
        if mode.operator not in FEW:
            closed = ModeOverride(None, mode.operator, active=False, fee_percent=None, fee_fixed=None)
            await set_override(checkout.ctx.db, closed)
    checkout.pass_time(2)


@pytest.mark.parametrize("state", STATES)
async def test_every_page_is_accessible_and_fits_the_screen(
    browser: Browser, checkout: CheckoutFixture, state: str
) -> None:
    async with customer(browser, checkout.url, f"state-{state}", judged=True) as awa:
        if state in SAME_FORMS:
            await _close_most_modes(checkout)
        await STATES[state](checkout, awa)
        await awa.seen("", unfolded=state not in SAME_FORMS)
        # Text twice as large, as people with poor eyes set it.
        await awa.page.evaluate("document.documentElement.style.fontSize = '200%'")
        await awa.fits()
        awa.nothing_strange()
        if state in ALSO_IN_ENGLISH:
            await awa.follow(awa.page.get_by_role("link", name="English"))
            assert await awa.page.locator("html").get_attribute("lang") == "en"
            await awa.accessible(colours=False)
            await awa.fits()


async def test_too_many_requests(browser: Browser, sqlite_settings: Settings) -> None:
    async with (
        open_checkout(replace(sqlite_settings, page_rate_limit=3)) as checkout,
        customer(browser, checkout.url, "state-too_many") as awa,
    ):
        for n in range(4):
            await checkout.get(f"/pay/{'A' * 22}/{n:022}")
        assert await awa.open(await checkout.link()) == 429
        await awa.shoot("light")
        await awa.accessible()
