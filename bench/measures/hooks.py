"""Webhooks: how fast a full queue empties, and whether a receiver that hangs delays another merchant's."""

import asyncio
import statistics
import subprocess
import sys
from contextlib import AsyncExitStack
from typing import Final

from bench import servers
from bench.generator import Load
from bench.loads import outcome, percentile
from bench.measures.life import PAID, collected, notes, receiver
from bench.measures.posting import create
from bench.rounds import Ratio, paired
from bench.servers import HOST, Target
from guichet.bootstrap import service
from guichet.clock import SystemClock, iso
from guichet.domain.ids import MerchantId
from guichet.domain.money import number
from guichet.schemas.payment import PaymentObject
from guichet.settings import Settings
from guichet.webhooks import outbox
from guichet.webhooks.dispatcher import PER_DESTINATION

QUEUED: Final = 10_000
#: As many at once towards one destination as the worker allows itself.
AT_ONCE: Final = PER_DESTINATION
HANGS: Final = 10


async def queue(settings: Settings, merchant_id: MerchantId, url: str, count: int) -> bytes:
    """`count` deliveries, due now; one of their bodies."""
    async with service(settings) as opened:
        made = [
            outbox.new_event(merchant_id, "test", "payment.succeeded", _data(), SystemClock().now())
            for _ in range(count)
        ]
        async with opened.ctx.db.transaction() as tx:
            await outbox.queue_events(tx, made, url)
    return made[0].body.encode()


def _data() -> PaymentObject:
    now = iso(SystemClock().now())
    return {
        "reference": "0b4b1f3e-6a1e-4a57-9d5c-3a2f7a1f0c11",
        "identifier": "0000000042",
        "external_id": "order-0000000042",
        "status": "succeeded",
        "amount": number(5000_00),
        "fee_amount": number(87_50),
        "total_amount": number(5087_50),
        "currency": "XOF",
        "description": "Commande 1234",
        "payment_mode": {
            "id": 1,
            "name": "MTN MoMo",
            "type": "mobile_money",
            "operator": "mtn",
            "country": "Bénin",
            "country_code": "BJ",
        },
        "customer": {"firstname": "Awa", "lastname": "Diallo", "email": "awa.diallo@example.com", "phone_number": PAID},
        "payment_url": None,
        "metadata": None,
        "created_at": now,
        "updated_at": now,
        "debited_amount": number(5088_00),
        "failure": None,
        "payment_link": None,
    }


async def emptying(settings: Settings, rounds: int, count: int = QUEUED) -> Ratio:
    """Of webhooks a second of the worker, from its first to its last, and of a bare aiohttp loop with the same
    bodies."""
    worker, bare = [], []
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(receiver())
        url = f"http://127.0.0.1:{port}/hook"
        merchant = (await servers.prepare(settings, webhook=url))[0]
        for _ in range(rounds):
            body = await queue(settings, merchant.id, url, count)
            async with servers.guichet(settings, merchant.key, worker=True):
                arrived = [note.arrived_at for note in await collected(port, count, 20)]
            worker.append(count / (max(arrived) - min(arrived)))
            bare.append(count / await asyncio.to_thread(_bare_loop, url, count, body))
            await notes(port)
    return paired(worker, bare)


def _bare_loop(url: str, count: int, body: bytes) -> float:
    command = [sys.executable, "-m", "bench.peers.posting_loop", url, str(count), str(AT_ONCE)]
    return float(subprocess.run(command, input=body, capture_output=True, check=True).stdout)


async def beside_a_hanging_one(settings: Settings, rounds: int, rate: float, seconds: float) -> tuple[float, float]:
    """p99 in milliseconds from settlement to first attempt at a fast receiver, while another merchant's webhooks, as
    many, go to a fast receiver (first) and to one that hangs 10 s on everything (second)."""
    calm: list[float] = []
    hanging: list[float] = []
    async with AsyncExitStack() as stack:
        fast = await stack.enter_async_context(receiver())
        other = await stack.enter_async_context(receiver())
        slow = await stack.enter_async_context(receiver(HANGS))
        one, two = await servers.prepare(settings, 2)
        async with service(settings) as opened:
            await servers.set_endpoint(opened.ctx, one.id, f"http://127.0.0.1:{fast}/hook")
        for turn in range(rounds):
            for port, found in ((other, calm), (slow, hanging)):
                async with service(settings) as opened:
                    await servers.set_endpoint(opened.ctx, two.id, f"http://127.0.0.1:{port}/hook")
                async with servers.guichet(settings, one.key, worker=True) as target:
                    first = 1_000_000 * (2 * turn + (port == slow))
                    found.append(await _p99(target, two.key, fast, rate, seconds, first))
    return statistics.median(calm), statistics.median(hanging)


async def _p99(target: Target, neighbour: str, fast: int, rate: float, seconds: float, first: int) -> float:
    await notes(fast)
    mine = Load(HOST, target.port, [create(target.key, phone_number=PAID)], seconds, 0, 64, rate, first=first)
    theirs = Load(HOST, target.port, [create(neighbour, phone_number=PAID)], seconds, 0, 64, rate, first=first)
    sent, _ = await asyncio.gather(outcome(mine), outcome(theirs))
    arrived = await collected(fast, len(sent.latencies), 20)
    return percentile([(note.arrived_at - note.settled_at) * 1000 for note in arrived if note.settled_at], 99)
