"""The whole service for tests: the real application on a real port, with a clock that the test advances."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec
from starlette.types import ASGIApp

from guichet.application import application
from guichet.back_office.merchants import create_merchant
from guichet.bootstrap import Service, service
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import MerchantStatus
from guichet.domain.messages import verbatim
from guichet.domain.money import Currency
from guichet.incidents import repository as incidents
from guichet.server.connection_limits import ConnectionLimits, PhaseLimit
from guichet.server.http_server import Server
from guichet.server.listener import bind_socket, url_of
from guichet.settings import Settings
from guichet.worker.timed_loops import ServiceChecks
from guichet.worker.worker import Worker
from guichet_demo.access import DemoAccess
from tests.fakes.clock import ManualClock


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer; `body` is the decoded JSON, `raw` its bytes."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return msgspec.json.decode(self.raw)

    @property
    def data(self) -> Any:
        assert self.body["success"] is True, self.raw
        return self.body["data"]

    @property
    def error(self) -> Any:
        assert self.body["success"] is False, self.raw
        return self.body["error"]


@dataclass
class MerchantClient:
    """A merchant's keys, and how its developer calls the API with one of them."""

    service: "ServiceFixture"
    id: MerchantId
    keys: dict[str, str]
    env: str = "test"

    @property
    def live(self) -> "MerchantClient":
        return MerchantClient(self.service, self.id, self.keys, "live")

    async def call(self, method: str, path: str, body: object = None, **kw: Any) -> Answer:
        """`body`: bytes as they are, anything else as JSON."""
        headers = {"Authorization": f"Bearer {self.keys[self.env]}", **kw.pop("headers", {})}
        return await self.service.call(method, f"/v1{path}", body, headers=headers, **kw)

    async def get(self, path: str, **kw: Any) -> Answer:
        return await self.call("GET", path, **kw)

    async def post(self, path: str, body: object = None, **kw: Any) -> Answer:
        return await self.call("POST", path, body, **kw)

    async def put(self, path: str, body: object = None, **kw: Any) -> Answer:
        return await self.call("PUT", path, body, **kw)

    async def pay(self, ending: str = "1234", **fields: Any) -> Any:
        """The payment object of a new MTN payment of 5 000 XOF."""
        body = {"amount": 5000, "operator": "mtn", "phone_number": f"2299700{ending}", **fields}
        answer = await self.post("/payments", body)
        assert answer.status == 201, answer.raw
        return answer.data

    async def report_mismatch(self, reference: str, account: str | None = "op") -> None:
        """An open incident: the provider states another amount than the live payment's."""
        ctx = self.service.ctx
        await incidents.report(
            ctx.db,
            merchant_id=self.id,
            env="live",
            kind=incidents.MISMATCH,
            subject_type="payment",
            reference=reference,
            provider_account=account,
            detail=verbatim("x"),
            now=ctx.clock.now(),
        )


@dataclass
class ServiceFixture:
    opened: Service
    worker: Worker
    #: Not among the worker's loops: in a process the doctor's checks are first made after half a minute, and few tests
    #: look at them.
    checks: ServiceChecks
    clock: ManualClock
    base_url: str
    client: aiohttp.ClientSession
    demo: DemoAccess
    _merchants: int = field(default=0)

    @classmethod
    def of(
        cls,
        opened: Service,
        clock: ManualClock,
        base_url: str,
        client: aiohttp.ClientSession,
        demo: DemoAccess | None = None,
    ) -> "ServiceFixture":
        """With a worker of its own, which somebody runs."""
        worker = opened.worker()
        [checks] = [loop for loop in worker.loops if isinstance(loop, ServiceChecks)]
        worker.loops.remove(checks)
        return cls(opened, worker, checks, clock, base_url, client, demo or DemoAccess())

    @property
    def ctx(self) -> Any:
        return self.opened.ctx

    async def merchant(
        self, name: str | None = None, status: MerchantStatus = "active", currency: Currency = "XOF"
    ) -> MerchantClient:
        self._merchants += 1
        merchant, keys = await create_merchant(self.opened.ctx, name or f"M{self._merchants}", status, currency)
        return MerchantClient(self, merchant.id, {str(env): key for env, key in keys.items()})

    async def call(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None, **kw: Any
    ) -> Answer:
        """`path` is sent as it is written: percent-encoding is the test's business."""
        from yarl import URL

        data = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        url = URL(self.base_url + path, encoded=True)
        async with self.client.request(
            method, url, data=data, headers=headers, allow_redirects=False, **kw
        ) as response:
            return Answer(response.status, response.headers, await response.read())

    async def run_worker(self, seconds: float = 0) -> None:
        """Advances the clock and lets the worker do everything that is due."""
        self.clock.advance(seconds)
        await self.worker.run_until_idle()

    async def make_checks(self, seconds: float = 0) -> None:
        """The same, of the doctor's checks."""
        self.clock.advance(seconds)
        await self.checks.step()


@asynccontextmanager
async def serving(app: ASGIApp, port: int = 0) -> AsyncIterator[str]:
    """An ASGI application on a loopback port, its own unless one is given; its address."""
    with bind_socket("127.0.0.1", port) as listener:
        async with running(app, listener):
            yield url_of(listener)


@asynccontextmanager
async def running(app: ASGIApp, listener: socket.socket) -> AsyncIterator[None]:
    """The server of `guichet serve`, without its main loop and the looks of its stop, each of which is longer than
    most tests take. On a slow machine a test's next request must not meet a connection that just closed."""
    server = Server(app, limits=ConnectionLimits(idle=PhaseLimit(300, most=1_000_000)))
    await server.startup([listener])
    try:
        yield
    finally:
        state = server.server_state
        for listening in server.servers:
            listening.close()
        for connection in [*state.connections]:
            connection.shutdown()
        while state.connections or state.tasks:
            await asyncio.sleep(0.001)
        for listening in server.servers:
            await listening.wait_closed()
        listener.close()


@asynccontextmanager
async def open_service(
    settings: Settings, clock: ManualClock | None = None, port: int = 0, **connections: Any
) -> AsyncIterator[ServiceFixture]:
    """The schema must be there already."""
    clock = clock or ManualClock()
    async with service(settings, clock, **connections) as opened:
        # aiohttp's own resolver starts and ends a thread, for names that no test looks up.
        connector = aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver())
        demo = DemoAccess()
        async with (
            serving(application(opened, None, demo=demo), port) as base_url,
            aiohttp.ClientSession(connector=connector) as client,
        ):
            yield ServiceFixture.of(opened, clock, base_url, client, demo)
