"""What is watched beside the payments: reads of the merchants, `/readyz` of both servers, and an old primary."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from reliability.api_client import ApiClient
from reliability.journal import Journal
from reliability.machines.hosts import DatabaseHost
from reliability.merchant import Merchant

#: Seconds between two reads, and between two looks at `/readyz`.
_READ_EVERY: Final = 0.1
_READY_EVERY: Final = 0.5
_READY_TIMEOUT: Final = aiohttp.ClientTimeout(total=5)
#: Acknowledged payments that are read: one of the newest.
_NEWEST: Final = 200


@dataclass
class Reader:
    """Merchants who read payments that exist, ten a second, each read sent once only: `api.statuses` says how they were
    answered. `slowest`: in seconds, of those answered 200."""

    api: ApiClient
    merchants: Sequence[Merchant]
    journal: Journal
    slowest: float = 0.0
    _asked: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self, ended: asyncio.Event) -> None:
        while not ended.is_set():
            await asyncio.sleep(_READ_EVERY)
            known = [each for each in list(self.journal.acknowledged.values())[-_NEWEST:] if each.reference]
            if known:
                one = known[self._asked % len(known)]
                self._asked += 1
                task = asyncio.create_task(self._read(self.merchants[one.order.merchant].key, str(one.reference)))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        await asyncio.gather(*self._tasks)

    async def _read(self, key: str, reference: str) -> None:
        began = time.monotonic()
        answer = await self.api.call("GET", f"/v1/payments/{reference}", key, patience=0.0)
        if answer is not None and answer.status == 200:
            self.slowest = max(self.slowest, time.monotonic() - began)


@dataclass
class ReadyzProbe:
    """Asks every server twice a second, past the proxy. `away`: seconds in which a server said something but 200."""

    urls: Sequence[str]
    away: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    reasons: Counter[str] = field(default_factory=Counter)

    async def run(self, ended: asyncio.Event) -> None:
        async with aiohttp.ClientSession(timeout=_READY_TIMEOUT) as session:
            await asyncio.gather(*(self._watch(session, url, ended) for url in self.urls))

    async def _watch(self, session: aiohttp.ClientSession, url: str, ended: asyncio.Event) -> None:
        asked = time.monotonic()
        while not ended.is_set():
            said = await self._ask(session, url)
            await asyncio.sleep(max(0.0, _READY_EVERY - (time.monotonic() - asked)))
            now = time.monotonic()
            if said:
                self.away[url] += now - asked
                self.reasons[said] += 1
            asked = now

    async def _ask(self, session: aiohttp.ClientSession, url: str) -> str:
        """Why it is not ready; empty when it is."""
        try:
            async with session.get(f"{url}/readyz") as response:
                return "" if response.status == 200 else f"{response.status} {(await response.text())[:120]}"
        except (aiohttp.ClientError, TimeoutError) as error:
            return type(error).__name__

    @property
    def longest(self) -> float:
        return max(self.away.values(), default=0.0)


#: Every look of a statement at a table of ours, and every row that was changed, as PostgreSQL itself counts them.
_COUNTED: Final = (
    "SELECT coalesce(sum(coalesce(seq_scan, 0) + coalesce(idx_scan, 0)), 0), coalesce(sum(n_tup_ins + n_tup_upd +"
    " n_tup_del), 0) FROM pg_stat_user_tables"
)
#: Writes that came after `{since}` and wait for a standby that confirms nothing any more.
_WAITING: Final = (
    "SELECT count(*) FROM pg_stat_activity WHERE usename = 'guichet' AND wait_event = 'SyncRep'"
    " AND query_start > '{since}'"
)


@dataclass
class OldPrimary:
    """What reaches a primary that was replaced, from the moment `begin` was called."""

    host: DatabaseHost
    most_waiting: int = 0
    _since: str = ""
    _reads: int = 0
    _writes: int = 0

    async def begin(self) -> None:
        self._since = str(await self.host.query("SELECT now()"))
        self._reads, self._writes = await self._counted()

    async def watch(self, seconds: float) -> list[str]:
        """What was read from it or written to it meanwhile, in words."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            waiting = await self.host.query(_WAITING.format(since=self._since), "guichet")
            self.most_waiting = max(self.most_waiting, int(waiting or 0))
            await asyncio.sleep(0.5)
        reads, writes = await self._counted()
        faults = []
        if reads > self._reads:
            faults.append(f"{self.host.name}: {reads - self._reads} looks at its tables")
        if writes > self._writes or self.most_waiting:
            changed = f"{writes - self._writes} rows changed, {self.most_waiting} writes that wait for a standby"
            faults.append(f"{self.host.name}: {changed}")
        return faults

    async def _counted(self) -> tuple[int, int]:
        said = await self.host.query(_COUNTED, "guichet")
        if said is None:
            raise RuntimeError(f"{self.host.name} does not run")
        reads, writes = said.split("|")
        return int(reads), int(writes)
