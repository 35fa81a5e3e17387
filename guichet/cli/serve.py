"""`guichet serve` and `guichet worker`."""

import asyncio
import ctypes
import fcntl
import gc
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from socket import socket
from typing import Annotated, Any, Final

import typer
import uvloop

from guichet import __version__
from guichet.bootstrap import (
    Service,
    application,
    ensure_schema,
    live_providers,
    running_simulator,
    service,
    simulator,
)
from guichet.cli.console import fail
from guichet.cli.runner import load_settings, run_async, tighten_files
from guichet.context import AppContext
from guichet.logs import configure_logs, log
from guichet.payments.slow_initiation import finish_slow_initiations
from guichet.private_files import make_private_folder
from guichet.providers.providers_file import ProvidersConfig
from guichet.server.connection_limits import ConnectionLimits
from guichet.server.connection_sharing import ConnectionShare
from guichet.server.http_server import (
    GRACE,
    Server,
    ServerOptions,
    Tls,
    bind_socket,
    inherited_socket,
    start_listening,
    url_of,
)
from guichet.server.metrics_port import check_metrics_ports, metrics_port
from guichet.server.processes import STOP_TIMEOUT, on_stop, stop_with_parent, supervise
from guichet.settings import DEFAULT_PUBLIC_URL, Settings, SettingsError
from guichet.worker.availability_loop import writing_attempts
from guichet.worker.wakeups import wakeups
from guichet.worker.worker import Worker

#: malloc.h of glibc: from how many bytes a block has pages of its own.
_M_MMAP_THRESHOLD: Final = -3
_LARGE_BLOCK: Final = 128 * 1024
Grace = Annotated[
    int, typer.Option(help="Seconds that requests and jobs under way have to finish at a stop.", min=1, max=300)
]


@dataclass(frozen=True, slots=True)
class Listen:
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


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: `guichet serve --host 0.0.0.0 --port 8000`")(serve)
    app.command(epilog="Example: `guichet worker --grace 11`")(worker)


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)] = 8000,
    no_worker: Annotated[bool, typer.Option("--no-worker", help="Leave the loops to `guichet worker`.")] = False,
    workers: Annotated[int, typer.Option(help="Processes that share the port.", min=1, max=256)] = 1,
    ssl_certfile: Annotated[
        Path | None, typer.Option(help="PEM file: serve https with this certificate and its chain.")
    ] = None,
    ssl_keyfile: Annotated[
        Path | None, typer.Option(help="PEM file: the certificate's key, unless it is in the same file.")
    ] = None,
    grace: Grace = GRACE,
    drain: Annotated[
        int, typer.Option(help="Seconds before that in which all is served and /readyz is 503.", min=0, max=300)
    ] = 0,
    inherit: Annotated[
        tuple[int, int] | None,
        typer.Option(hidden=True, help="Descriptors: a listening socket, the table of connection counts."),
    ] = None,
    number: Annotated[int, typer.Option(hidden=True, help="Which process of several this is, from 1.")] = 1,
) -> None:
    """Serve the API, the hosted pages and, unless told otherwise, the worker; in one process or several."""
    settings = load_settings()
    if ssl_keyfile is not None and ssl_certfile is None:
        fail("--ssl-keyfile belongs to an --ssl-certfile.")
    options = ServerOptions(Tls(ssl_certfile, ssl_keyfile) if ssl_certfile else None, grace, drain)
    listen = Listen(host, port, inherit, number, options)
    if workers > 1:
        _serve_processes(settings, listen, workers, ["--no-worker"] if no_worker else [])
    else:
        serve_process(settings, listen, with_worker=not no_worker)


def _serve_processes(settings: Settings, listen: Listen, workers: int, arguments: list[str]) -> None:
    """The parent of `--workers`: checks everything once, then starts the processes."""
    configure_logs(settings.log_level, machine_readable=not settings.development)
    tighten_files(settings)
    options = listen.options

    async def main() -> None:
        await ensure_schema(settings, create=True)
        live_providers(settings)  # Reports a wrong file once, before any process starts.
        check_metrics_ports(settings, workers)
        with _lock_database(settings), listen.open() as listener:
            timeout = STOP_TIMEOUT - GRACE + options.grace + options.drain
            await supervise(listener, workers, ["serve", *arguments, *options.arguments], timeout)

    run_async(main())


def serve_process(
    settings: Settings,
    listen: Listen,
    *,
    with_worker: bool,
    on_ready: Callable[[Service], Awaitable[None]] | None = None,
    migrate_first: bool = False,
) -> None:
    """Serves in this process until it receives a signal to stop.

    `on_ready` runs once the service is open, before the first request. `migrate_first`: brings the schema up to date,
    on PostgreSQL too.
    """
    configure_logs(settings.log_level, machine_readable=not settings.development)
    tighten_files(settings)

    async def main() -> None:
        if listen.options.tls:
            listen.options.tls.check()
        is_child = listen.inherited is not None
        with nullcontext() if is_child else _lock_database(settings):
            # Before it listens: without a database, nobody would answer what is connected meanwhile.
            await _prepare_schema(settings, migrate_first=migrate_first)
            with listen.open() as listener:
                public = _with_public_url(settings, url_of(listener, listen.options.scheme))
                providers = live_providers(public)
                async with service(public, providers=providers) as opened:
                    await _serve_until_stopped(
                        opened, providers, listen, listener, with_worker=with_worker, on_ready=on_ready
                    )

    run_async(main(), _run_uvloop)


async def _serve_until_stopped(
    opened: Service,
    providers: ProvidersConfig,
    listen: Listen,
    listener: socket,
    *,
    with_worker: bool,
    on_ready: Callable[[Service], Awaitable[None]] | None,
) -> None:
    ctx = opened.ctx
    worker = opened.worker() if with_worker else None
    simulated = simulator(ctx.settings, ctx.clock, providers)
    stop_jobs = partial(_stop_jobs, ctx, worker, listen.options.grace)
    limits = ConnectionLimits.of(ctx.settings, tls=listen.options.tls is not None)
    server = Server(application(opened, worker, simulated), stop_jobs, listen.options, listen.share, limits)
    on_stop(server.handle_exit)
    if listen.inherited is not None:
        stop_with_parent(server.handle_exit)
    async with (
        wakeups(ctx, working=with_worker),
        nullcontext() if worker else writing_attempts(ctx),
        metrics_port(ctx, listen.number),
        running_simulator(simulated),
    ):
        start_listening(listener)
        if on_ready:
            await on_ready(opened)
        _say_opened(ctx)
        if worker:  # Last, when the start can no longer fail: loops must not outlive the database.
            worker.start()
        _tune_garbage_collector()
        _tune_allocator()
        await server.serve([listener])


def _say_opened(ctx: AppContext) -> None:
    """Which version serves which database, once the start can no longer fail."""
    log.info("service.opened", version=__version__, database=ctx.settings.database_address)


async def _stop_jobs(ctx: AppContext, worker: Worker | None, grace: float) -> None:
    """What runs beside the requests has `grace` seconds to finish: the worker's jobs, and slow initiations."""
    await asyncio.gather(finish_slow_initiations(ctx, grace), *([worker.stop(grace)] if worker else []))


def worker(grace: Grace = GRACE) -> None:
    """Run the loops alone: poll payments, disburse refunds, deliver webhooks."""
    settings = load_settings()
    configure_logs(settings.log_level, machine_readable=not settings.development)
    tighten_files(settings)

    async def main() -> None:
        with _lock_database(settings):
            await ensure_schema(settings)
            async with service(settings, providers=live_providers(settings)) as opened:
                stopped = asyncio.Event()
                on_stop(lambda *_: stopped.set())
                loops = opened.worker()
                async with wakeups(opened.ctx, working=True), metrics_port(opened.ctx):
                    _say_opened(opened.ctx)
                    loops.start()
                    log.info("worker.started")
                    await stopped.wait()
                await loops.stop(grace)

    run_async(main(), _run_uvloop)


def _run_uvloop(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


def _tune_garbage_collector() -> None:
    """Objects made at the start live as long as the process, so the collector need not scan them again. Objects of a
    request are freed by their reference counts; cycles are rare, so it looks for them less often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _tune_allocator() -> None:
    """Large blocks return to the system when they are freed. glibc otherwise takes them from its heap after the first
    one was freed, where the buffer of 256 KB of each TLS connection (uvloop) stays in memory with all its pages.
    """
    with suppress(AttributeError, OSError):  # Another C library.
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)


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


@contextmanager
def _lock_database(settings: Settings) -> Iterator[None]:
    """Lets only one service use a SQLite database; its processes of `--workers` count as one service.

    Raises SettingsError if another one already uses it.
    """
    if not settings.embedded:
        yield
        return
    make_private_folder(settings.sqlite_path.parent)
    with settings.sqlite_path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SettingsError(
                "Another Guichet service already uses this embedded database. "
                "Let it have more processes (--workers), or use PostgreSQL: set GUICHET_DATABASE_URL."
            ) from None
        yield
