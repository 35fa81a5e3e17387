"""Callbacks that nobody should believe: forged, late, about other payments, hostile; and providers that change their
mind after the end, or say that our wallet with them is empty.

What the simulator can send itself, it is told to send (`/simulator/control`); the rest comes from strangers.
"""

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import msgspec

from reliability.installation import Installation

_CLAIMS: Final = ("succeeded", "failed")
_TIMEOUT: Final = aiohttp.ClientTimeout(total=10)
#: Once the traffic has ended: what is asked for must be done, however busy the simulator still is.
_PATIENT: Final = aiohttp.ClientTimeout(total=120)
#: Providers whose failed debits may succeed after all, and which tell it (docs/providers/, "Callbacks").
_UNDONE: Final = "provider IN ('mtn', 'pawapay', 'feexpay', 'sonatel') AND kind = 'debit' AND state = 'failed'"
_HOSTILE: Final = (
    b"", b"{", b"null", b"[]", b"{}" * 100, b"\xff\xfe\x00", b'{"reference":"\\u0000"}', b'{"externalId":{"a":[1]}}',
    b"a" * 70_000, b'{"id":"' + b"x" * 60_000 + b'"}', b'{"data":{"client_reference":' + b"9" * 400 + b"}}",
)  # fmt: skip


#: Providers whose wallet of ours can be empty for a while: payouts are refused then.
_FLOATS: Final = ("mtn", "pawapay", "feexpay", "sonatel", "wave", "paydunya")


@dataclass
class Forger:
    """`interval`: seconds between two acts. `undo_share`, `empty_share`: of a thousand, how many are a provider's
    change of mind, and how many empty or fill our wallet with one."""

    installation: Installation
    seed: int
    interval: float = 0.5
    undo_share: int = 60
    empty_share: int = 20
    counts: Counter[str] = field(default_factory=Counter)

    async def run(self, until: Callable[[], bool]) -> None:
        drawn = random.Random(f"{self.seed}/forger")
        async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
            while not until():
                await asyncio.sleep(drawn.uniform(0.5, 1.5) * self.interval)
                try:
                    await self._act(session, drawn)
                except (aiohttp.ClientError, TimeoutError, OSError, sqlite3.Error):
                    self.counts["nobody there"] += 1

    async def fill_wallets(self) -> None:
        async with aiohttp.ClientSession(timeout=_PATIENT) as session:
            for provider in _FLOATS:
                await self._set_float(session, provider, empty=False)

    async def tell_again(self, references: list[str]) -> None:
        """The providers send the true callbacks about these payments once more."""
        async with aiohttp.ClientSession(timeout=_PATIENT) as session:
            for reference in references:
                for transaction, state in self._find("client_ref = ? AND kind = 'debit'", reference):
                    await self._send_callback(session, transaction, state, forged=False)

    async def _act(self, session: aiohttp.ClientSession, drawn: random.Random) -> None:
        point = drawn.randrange(1000)
        if point < self.undo_share:
            for transaction, _ in self._find(f"{_UNDONE} ORDER BY random() LIMIT 1"):
                async with session.post(f"{self._control}/transactions/{transaction}/undo"):
                    self.counts["failures undone"] += 1
        elif point < self.undo_share + self.empty_share:
            await self._set_float(session, drawn.choice(_FLOATS), empty=drawn.random() < 0.4)
        elif point < 500:
            for transaction, _ in self._find("1 = 1 ORDER BY random() LIMIT 1"):
                claim, forged = drawn.choice(_CLAIMS), drawn.random() < 0.7
                await self._send_callback(session, transaction, claim, forged=forged)
        else:
            await self._send_as_stranger(session, drawn)

    async def _set_float(self, session: aiohttp.ClientSession, provider: str, *, empty: bool) -> None:
        body = {"family": provider, "float_empty": empty}
        async with session.post(f"{self._control}/dashboard", json=body):
            self.counts["wallets emptied"] += empty

    async def _send_callback(
        self, session: aiohttp.ClientSession, transaction: int, claim: str, *, forged: bool
    ) -> None:
        body = {"transaction": transaction, "claim": claim, "forged": forged}
        async with session.post(f"{self._control}/callbacks", json=body):
            self.counts["forged callbacks" if forged else "untimely callbacks"] += 1

    async def _send_as_stranger(self, session: aiohttp.ClientSession, drawn: random.Random) -> None:
        """Unsigned, about a true payment or about nothing, to the address of any account."""
        accounts = self.installation.accounts
        name = drawn.choice([*accounts, *{each["provider"] for each in accounts.values()}])
        url = f"{drawn.choice(self.installation.base_urls)}/providers/{name}/callback"
        body = drawn.choice(_HOSTILE)
        if drawn.random() < 0.5:
            [reference, *_] = [*self._references(), "00000000-0000-4000-8000-000000000000"]
            url += f"/{reference}"
            body = msgspec.json.encode(_claim_of_success(reference))
        async with session.request(drawn.choice(("POST", "PUT")), url, data=body) as response:
            self.counts[f"strangers' callbacks: {response.status}"] += 1

    @property
    def _control(self) -> str:
        return f"{self.installation.simulator_url}/control"

    def _find(self, where: str, *values: str) -> list[tuple[int, str]]:
        """Transactions of the simulator: id and state."""
        return self._read(f"SELECT id, state FROM transactions WHERE {where}", *values)

    def _references(self) -> list[str]:
        rows = self._read("SELECT client_ref FROM transactions WHERE client_ref IS NOT NULL ORDER BY random() LIMIT 1")
        return [reference for (reference,) in rows]

    def _read(self, sql: str, *values: str) -> list[Any]:
        # Newest rows only: a walk through a hundred thousand would stop the trial's own loop.
        with sqlite3.connect(f"file:{self.installation.simulator_db}?mode=ro", uri=True) as db:
            recent = "(SELECT * FROM main.transactions ORDER BY id DESC LIMIT 2000)"
            source = sql.replace("FROM transactions", f"FROM {recent}") if not values else sql
            return db.execute(source, values).fetchall()


def _claim_of_success(reference: str) -> dict[str, Any]:
    """What several providers call a success, in one body."""
    return {
        "externalId": reference, "status": "SUCCESSFUL", "depositId": reference, "reference": reference,
        "callback_info": reference, "notif_token": "x", "client_reference": reference, "payment_status": "succeeded",
        "type": "checkout.session.completed", "data": {"client_reference": reference, "id": reference},
    }  # fmt: skip
