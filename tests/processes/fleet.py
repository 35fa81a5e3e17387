"""Real processes of the command on a real PostgreSQL, and the merchant's two sides: its calls and its receiver."""

import asyncio
import json
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
from sqlalchemy import update

from guichet.back_office.merchants import create_merchant
from guichet.bootstrap import service
from guichet.clock import NEVER, Instant, later
from guichet.db.queues.work_queue import LEASE_DURATION
from guichet.db.tables import payments, refunds, webhook_deliveries
from guichet.settings import Settings
from tests.cli.child import Child
from tests.cli.conftest import clean_environ
from tests.conftest import SECRET_KEY
from tests.fakes.http_server import OK, ReceivedRequest
from tests.patience import PATIENCE
from tests.ports import free_port

#: Requests a minute of one address; each call of a test comes from an address of its own unless it names one.
RATE_LIMIT = 30
_addresses = count(1)


@dataclass
class ServiceProcess:
    """One process. Its log is in a file, one line after another, also of the processes it starts."""

    process: Child
    log_file: Path
    port: int | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def says(self, words: str) -> bool:
        return words in self.log

    def stop(self, with_signal: int = signal.SIGTERM) -> None:
        """It ends by itself, with exit code 0."""
        self.process.send_signal(with_signal)
        assert self.process.wait(timeout=PATIENCE) == 0, self.log

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass
class Fleet:
    """Starts processes on one database."""

    settings: Settings
    variables: Mapping[str, str] = field(default_factory=dict)
    members: list[ServiceProcess] = field(default_factory=list)

    def server(self, *options: str, port: int | None = None, **variables: str) -> ServiceProcess:
        port = port or free_port()
        return self._start("serve", "--port", str(port), *options, port=port, variables=variables)

    async def restarted(self, server: ServiceProcess, *options: str, **variables: str) -> ServiceProcess:
        """The server at the same port, stopped and started again."""
        server.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(server.process.wait, PATIENCE) == 0, server.log
        again = self.server(*options, port=server.port, **variables)
        await asyncio.to_thread(self.ready, again)
        return again

    def worker(self, **variables: str) -> ServiceProcess:
        return self._start("worker", port=None, variables=variables)

    def _start(self, *arguments: str, port: int | None, variables: Mapping[str, str]) -> ServiceProcess:
        log_file = self.settings.home / f"process-{len(self.members)}.log"
        environ = {
            **clean_environ(self.settings.home),
            "GUICHET_DATABASE_URL": self.settings.database_url,
            "GUICHET_SECRET_KEYS": SECRET_KEY,
            "GUICHET_RATE_LIMIT": str(RATE_LIMIT),
            "GUICHET_TRUSTED_PROXIES": "127.0.0.0/8",
            **self.variables,
            **variables,
        }
        process = Child(arguments, environ, Path.cwd(), log_file, log_file)
        member = ServiceProcess(process, log_file, port)
        self.members.append(member)
        return member

    def ready(self, *members: ServiceProcess) -> None:
        """Waits until every server answers and every worker runs its loops (and listens, where it can)."""
        for member in members:
            until(lambda member=member: _ready(member), member)  # type: ignore[misc]

    def end(self) -> None:
        for member in self.members:
            if member.process.poll() is None:
                member.process.terminate()
        for member in self.members:
            try:
                member.process.wait(5)
            except subprocess.TimeoutExpired:
                member.kill()


def _ready(member: ServiceProcess) -> bool:
    assert member.process.poll() is None, member.log
    if member.port is None:
        return member.says("worker.started")
    try:
        with urllib.request.urlopen(f"{member.url}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.HTTPError):
        return False


def until(true: Callable[[], object], member: ServiceProcess | None = None) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, member.log if member else "it did not come true"
        time.sleep(0.02)


async def soon(true: Callable[[], object]) -> None:
    """The same for a test that receives meanwhile."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.02)


@contextmanager
def fleet_of(settings: Settings, **variables: str) -> Iterator[Fleet]:
    fleet = Fleet(settings, variables)
    try:
        yield fleet
    finally:
        fleet.end()


async def new_merchant(settings: Settings) -> str:
    """The test key of a new merchant."""
    async with service(settings) as opened:
        _, keys = await create_merchant(opened.ctx, "M")
    return keys["test"]


async def execute(settings: Settings, statement: str) -> None:
    connection = await asyncpg.connect(settings.database_url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def half_a_minute_passes(settings: Settings, claimed_before: Instant = NEVER) -> None:
    """Moves the leases of dead processes back, so that no test waits for them. `claimed_before`: only those that began
    before it."""
    last = later(claimed_before, LEASE_DURATION)
    async with service(settings) as opened, opened.ctx.db.transaction() as tx:
        for due in (payments.c.next_poll_at, refunds.c.next_poll_at, webhook_deliveries.c.next_attempt_at):
            earlier = update(due.table).where(due.table.c.status == "pending", due <= last)
            await tx.write(earlier.values({due: due - LEASE_DURATION}))


@dataclass
class Merchant:
    """Calls any server of the fleet."""

    client: aiohttp.ClientSession
    key: str

    async def call(
        self, server: ServiceProcess, method: str, path: str, body: object = None, address: str | None = None
    ) -> tuple[int, Any]:
        headers = {
            "Authorization": f"Bearer {self.key}",
            "X-Forwarded-For": address or f"2001:db8:0:{next(_addresses):x}::1",
        }
        async with self.client.request(method, f"{server.url}/v1{path}", json=body, headers=headers) as answer:
            return answer.status, json.loads(await answer.read())

    async def pay(self, server: ServiceProcess, external_id: str, ending: str = "0000") -> tuple[int, Any]:
        body = {"amount": 5000, "operator": "mtn", "phone_number": f"2299700{ending}", "external_id": external_id}
        return await self.call(server, "POST", "/payments", body)

    async def receive_at(self, server: ServiceProcess, url: str) -> None:
        status, body = await self.call(server, "PUT", "/webhooks/endpoint", {"url": url})
        assert status == 200, body

    async def balance(self, server: ServiceProcess) -> float:
        status, body = await self.call(server, "GET", "/balance")
        assert status == 200, body
        return float(body["data"]["balance"])


@dataclass
class Receiver:
    """A merchant's server that notes when each attempt came and how many of one delivery were open at once."""

    pause: float = 0.0
    hanging: asyncio.Event | None = None
    attempts: Counter[str] = field(default_factory=Counter)
    open: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)
    #: Delivery ids by the external_id they speak of; and when the first attempt came.
    delivery_ids: dict[str, set[str]] = field(default_factory=dict)
    at: dict[str, float] = field(default_factory=dict)

    async def __call__(self, writer: asyncio.StreamWriter, request: ReceivedRequest) -> None:
        event = json.loads(request.body)
        subject = event["data"].get("external_id", event["id"])  # A refund has none.
        self.at.setdefault(subject, time.monotonic())
        self.delivery_ids.setdefault(subject, set()).add(event["id"])
        self.attempts[event["id"]] += 1
        self.open[event["id"]] += 1
        self.most[event["id"]] = max(self.most[event["id"]], self.open[event["id"]])
        try:
            await asyncio.sleep(self.pause)
            if self.hanging is not None:
                await self.hanging.wait()
        finally:
            self.open[event["id"]] -= 1
        writer.write(OK)
        await writer.drain()
