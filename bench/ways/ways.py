"""The ways that are gone, and what was recorded of each."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.ways.recorder import Recorder, Trace
from tests.frozen.service import (
    DELIVERING,
    FOLLOWING_UP,
    MTN_CALLBACK,
    POLLING,
    REFUNDING,
    MerchantKeys,
    RunningService,
    running_service,
    sqlite_settings,
)

#: Requests a minute, as the contract has it: counted at every request, and never reached here.
RATE_LIMIT: Final = 120
#: Seconds after which the worker polls a payment or a refund.
ASKED_AFTER: Final = 15
#: In the simulator, a payment or a refund that succeeds after two seconds, without a callback.
SUCCEEDS: Final = "no_callback"
_NUMBERS: Final = count(1)
_CALLBACK: Final = b'{"status": "SUCCESSFUL"}'


def _order() -> dict[str, object]:
    """The body of the README's first payment. Without an `external_id` the answer would warn."""
    return {
        "amount": 5000,
        "operator": "mtn",
        "phone_number": "2290197001234",
        "external_id": f"order-{next(_NUMBERS)}",
    }


@dataclass
class Walk:
    """One walk of a way, by a merchant in one environment. `answered`: the files entered when the request was."""

    service: RunningService
    merchant: MerchantKeys
    env: str
    recorder: Recorder
    trace: Trace
    answered: int = 0

    async def call(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {self.merchant.keys[self.env]}"}
        raw = None if body is None else json.dumps(body).encode()
        answer = await self.service.call(method, f"/v1{path}", raw, headers)
        assert answer.status in (200, 201), answer.body
        return json.loads(answer.body)["data"]

    async def request(self, path: str, body: object = None) -> Any:
        """The request that starts the way, recorded until its answer is there."""
        await self.fill_caches()
        with self.recorder.recording(self.trace):
            data = await self.call("POST", path, body)
        self.answered = len({function.file for function in self.trace.functions})
        return data

    async def work(self, *loops: str) -> None:
        """Turns of the worker's loops, recorded."""
        await self.fill_caches()
        with self.recorder.recording(self.trace):
            for name in loops:
                await self.service.turn(name)

    async def fill_caches(self) -> None:
        """What a service in use has in memory: the key, the catalogue."""
        await self.call("GET", "/payment-modes")

    async def script(self, call: str) -> None:
        if self.env == "live":
            await self.service.provider_will(SUCCEEDS, call, "mtn")

    async def paid(self) -> Any:
        """A payment that succeeded, not recorded."""
        payment = await self.pending()
        await self.service.work()
        return payment

    async def pending(self) -> Any:
        """A payment that the provider has made and that was not polled yet, not recorded."""
        await self.script("debit")
        payment = await self.call("POST", "/payments", _order())
        self.service.clock.advance(ASKED_AFTER)
        return payment


async def _payment(walk: Walk) -> None:
    await walk.script("debit")
    await walk.request("/payments", _order())
    walk.service.clock.advance(ASKED_AFTER)
    await walk.work(POLLING, DELIVERING)


async def _refund(walk: Walk) -> None:
    payment = await walk.paid()
    await walk.script("credit")
    await walk.request(f"/payments/{payment['reference']}/refund", {})
    await walk.work(REFUNDING)
    walk.service.clock.advance(ASKED_AFTER)
    await walk.work(REFUNDING, DELIVERING, DELIVERING)


async def _callback(walk: Walk) -> None:
    payment = await walk.pending()
    await walk.fill_caches()
    with walk.recorder.recording(walk.trace):
        answer = await walk.service.call("POST", f"{MTN_CALLBACK}{payment['reference']}", _CALLBACK)
    assert answer.status == 200
    walk.answered = len({function.file for function in walk.trace.functions})
    await walk.work(FOLLOWING_UP)
    await walk.service.work()


@dataclass(frozen=True)
class Way:
    """`events`: the events that the merchant's server has received in the end."""

    name: str
    env: str
    go: Callable[[Walk], Awaitable[None]]
    events: tuple[str, ...]


WAYS: Final = (
    Way("payment", "live", _payment, ("payment.succeeded",)),
    Way("payment in the test environment", "test", _payment, ("payment.succeeded",)),
    Way("refund", "live", _refund, ("refund.succeeded", "payment.refunded")),
    Way("callback", "live", _callback, ("payment.succeeded",)),
)


async def record() -> dict[str, Walk]:
    """Every way by its name, as it was gone the second time."""
    recorder = Recorder()
    with TemporaryDirectory() as folder, recorder.installed():
        settings = await sqlite_settings(Path(folder))
        async with running_service(settings, RATE_LIMIT) as service:
            merchant = await service.merchant()
            return {way.name: await _gone(way, Walk(service, merchant, way.env, recorder, Trace())) for way in WAYS}


async def _gone(way: Way, walk: Walk) -> Walk:
    received = walk.service.receiver.received
    await walk.call("PUT", "/webhooks/endpoint", {"url": walk.service.receiver.url()})
    for _ in range(2):
        walk.trace = Trace()
        await way.go(walk)
    assert tuple(each.headers["x-service-event"] for each in received)[-len(way.events) :] == way.events
    return walk
