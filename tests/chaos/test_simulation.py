"""Seeded simulation: fake time, operators that say little, and a process that dies between any two steps.

A scenario runs on a database that dies at its n-th point, for many n; then a fresh process takes over, the operators
say what they know, and everything must end, once, with clean books that agree with the operators' own.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from guichet.bootstrap import Service, create_merchant, service
from guichet.clock import SECOND
from guichet.domain.errors import GuichetError
from guichet.domain.merchants import Caller
from guichet.flows.collect import Order, collect
from guichet.flows.core import Core
from guichet.flows.refresh import refresh
from guichet.flows.refund import request_refund
from guichet.settings import Settings
from guichet.storage import merchants, payments, refunds
from guichet.storage.engine import given
from guichet.storage.payments import PaymentFilter
from guichet.worker import Worker
from tests.fakes import LyingOperator
from tests.house import ManualClock
from tests.invariants import check_books
from tests.watched import Died, Mortal, WatchedDatabase

ROUTES = {"mtn": ["first", "second"]}


@dataclass
class World:
    """What outlives a process: the operators, the clock, the database's file."""

    settings: Settings
    clock: ManualClock
    operators: dict[str, LyingOperator]
    caller: Caller

    @asynccontextmanager
    async def process(self, mortal: Mortal | None = None) -> AsyncIterator[tuple[Service, Worker]]:
        async with service(self.settings, self.clock, self.operators, ROUTES) as opened:
            if mortal is not None:
                core = replace(opened.core, db=WatchedDatabase(opened.core.db, mortal))
                opened = Service(core, opened.egress)
            yield opened, opened.worker()


@asynccontextmanager
async def world(settings: Settings, seed: int) -> AsyncIterator[World]:
    chance = random.Random(seed)
    fates: dict[str, bool | None] = {}

    def decide(reference: str) -> bool | None:
        return fates.setdefault(reference, chance.random() < 0.7)

    def mood(verb: str, reference: str) -> str:
        if verb in ("initiate", "refund"):
            return chance.choice(["", "", "lost before", "lost after", "refuse"])
        return chance.choice(["", "silent"])

    operators = {name: LyingOperator(decide, mood) for name in ("first", "second")}
    clock = ManualClock()
    async with service(settings, clock) as opened:
        merchant, _ = await create_merchant(opened.core, "M")
        async with opened.core.db.transaction() as tx:
            for env in ("live", "test"):
                # Nobody listens there: what is queued is what counts here.
                url = "https://localhost:9/hook"
                await merchants.configure_endpoint(tx, merchant.id, env, url, None, clock.now())
    yield World(settings, clock, operators, Caller(merchant, "live"))


async def pay(core: Core, caller: Caller, name: str, ending: str = "1234") -> None:
    order = Order(amount=503_000, currency="XOF", operator="mtn", phone_number=f"2299700{ending}", external_id=name)
    try:
        await collect(core, caller, order)
    except GuichetError:
        return


async def refund(core: Core, caller: Caller, name: str) -> None:
    payment = await payments.by_external_id(core.db, caller.merchant.id, caller.env, name)
    if payment is None:
        return
    payment = await refresh(core, payment)
    if payment.status == "succeeded":
        try:
            await request_refund(core, payment, None)
        except GuichetError:
            return


async def a_life(world: World, core: Core, worker: Worker) -> None:
    """Two live payments and a test one, settled, refunded."""
    test = Caller(world.caller.merchant, "test")
    await pay(core, world.caller, "a")
    await pay(core, test, "t", "0000")
    await pay(core, world.caller, "b")
    world.clock.advance(6)
    await worker.run_until_idle()
    for caller, name in ((world.caller, "a"), (test, "t"), (world.caller, "b")):
        await refund(core, caller, name)
    world.clock.advance(6)
    await worker.run_until_idle()


async def live_and_die(world: World, mortal: Mortal) -> None:
    async with world.process(mortal) as (opened, worker):
        try:
            await a_life(world, opened.core, worker)
        except Died:
            pass
        # What a dead process still had under way is gone with it.
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            if not task.done() and task.get_coro().__qualname__ == "Queue._do":  # type: ignore[union-attr]
                task.cancel()
        await asyncio.sleep(0)


async def come_to_an_end(world: World) -> None:
    """A fresh process; the operators speak plainly now. Everything must be final within a few hours."""
    for operator in world.operators.values():
        operator.mood = lambda verb, reference: ""
    async with world.process() as (opened, worker):
        for seconds in (31, 31, 61, 121, 301, 601, 1801, 3601):
            world.clock.advance(seconds)
            await worker.run_until_idle()
        core, mine = opened.core, world.caller.merchant.id
        for env in ("live", "test"):
            rows, _ = await payments.page(core.db, mine, env, PaymentFilter(), 100, 0)
            assert {row.status for row in rows} <= {"succeeded", "failed", "refunded"}, rows
            returned, _ = await refunds.page(core.db, mine, env, 100, 0)
            assert {row.status for row in returned} <= {"succeeded", "failed"}, returned
        await check_books(core.db, told=True)
        await _the_operators_say_the_same(world, core)


async def _the_operators_say_the_same(world: World, core: Core) -> None:
    rows, _ = await payments.page(core.db, world.caller.merchant.id, "live", PaymentFilter(), 100, 0)
    ours = {row.reference for row in rows if row.status in ("succeeded", "refunded")}
    theirs = {ref for operator in world.operators.values() for ref in operator.moved(operator.debits)}
    assert ours == theirs, "every debit is credited, and nothing else is"
    assert all(row.failure is not None for row in rows if row.status == "failed"), "no failure without a refusal"
    returned, _ = await refunds.page(core.db, world.caller.merchant.id, "live", 100, 0)
    paid_out = {ref for operator in world.operators.values() for ref in operator.moved(operator.payouts)}
    assert {row.reference for row in returned if row.status == "succeeded"} == paid_out
    for operator in world.operators.values():
        assert all(sends == 1 for sends in operator.sends.values()), "nothing is ever sent twice"


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("worlds")


def fresh(base: Settings, template: Path, folder: Path) -> Settings:
    path = folder / "guichet.db"
    path.write_bytes(template.read_bytes())
    return replace(base, home=folder, database_url=f"sqlite:///{path}")


async def run(settings: Settings, seed: int, death: int | None) -> int:
    async with world(settings, seed) as made:
        mortal = Mortal(death)
        await live_and_die(made, mortal)
        await come_to_an_end(made)
    return mortal.points


async def points_of_a_life(settings: Settings, seed: int) -> int:
    return await run(settings, seed, None)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_a_process_may_die_between_any_two_steps(
    base_settings: Settings, sqlite_template: Path, tmp_path: Path, seed: int
) -> None:
    points = await points_of_a_life(fresh(base_settings, sqlite_template, tmp_path), seed)
    assert points > 60
    for death in range(seed % 3, points, 3):
        await run(fresh(base_settings, sqlite_template, tmp_path), seed, death)


async def test_a_process_may_die_on_postgresql_too(settings: Settings) -> None:
    if settings.embedded:
        pytest.skip("the other test does this one thoroughly")
    rounds = [(seed, death) for seed in (4, 5) for death in (7, 23, 41, 58)]
    for seed, death in rounds:
        async with world(settings, seed) as made:
            await live_and_die(made, Mortal(death))
            await come_to_an_end(made)


async def test_the_simulation_is_repeatable(base_settings: Settings, sqlite_template: Path, tmp_path: Path) -> None:
    lives = [await points_of_a_life(fresh(base_settings, sqlite_template, tmp_path), 7) for _ in range(2)]
    assert lives[0] == lives[1]
    assert given(lives[0]) * SECOND > 0
