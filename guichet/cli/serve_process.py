"""What one process of `guichet serve` does; `guichet demo` serves in the same way."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from socket import socket
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import field

from guichet.application import IMPORTED_LATER, application
from guichet.bootstrap import WORKER_MODULES, Service, ensure_schema, needs_upgrade, service
from guichet.cli.process import begin_process, check_files, complete_start, run_process
from guichet.context import AppContext
from guichet.db.sqlite.lock import join_service, lock_database
from guichet.domain.records import Record
from guichet.payments.initiation import finish_slow_initiations
from guichet.provider_accounts import live_providers
from guichet.server.background_writers import writing_attempts, writing_request_log
from guichet.server.connection_limits import ConnectionLimits
from guichet.server.connection_sharing import ConnectionShare
from guichet.server.http_server import Server, ServerOptions
from guichet.server.lazy import DeferredWorker, import_in_thread
from guichet.server.listener import bind_socket, inherited_socket, start_listening, url_of
from guichet.server.metrics_port import metrics_port
from guichet.server.process_tuning import tune_allocator, tune_garbage_collector
from guichet.server.processes import on_stop, stop_with_parent
from guichet.settings import DEFAULT_PUBLIC_URL, Settings
from guichet.simulated_providers import SIMULATOR_STATE, mounted_simulator
from guichet.webhooks.lease_release import release_webhooks
from guichet.worker.wakeups import wakeups

if TYPE_CHECKING:
    from guichet.accounts.sign_in import WithoutPassword
    from guichet.server.lazy import LazyApplication

#: Seconds that a server answers before it starts its worker, and that each step of the start waits for requests. A
#: health check waits longer for the worker (`lazy.py`).
_FIRST_REQUESTS: Final = 0.2
#: Seconds until the simulated providers start by themselves, to send callbacks that are due: their import holds up what
#: the worker finds.
_SIMULATOR_AFTER: Final = 3.0


class Listen(Record, frozen=True):
    """Where a server process listens.

    `inherited`: in a child process of `--workers`, the descriptors of the listening socket and of the table of
    connection counts, in place of `host` and `port`. `number`: which process this is, from 1.
    """

    host: str
    port: int
    inherited: tuple[int, int] | None = None
    number: int = 1
    options: ServerOptions = field(default_factory=ServerOptions)

    def open(self) -> AbstractContextManager[socket]:
        return bind_socket(self.host, self.port) if self.inherited is None else inherited_socket(self.inherited[0])

    @property
    def share(self) -> ConnectionShare | None:
        return ConnectionShare(self.inherited[1], self.number) if self.inherited else None


class Demonstration(NamedTuple):
    """How its people sign in, and what is done once the service is open, before the first request."""

    access: "WithoutPassword"
    welcome: Callable[[AppContext], Awaitable[None]]


def serve_process(
    settings: Settings,
    listen: Listen,
    *,
    with_worker: bool,
    demo: Demonstration | None = None,
) -> None:
    """Serves in this process until it receives a signal to stop. For a demonstration it brings the schema up to date
    first, on PostgreSQL too."""
    begin_process(settings)

    async def main() -> None:
        await check_files(settings, listen.options.tls)
        is_child = listen.inherited is not None
        if not (is_child or demo):  # What is refused creates nothing, not even a lock.
            await needs_upgrade(settings, create=True)
        with join_service(settings) if is_child else lock_database(settings) as is_alone:
            # Before it listens: without a database, nobody would answer what is connected meanwhile.
            await _prepare_schema(settings, migrate_first=demo is not None)
            with listen.open() as listener:
                public = _with_public_url(settings, url_of(listener, listen.options.scheme))
                async with service(public, providers=live_providers(public)) as opened:
                    if is_alone:
                        await release_webhooks(opened.ctx.db, opened.ctx.clock.now())
                    await _serve_until_stopped(opened, listen, listener, with_worker=with_worker, demo=demo)

    run_process(main())


async def _serve_until_stopped(
    opened: Service, listen: Listen, listener: socket, *, with_worker: bool, demo: Demonstration | None
) -> None:
    ctx = opened.ctx
    worker = DeferredWorker(WORKER_MODULES, opened.worker) if with_worker else None
    simulated = mounted_simulator(ctx.settings, ctx.clock, ctx.providers)
    stop_jobs = partial(_stop_jobs, ctx, worker, listen.options.grace)
    limits = ConnectionLimits.of(ctx.settings, tls=listen.options.tls is not None)
    app = application(opened, worker, simulated, demo and demo.access)
    server = Server(app, stop_jobs, listen.options, listen.share, limits)
    on_stop(server.handle_exit)
    if listen.inherited is not None:
        stop_with_parent(server.handle_exit)
    async with (
        wakeups(ctx, working=with_worker),
        nullcontext() if worker else writing_attempts(ctx),
        writing_request_log(ctx),
        metrics_port(ctx, listen.number),
        aclosing(simulated) if simulated else nullcontext(),
        _beside(server, _warm_up(server, opened, worker, simulated)),
    ):
        start_listening(listener)
        if demo:
            await demo.welcome(ctx)
        complete_start(ctx.settings)
        await server.serve([listener])


@asynccontextmanager
async def _beside(server: Server, work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Does `work` while the block runs. Its failure stops the server and is raised."""

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            server.handle_exit(signal.SIGTERM, None)

    running = asyncio.create_task(work)
    running.add_done_callback(ended)
    try:
        yield
    finally:
        running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def _warm_up(
    server: Server, opened: Service, worker: DeferredWorker | None, simulated: "LazyApplication | None"
) -> None:
    """Once the server accepts connections, imports what a first request to the API does not need. It does so in
    threads, which take turns with the event loop every few milliseconds, and the loops of the worker take theirs: a
    request that comes at once would take three times as long, so it goes first."""
    ctx = opened.ctx
    await server.listening.wait()
    await asyncio.sleep(_FIRST_REQUESTS)
    await server.idle(_FIRST_REQUESTS)
    await import_in_thread(IMPORTED_LATER)
    if worker:  # Now that the start can no longer fail: loops must not outlive the database.
        await worker.start()
    await server.idle(_FIRST_REQUESTS)
    await opened.http_client.open()
    tune_allocator()
    tune_garbage_collector()
    if simulated and (ctx.settings.home / SIMULATOR_STATE).exists():  # Callbacks may be due.
        await asyncio.sleep(_SIMULATOR_AFTER)
        await simulated.start()
        tune_garbage_collector()


async def _stop_jobs(ctx: AppContext, worker: DeferredWorker | None, grace: float) -> None:
    """What runs beside the requests has `grace` seconds to finish: the worker's jobs, and slow initiations."""
    await asyncio.gather(finish_slow_initiations(ctx, grace), *([worker.stop(grace)] if worker else []))


def _with_public_url(settings: Settings, url: str) -> Settings:
    """In development the default public URL follows the port that is really served."""
    if settings.development and settings.public_url == DEFAULT_PUBLIC_URL:
        return replace(settings, public_url=url)
    return settings


async def _prepare_schema(settings: Settings, *, migrate_first: bool) -> None:
    if migrate_first:
        from guichet.db.migrate import upgrade  # noqa: PLC0415 - Alembic takes a tenth of a second to import

        await upgrade(settings)
    else:
        await ensure_schema(settings, create=True)
