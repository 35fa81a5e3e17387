"""Payments, refunds and webhooks that make the service call out, until it has met enough hostile answers."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Final

from reliability.fuzz.hostile_server import HostileServer
from reliability.fuzz.known import MERCHANTS, Caller, keys

_PAYERS: Final = 32
#: Webhooks that may wait for their first attempt.
_WAITING: Final = 300
#: Ends of phone numbers by which the simulated provider succeeds or refuses, soon or at once, and what it says then is
#: true (guichet_simulator/scenarios.py).
_ENDINGS: Final = (
    "9001",
    "9001",
    "9007",
    "9007",
    "9003",
    "9004",
    "9006",
    "9008",
    "9010",
    "9012",
    "9016",
    "9023",
    "9029",
)
#: Operators, and how the numbers of their customers begin.
_NUMBERS: Final = {
    "mtn": "2299700",
    "mtn_ci": "2250500",
    "mtn_cg": "2420600",
    "wave_sn": "2217700",
    "wave_ci": "2250700",
    "orange_sn": "2217700",
    "orange_ml": "2237000",
    "moov": "2299500",
    "free_sn": "2217600",
    "coris": "2267000",
}


@dataclass
class Calls:
    """`progress` is called after each request."""

    port: int
    seed: int
    server: HostileServer
    progress: Callable[[], None]
    webhooks: int = 0

    async def provoke(self, answers: int) -> None:
        """Returns once our calls met `answers` hostile answers more, half of them from providers."""
        calls = _hostile(self.server.provider_answers) + answers // 2
        webhooks = _hostile(self.server.receiver_answers) + answers - answers // 2
        async with asyncio.TaskGroup() as group:
            for number in range(_PAYERS):
                random = Random(f"{self.seed}:payer:{number}:{calls}")
                group.create_task(self._collect(number, random, calls))
                group.create_task(self._notify(number, random, webhooks))

    async def settle(self, references: list[tuple[str, str]]) -> None:
        """Asks about each payment, given with the key of its merchant, once."""
        for key, reference in references:
            async with self._caller(key) as caller:
                await caller.call("GET", f"/payments/{reference}")

    async def _collect(self, number: int, random: Random, wanted: int) -> None:
        """Live payments: created, asked about while pending, refunded once they succeeded."""
        async with self._caller(keys(self.seed, number % MERCHANTS)["live"]) as caller:
            while _hostile(self.server.provider_answers) < wanted:
                operator = random.choice(list(_NUMBERS))
                phone_number = f"{_NUMBERS[operator]}{random.choice(_ENDINGS)}"
                body = {"amount": random.randrange(200, 9000), "operator": operator, "phone_number": phone_number}
                status, answer = await caller.call("POST", "/payments", {**body, "otp": "123456"})
                if status == 201:
                    await self._follow(caller, answer["data"]["reference"], random)
                self.progress()

    async def _follow(self, caller: Caller, reference: str, random: Random) -> None:
        state = "pending"
        for _ in range(random.choice((1, 3, 6))):
            state = (await caller.call("GET", f"/payments/{reference}"))[1]["data"]["status"]
            self.progress()
            if state != "pending":
                break
            await asyncio.sleep(random.choice((0, 0.1, 0.6)))
        if state == "succeeded":
            status, answer = await caller.call("POST", f"/payments/{reference}/refund", {})
            for _ in range(4 if status == 201 else 0):
                await caller.call("GET", f"/refunds/{answer['data']['reference']}")
                await asyncio.sleep(0.2)

    async def _notify(self, number: int, random: Random, wanted: int) -> None:
        """Test payments, each of which sends a webhook to the hostile receiver."""
        async with self._caller(keys(self.seed, number % MERCHANTS)["test"]) as caller:
            while _hostile(self.server.receiver_answers) < wanted:
                if self.webhooks - self.server.receiver_answers.total() > _WAITING:
                    await asyncio.sleep(0.05)
                    continue
                self.webhooks += 1
                url = f"{self.server.url}/hook/{random.randrange(10**9)}"
                body = {"amount": 500, "operator": "mtn", "phone_number": "22997000000", "callback_url": url}
                status, answer = await caller.call("POST", "/payments", body)
                if status == 201:
                    await caller.call("GET", f"/payments/{answer['data']['reference']}")
                self.progress()

    @asynccontextmanager
    async def _caller(self, key: str) -> AsyncIterator[Caller]:
        caller = Caller(self.port, key)
        try:
            yield caller
        finally:
            await caller.close()


def _hostile(answered: Counter[str]) -> int:
    return answered.total() - answered["genuine"]
