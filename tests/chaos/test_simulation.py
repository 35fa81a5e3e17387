"""Seeded simulation: fake time, providers with unreliable answers, and a process that dies between any two steps.

A scenario runs on a database that dies at its n-th point, for many n; then a fresh process takes over, the operators
say what they know, and everything must end, once, with clean books that agree with the operators' own.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from msgspec import structs
from sqlalchemy import select

from guichet.back_office.merchants import create_merchant
from guichet.bootstrap import Service, database, service
from guichet.clock import Instant
from guichet.context import AppContext, WakeUps
from guichet.db.engine import Database
from guichet.db.tables import refunds as refunds_table
from guichet.domain.errors import GuichetError
from guichet.domain.merchants import Caller, Environment
from guichet.domain.money import Hundredths
from guichet.domain.payments import Payment, Refund
from guichet.merchants import repository as merchants
from guichet.merchants.catalogue import Catalogues
from guichet.payments import repository as payments
from guichet.payments.create import create_payment
from guichet.payments.polling import poll_payment
from guichet.providers.registry import Registry
from guichet.refunds.request import request_refund
from guichet.schemas.payment import PaymentBody
from guichet.settings import Settings
from guichet.worker.worker import Worker
from tests.fakes.clock import ManualClock
from tests.fakes.recording_database import CrashPoint, ProcessDied, RecordingDatabase
from tests.fakes.unreliable_provider import UnreliableProvider
from tests.invariants import check_books

ROUTES = {"mtn": ["first", "second"]}
#: The loops that end what a crash left; the scenario has all of them.
MOVING_MONEY = ("polling", "callbacks", "refunds", "late results")


@dataclass
class SimulationRun:
    """What outlives a process: providers, clock, database. `ground` has what a process does not change."""

    settings: Settings
    clock: ManualClock
    operators: dict[str, UnreliableProvider]
    caller: Caller
    ground: Service
    name: str

    @asynccontextmanager
    async def process(self, crash_point: CrashPoint | None = None) -> AsyncIterator[tuple[AppContext, Worker]]:
        inner = database(self.settings)
        await inner.open()
        try:
            db: Database = inner if crash_point is None else RecordingDatabase(inner, crash_point)
            ctx = structs.replace(
                self.ground.ctx,
                db=db,
                clock=self.clock,
                registry=Registry(self.clock, self.operators, ROUTES),
                catalogues=Catalogues(db, self.clock, self.ground.ctx.catalogues.base),
                wakeups=WakeUps(),
            )
            yield ctx, Worker(ctx, self.ground.http_client)
        finally:
            await inner.close()


def providers_of(seed: int) -> dict[str, UnreliableProvider]:
    chance = random.Random(seed)
    fates: dict[str, bool] = {}

    def decide(reference: str) -> bool:
        return fates.setdefault(reference, chance.random() < 0.7)

    def mood(verb: str, reference: str) -> str:
        if verb in ("initiate", "refund"):
            return chance.choice(["", "", "lost before", "lost after", "refuse"])
        return chance.choice(["", "silent"])

    return {name: UnreliableProvider(decide, mood) for name in ROUTES["mtn"]}


async def pay(ctx: AppContext, caller: Caller, name: str, ending: str = "1234") -> None:
    order = PaymentBody.model_construct(
        amount=Hundredths(503_000), currency="XOF", operator="mtn", phone_number=f"2299700{ending}", external_id=name
    )
    try:
        await create_payment(ctx, caller, order)
    except GuichetError:
        return


async def refund(ctx: AppContext, caller: Caller, name: str) -> None:
    payment = await payments.by_external_id(ctx.db, caller.merchant.id, caller.env, name)
    if payment is None:
        return
    payment = await poll_payment(ctx, payment)
    if payment.status == "succeeded":
        try:
            await request_refund(ctx, payment, None)
        except GuichetError:
            return


async def run_scenario(run: SimulationRun, ctx: AppContext, worker: Worker) -> None:
    """Two live payments and a test one, settled, refunded."""
    test = Caller(run.caller.merchant, "test")
    a, b, t = (f"{name} of {run.name}" for name in "abt")
    await pay(ctx, run.caller, a)
    await pay(ctx, test, t, "0000")
    await pay(ctx, run.caller, b)
    run.clock.advance(6)
    await worker.run_until_idle()
    for caller, name in ((run.caller, a), (test, t), (run.caller, b)):
        await refund(ctx, caller, name)
    run.clock.advance(6)
    await worker.run_until_idle()


async def run_until_crash(run: SimulationRun, crash_point: CrashPoint) -> None:
    async with run.process(crash_point) as (ctx, worker):
        before = asyncio.all_tasks()
        try:
            await run_scenario(run, ctx, worker)
        except ProcessDied:
            pass
        finally:
            # What a dead process still had under way is gone with it.
            left = asyncio.all_tasks() - before
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)


async def recover(run: SimulationRun) -> None:
    """Starts a fresh process; the providers answer reliably now. Everything must be final within a few hours."""
    for operator in run.operators.values():
        operator.mood = lambda verb, reference: ""
    async with run.process() as (ctx, worker):
        worker.loops = [loop for loop in worker.loops if loop.name in MOVING_MONEY]
        for seconds in (31, 31, 61, 121, 301, 601, 1801, 3601):
            run.clock.advance(seconds)
            await worker.run_until_idle()
        made = [await payments_of(run, ctx, env) for env in ("live", "test")]
        assert {row.status for rows in made for row in rows} <= {"succeeded", "failed", "refunded"}
        returned = await refunds_of(run, ctx, made[0] + made[1])
        assert {row.status for row in returned} <= {"succeeded", "failed"}
        await check_books(ctx.db, events_queued=True)
        check_provider_books(run, made[0], [row for row in returned if row.env == "live"])


async def payments_of(run: SimulationRun, ctx: AppContext, env: Environment) -> list[Payment]:
    """The payments of this scenario."""
    wanted = [f"{name} of {run.name}" for name in "abt"]
    found = [await payments.by_external_id(ctx.db, run.caller.merchant.id, env, name) for name in wanted]
    return [row for row in found if row is not None]


async def refunds_of(run: SimulationRun, ctx: AppContext, made: list[Payment]) -> list[Refund]:
    everything = [Refund(*row) for row in await ctx.db.scan(select(refunds_table))]
    return [row for row in everything if (row.payment_id, row.env) in {(each.id, each.env) for each in made}]


def check_provider_books(run: SimulationRun, made: list[Payment], returned: list[Refund]) -> None:
    operators = run.operators.values()
    taken = {reference for each in operators for reference in each.moved(each.debits)}
    assert {row.reference for row in made if row.status in ("succeeded", "refunded")} == taken, "each debit is credited"
    assert all(row.failure_reason is not None for row in made if row.status == "failed"), "no failure without a refusal"
    given_back = {reference for each in operators for reference in each.moved(each.payouts)}
    assert {row.reference for row in returned if row.status == "succeeded"} == given_back
    assert all(sends == 1 for each in operators for sends in each.sends.values()), "nothing is ever sent twice"


@pytest.fixture
async def ground(settings: Settings) -> AsyncIterator[tuple[Service, Caller]]:
    """A migrated database with a merchant whose endpoints have no server: only queued deliveries matter here."""
    async with service(settings) as opened:
        merchant, _ = await create_merchant(opened.ctx, "M")
        async with opened.ctx.db.transaction() as tx:
            for env in ("live", "test"):
                await merchants.configure_endpoint(tx, merchant.id, env, "https://localhost:9/hook", None, Instant(0))
        yield opened, Caller(merchant, "live")


async def run(ground: tuple[Service, Caller], clock: ManualClock, seed: int, death: int | None) -> int:
    """One scenario and its recovery, on the database of the earlier ones, whose rows must not change."""
    opened, caller = ground
    made = SimulationRun(opened.ctx.settings, clock, providers_of(seed), caller, opened, f"{seed}/{death}")
    crash_point = CrashPoint(death)
    await run_until_crash(made, crash_point)
    await recover(made)
    return crash_point.points


LIVES = {"sqlite": ((1, 14), (2, 14), (3, 14)), "postgresql": ((4, 3), (5, 3))}


@pytest.mark.timeout(300)
async def test_a_crash_between_any_two_steps_loses_nothing(ground: tuple[Service, Caller]) -> None:
    clock = ManualClock()
    kind = "sqlite" if ground[0].ctx.settings.embedded else "postgresql"
    for seed, deaths in LIVES[kind]:
        points = await run(ground, clock, seed, None)
        assert points > 60
        for death in sorted(random.Random(seed).sample(range(points), deaths)):
            await run(ground, clock, seed, death)
