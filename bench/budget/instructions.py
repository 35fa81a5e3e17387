"""Instructions that Callgrind counts of one request, one life, and a start; memory of an idle service.

Compiled files are there, hashes have no seed, and a clock of the bench's own passes 250 µs for each request.
"""

import asyncio
import json
import signal
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote

from bench import console, servers
from bench.budget.service import WARM_UP, Counted, counted
from bench.loads import get, request
from bench.measures.life import PAID, receiver
from bench.measures.posting import create
from bench.rounds import CONNECTIONS

MEASURES: Final = "instructions of"
#: Seconds without growth after which a service has imported what it needs.
_QUIET: Final = 5
#: Seconds in which it is seen what the loops do without a payment.
_IDLE: Final = 5


async def requests(home: Path, count: int) -> dict[str, float]:
    """Of a service without a worker, on SQLite."""
    settings = servers.settings_for(home)
    merchant = (await servers.prepare(settings))[0]
    people = await console.sign_in(settings, merchant)
    post = create(merchant.key)
    found = {}
    async with counted(settings, "--no-worker", callgrind=True) as service:
        await service.call([post], WARM_UP)
        listed = await get(service.port, request("GET", "/v1/payments", merchant.key))
        newest = json.loads(listed)["data"][0]
        reads = {
            "GET of a payment": request("GET", f"/v1/payments/{newest['reference']}", merchant.key),
            "list of 25 payments": request("GET", "/v1/payments", merchant.key),
            "the console's list of payments": people.page("/payments"),
            "the console's overview": people.page(),
            # The names of all payments are read, since no worker has indexed them.
            **{
                f"the console's search by {name}": people.page(f"/payments?q={quote(wanted)}")
                for name, wanted in {"external_id": newest["external_id"], "name": "Awa Diallo"}.items()
            },
        }
        for content in reads.values():
            await service.call([content], 5)
        await service.counting(on=True)
        beside = await _by_the_second(service)
        for name, content in reads.items():
            found[name] = await _of_one(service, beside, content, max(20, count // 10))
        found["POST"] = await _of_one(service, beside, post, count)
        found["POST, 32 at once"] = await _of_one(service, beside, post, count, CONNECTIONS)
    return {f"{MEASURES} {name}": value for name, value in found.items()}


async def _of_one(service: Counted, beside: float, content: bytes, count: int, at_once: int = 1) -> float:
    await service.call([content], at_once, at_once)  # Opening connections is not counted.
    await service.instructions()
    began = time.monotonic()
    await service.call([content], count, at_once)
    return (await service.instructions() - beside * (time.monotonic() - began)) / count


async def _by_the_second(service: Counted) -> float:
    """Instructions of a second without a request. They do not belong to one, and a busy machine adds more of them."""
    await service.instructions()
    began = time.monotonic()
    await asyncio.sleep(_IDLE)
    return await service.instructions() / (time.monotonic() - began)


async def life(home: Path, count: int) -> dict[str, float]:
    """From the route to the delivered webhook, one payment after the other, by a service with its worker."""
    settings = servers.settings_for(home)
    async with receiver() as port:
        merchant = (await servers.prepare(settings, webhook=f"http://127.0.0.1:{port}/hook"))[0]
        paid = create(merchant.key, phone_number=PAID)
        async with counted(settings, callgrind=True) as service:
            await service.ready()
            await service.live(paid, WARM_UP // 3, port)
            await service.counting(on=True)
            await service.live(paid, 2, port)
            beside = await _by_the_second(service)
            began = time.monotonic()
            await service.live(paid, count, port)
            lived = await service.instructions() - beside * (time.monotonic() - began)
            return {f"{MEASURES} a whole life": lived / count}


async def start(home: Path) -> dict[str, float]:
    """Until `serve` listens, on a database that exists."""
    settings = servers.settings_for(home)
    await servers.prepare(settings)
    async with counted(settings, "--no-worker"):
        pass  # Compiles what is not compiled.
    async with counted(settings, "--no-worker", callgrind=True, from_start=True) as service:
        return {f"{MEASURES} a start": await service.instructions()}


async def memory(home: Path) -> dict[str, float]:
    """After a collection. Megabytes: Pss as if no other process ran, since all those of Python share its libraries."""
    settings = servers.settings_for(home)
    await servers.prepare(settings)
    async with counted(settings) as service:
        await _settled(service.process.pid)
        service.process.send_signal(signal.SIGUSR1)
        async with asyncio.timeout(60):
            while not service.numbers[1]:
                await asyncio.sleep(0.05)
        megabytes = servers.resident_megabytes(service.process.pid)
        return {"memory at idle, MB": megabytes, "modules imported when `serve` listens": service.numbers[1]}


async def _settled(pid: int) -> None:
    """Once it has not grown for a while: the worker and the HTTP client are imported after the port listens, and the
    simulator by the worker's first calls."""
    before = 0.0
    while (now := servers.resident_megabytes(pid)) > before + 0.1:
        before = now
        await asyncio.sleep(_QUIET)
