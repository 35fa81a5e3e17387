"""One service on one day, with its providers simulated: two merchants, payments of every kind, the staff's acts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final, cast

from guichet.db.engine import require
from guichet.domain.ids import MerchantId
from guichet.merchants import repository as merchants
from guichet_demo.access import DemoAccess
from guichet_demo.people import demo_people
from tests.accounts.totp import code_of
from tests.console.conftest import PASSWORD, ConsoleBrowser, ConsoleFixture
from tests.fakes.clock import TurningClock
from tests.frozen.service import RunningService, Settings, running_service
from tests.frozen.webhooks import CARD
from tests.providers.simulated_providers import SimulatedProviders
from tests.service_fixture import MerchantClient, ServiceFixture

#: Seconds between two calls to one provider.
PAUSES: Final = (0.5, 5.0)
DAY: Final = 86_400
STAFF: Final = {"awa@guichet.example": "admin", "zoe@guichet.example": "finance", "ada@guichet.example": "support"}
#: The last digits of numbers by which the simulator misbehaves; what is answered late is left out.
LIVE: Final = (
    *("9001", "9002", "9003", "9004", "9005", "9006", "9008", "9009", "9010", "9012", "9014", "9019", "9020", "9021"),
    *("9022", "9024", "9026", "9030", "9101", "9106", "9109", "9110", "9119", "9128", "9212"),
)
SANDBOX: Final = ("0000", "0001", "0002", "0003", "0004", "1234")


@dataclass
class World:
    running: RunningService
    simulated: SimulatedProviders
    console: ConsoleFixture
    merchant: MerchantClient
    seeds: dict[str, str]
    settings: Settings
    #: A merchant with a month of payments.
    shop: Any = None

    async def references(self) -> dict[str, str]:
        """References of payments and refunds, by what they show."""
        listed = (await self.merchant.live.get("/payments?per_page=100")).data
        refunds = (await self.merchant.live.get("/refunds?per_page=100")).data
        of = {each["external_id"]: each["reference"] for each in listed}
        pending = [each["reference"] for each in refunds if each["status"] == "pending"]
        return {"late": of["late-2"], "pending": of["live-9009"], "succeeded": of["live-9001"], "refund": pending[0]}

    async def turn(self, seconds: float) -> None:
        """Advances the clock, then waits for the providers' callbacks and for everything that the worker finds due."""
        self.running.clock.advance(seconds)
        await self.simulated.quiet()
        await self.running.work()
        await self.simulated.quiet()

    async def signed_in(self, email: str) -> ConsoleBrowser:
        """A colleague, some days after joining."""
        browser = self.console.browser()
        await browser.sign_in(email)
        if "/factor" in browser.page.path:
            await browser.submit("code", code=code_of(self.seeds[email], self.running.clock.now()))
            self.running.clock.advance(60)
        return browser

    async def join(self, email: str, merchant: Any, role: str) -> None:
        browser = self.console.browser()
        await browser.get(await self.console.invited(email, merchant, role))
        page = await browser.submit("password", password=PASSWORD, name=email.partition("@")[0].title())
        if page.path == "/console/factor/setup":
            self.seeds[email] = await self.console.set_up(browser)


def _sleep_at_once(clock: TurningClock) -> None:
    """Where a provider's client pauses between two calls, the clock goes on by itself."""
    waiting = clock.sleep

    async def sleep(seconds: float) -> None:
        if seconds not in PAUSES:
            await waiting(seconds)
        else:
            clock.advance(seconds)
            await asyncio.sleep(0)

    clock.sleep = sleep  # type: ignore[method-assign]


@asynccontextmanager
async def open_world(settings: Settings) -> AsyncIterator[World]:
    async with running_service(settings) as running:
        opened = cast("Any", SimpleNamespace(ctx=running._core))
        fixture = ServiceFixture(opened, running._worker, running.clock, running.url, running._client)
        _sleep_at_once(running.clock)
        merchant = await fixture.merchant("Boutique Kora")
        simulator = f"{running.simulator_url}/simulator"
        simulated = SimulatedProviders(fixture, merchant, simulator, running._client, running.clock)
        world = World(running, simulated, ConsoleFixture(fixture), merchant, {}, settings)
        await _fill(world)
        yield world


async def _fill(world: World) -> None:
    for email, role in STAFF.items():
        await world.join(email, None, role)
    test, live = world.merchant, world.merchant.live
    kora = await _merchant(world, world.merchant.id)
    for role in ("owner", "finance", "developer", "cashier", "reader"):
        await world.join(f"{role}@kora.example", kora, role)
    for each in (test, live):
        await each.put("/webhooks/endpoint", {"url": world.running.receiver.url()})
    await test.post("/payment-links", {"amount": 5000, "description": "Commande 42", "external_id": "c-42"})
    await live.post("/payment-links", {"amount": 7000, "description": "Panier", "type": "permanent"})
    for ending in SANDBOX:
        body = {"amount": 5000, "operator": "mtn", "phone_number": f"229019700{ending}"}
        await test.post("/payments", {**body, "external_id": f"test-{ending}", "description": f"Commande {ending}"})
        await world.turn(10)
    for ending in LIVE:
        body = {
            "amount": 5000,
            "operator": "mtn",
            "phone_number": f"229019700{ending}",
            "external_id": f"live-{ending}",
        }
        made = await live.post("/payments", body)
        for _ in range(3):
            await world.turn(10)
        if ending.startswith("91") and made.status == 201:
            await live.post(f"/payments/{made.data['reference']}/refund", {"reason": "Article indisponible"})
            await world.turn(20)
    await _late_and_disputed(world)
    await world.simulated.http.post(f"{world.running.url}/providers/mtn_benin/callback", json={"reference": "nothing"})
    for _ in range(9):
        await world.turn(DAY)
    await demo_people(world.console.service.ctx, DemoAccess(), world.merchant.id)
    world.shop = await _merchant(world, MerchantId(2))
    await world.join("shop@kora.example", world.shop, "owner")


async def _merchant(world: World, merchant_id: Any) -> Any:
    return require(await merchants.get(world.console.service.ctx.db, merchant_id))


async def _late_and_disputed(world: World) -> None:
    """Payments that were debited after all; contested payments; a float that is empty."""
    live, run = world.merchant.live, world.simulated
    for number in range(3):
        await live.pay("9003", phone_number="2290197009003", external_id=f"late-{number}")
        for _ in range(3):
            await world.turn(10)
        latest = (await run.held(family="mtn", kind="debit"))[0]
        await run.control("POST", f"/transactions/{latest['id']}/undo")
        await world.turn(10)
    for status in ("lost", "won"):
        await run.force("stripe", "no_callback")
        await live.post("/payments", {**CARD, "return_url": "https://boutique.example/merci"})
        await world.turn(10)
        for said in ("needs_response", status):
            await world.running.bank_says(said)
            await world.turn(900)
    await run.control("POST", "/dashboard", json={"family": "mtn", "float_empty": True})
    paid = await live.pay("9001", phone_number="2290197009001", external_id="float")
    for _ in range(3):
        await world.turn(10)
    await live.post(f"/payments/{paid['reference']}/refund", {"reason": "Erreur"})
    await world.turn(60)
