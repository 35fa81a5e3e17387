"""The simulator's background task: decides transactions when they are due, and sends callbacks."""

import asyncio
from typing import Final

import aiohttp

from guichet.clock import SECOND, Instant, later
from guichet_simulator.context import SimulatorContext
from guichet_simulator.models import CallbackRequest, QueuedCallback

#: Seconds that a client has to answer a callback.
_TIMEOUT: Final = 10
#: Callbacks that are sent at the same time at most.
_AT_ONCE: Final = 32
#: Seconds for which a connection is kept for the next callback, as providers do: handshakes took a quarter of the time.
_KEPT: Final = 3
#: After so long, a callback whose attempt never ended is sent again.
_LEASE: Final = 30 * SECOND


class BackgroundTask:
    def __init__(self, ctx: SimulatorContext) -> None:
        self._ctx = ctx
        self._task: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Start if not running. Called for each request too: a mounted application gets no lifespan of its own."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        tasks = [task for task in (self._task, *self._sending) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        ctx = self._ctx
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(keepalive_timeout=_KEPT),
            timeout=aiohttp.ClientTimeout(total=_TIMEOUT),
            cookie_jar=aiohttp.DummyCookieJar(),
        ) as session:
            while True:
                due_at = ctx.store.next_due()
                if due_at > ctx.clock.now():
                    await self._wait_until(due_at)
                    continue
                self._do_what_is_due(session)
                if len(self._sending) == _AT_ONCE:
                    await asyncio.wait(self._sending, return_when=asyncio.FIRST_COMPLETED)

    def _do_what_is_due(self, session: aiohttp.ClientSession) -> None:
        ctx = self._ctx
        ctx.store.begin()
        ctx.apply_due_decisions()
        now = ctx.clock.now()
        for queued in ctx.store.claim_callbacks(now, later(now, _LEASE), _AT_ONCE - len(self._sending)):
            task = asyncio.create_task(self._send(session, queued))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _wait_until(self, due_at: Instant) -> None:
        """Returns then, or once something is due earlier."""
        self._ctx.next_look = due_at
        self._ctx.look.clear()
        timer = asyncio.create_task(self._look_at(due_at))
        try:
            await self._ctx.look.wait()
        finally:
            timer.cancel()

    async def _look_at(self, due_at: Instant) -> None:
        """In whole milliseconds, as the event loop counts: it would wake up too early."""
        await self._ctx.clock.sleep(-((self._ctx.clock.now() - due_at) // 1000) / 1000)
        self._ctx.look.set()

    async def _send(self, session: aiohttp.ClientSession, queued: QueuedCallback) -> None:
        ctx = self._ctx
        tx = ctx.store.get(queued.transaction_id)
        provider = ctx.providers[tx.provider]
        request = provider.callback_request(tx, queued)
        if request is None:
            ctx.store.run("UPDATE callbacks SET due_at = NULL WHERE id = ?", queued.id)
            return
        status, error = await send_request(session, request)
        due_at = None
        if not (status and 200 <= status < 300) and queued.attempts <= len(provider.retries):
            due_at = later(ctx.clock.now(), int(provider.retries[queued.attempts - 1] * SECOND))
            ctx.falls_due(due_at)
        ctx.store.run(
            "UPDATE callbacks SET due_at = ?, url = ?, answered = ?, error = ? WHERE id = ?",
            due_at, request.url, status, error, queued.id,
        )  # fmt: skip


async def send_request(session: aiohttp.ClientSession, request: CallbackRequest) -> tuple[int | None, str | None]:
    """The status, or why there was none. Certificates are not checked: a developer's server signs its own."""
    try:
        try:
            return await _answered(session, request), None
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            # The client was stopped or restarted since this connection was kept: once more, by a new one.
            return await _answered(session, request), None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return None, f"{type(error).__name__}: {error}"


async def _answered(session: aiohttp.ClientSession, request: CallbackRequest) -> int:
    headers = {"Content-Type": "application/json", **request.headers}
    method, url = request.method, request.url
    async with session.request(method, url, data=request.body, headers=headers, ssl=False) as response:
        return response.status
