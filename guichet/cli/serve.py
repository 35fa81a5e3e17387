"""`guichet serve`, `guichet worker`, `guichet migrate`."""

import asyncio
import fcntl
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop

from guichet.bootstrap import Service, application, awake, ensure_schema, live_providers, service, simulator
from guichet.cli.support import Json, errors, people, print_json, refuse, run_async, settings_or_refusal
from guichet.logs import configure_logs, log
from guichet.providers.providers_file import ProvidersConfig
from guichet.server.connection_sharing import Share
from guichet.server.http_server import GRACE, MANNER, Manner, Server, Tls, address_of, bound, inherited
from guichet.server.metrics_port import check_metrics_ports, metrics_port
from guichet.server.processes import STOP_WITHIN, on_stop, stop_with_parent, supervise
from guichet.settings import DEFAULT_PUBLIC_URL, Settings, SettingsError
from guichet.worker.wakeups import wakeups

Grace = Annotated[
    int, typer.Option(help="Seconds that what is under way has to finish when told to stop.", min=1, max=300)
]


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: `guichet serve --host 0.0.0.0 --port 8000`")(serve)
    app.command(epilog="Example: `guichet worker --grace 11`")(worker)
    app.command(epilog="Example: `GUICHET_DATABASE_URL=postgresql://… guichet migrate`")(migrate)


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)] = 8000,
    no_worker: Annotated[bool, typer.Option("--no-worker", help="Leave the loops to `guichet worker`.")] = False,
    workers: Annotated[int, typer.Option(help="Processes that share the port.", min=1, max=256)] = 1,
    ssl_certfile: Annotated[
        Path | None, typer.Option(help="PEM file: serve https with this certificate and its chain.")
    ] = None,
    ssl_keyfile: Annotated[Path | None, typer.Option(help="PEM file: its key, unless in the same file.")] = None,
    grace: Grace = GRACE,
    drain: Annotated[
        int, typer.Option(help="Seconds before that in which everybody is served and /readyz is 503.", min=0, max=300)
    ] = 0,
    inherit: Annotated[
        tuple[int, int] | None, typer.Option(hidden=True, help="Descriptors: a listening socket, the table of shares.")
    ] = None,
    number: Annotated[int, typer.Option(hidden=True, help="Which process of several this is, from 1.")] = 1,
) -> None:
    """Serve the API, the hosted pages and, unless told otherwise, the worker; in one process or several."""
    settings = settings_or_refusal()
    if ssl_keyfile is not None and ssl_certfile is None:
        refuse("--ssl-keyfile belongs to an --ssl-certfile.")
    manner = Manner(Tls(ssl_certfile, ssl_keyfile) if ssl_certfile else None, grace, drain)
    if workers > 1:
        _start_several(settings, host, port, workers, ["--no-worker"] if no_worker else [], manner)
    else:
        start(settings, host, port, with_worker=not no_worker, inherit=inherit, number=number, manner=manner)


def _start_several(settings: Settings, host: str, port: int, workers: int, options: list[str], manner: Manner) -> None:
    configure_logs(settings.log_level, machine_readable=not settings.development)

    async def main() -> None:
        await ensure_schema(settings)
        live_providers(settings)  # A wrong file is refused once, here.
        check_metrics_ports(settings, workers)
        with _only_service(settings), bound(host, port) as listening:
            within = STOP_WITHIN - GRACE + manner.grace + manner.drain
            await supervise(listening, workers, ["serve", *options, *manner.options], within)

    run_async(main())


def start(
    settings: Settings,
    host: str,
    port: int,
    *,
    with_worker: bool,
    before: Callable[[Service], Awaitable[None]] | None = None,
    migrating: bool = False,
    inherit: tuple[int, int] | None = None,
    number: int = 1,
    manner: Manner = MANNER,
) -> None:
    """Serves until it is told to stop; `before` runs once everything is open. `migrating` spares `guichet migrate`.
    `inherit`: descriptors of a listening socket in place of `host` and `port`, and of the table of
    `server/connection_sharing.py`; `number`: which process of several.
    """
    configure_logs(settings.log_level, machine_readable=not settings.development)

    async def main() -> None:
        if manner.tls:
            manner.tls.check()
        with (
            _only_service(settings) if inherit is None else nullcontext(),
            bound(host, port) if inherit is None else inherited(inherit[0]) as listening,
        ):
            reachable = _reachable(settings, address_of(listening, manner.scheme))
            operators = live_providers(reachable)
            async with _opened(reachable, operators, migrating=migrating) as opened:
                running = opened.worker() if with_worker else None
                simulated = simulator(reachable, opened.ctx.clock, operators)
                app = application(opened, running, simulated)
                stop_worker = partial(running.stop, manner.grace) if running else None
                server = Server(app, stop_worker, manner, Share(inherit[1], number) if inherit else None)
                on_stop(server.handle_exit)
                if inherit is not None:
                    stop_with_parent(server.handle_exit)
                if before:
                    await before(opened)
                async with (
                    wakeups(opened.ctx, working=with_worker),
                    metrics_port(opened.ctx, number),
                    awake(simulated),
                ):
                    if running:  # Now that nothing can refuse the start any more: a loop outlives no database.
                        running.start()
                    _settle_down()
                    await server.serve([listening])

    run_async(main(), _uvloop)


def worker(grace: Grace = GRACE) -> None:
    """Run the loops alone: ask operators, disburse refunds, deliver webhooks."""
    settings = settings_or_refusal()
    configure_logs(settings.log_level, machine_readable=not settings.development)

    async def main() -> None:
        with _only_service(settings):
            async with _opened(settings, live_providers(settings)) as opened:
                stopped = asyncio.Event()
                on_stop(lambda *_: stopped.set())
                running = opened.worker()
                async with wakeups(opened.ctx, working=True), metrics_port(opened.ctx):
                    running.start()
                    log.info("worker.started")
                    await stopped.wait()
                await running.stop(grace)

    run_async(main(), _uvloop)


def migrate(as_json: Json = False) -> None:
    """Bring the database schema up to date. Harmless when it already is."""
    from guichet.db.migrate import upgrade  # noqa: PLC0415 - Alembic takes a tenth of a second to import

    settings = settings_or_refusal()
    with errors.status("Migrating…"):
        before, after = run_async(upgrade(settings))
    if as_json:
        print_json({"from": before, "to": after})
    elif before == after:
        people.print(f"The schema is up to date ({after}).")
    else:
        people.print(f"The schema went from {before or 'nothing'} to {after}.")


def _uvloop(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


def _settle_down() -> None:
    """What is there at the start lives as long as the process: the garbage collector need not look at it for ever.
    What a request makes goes with it, by its reference counts; cycles are rare and can wait to be looked for."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _reachable(settings: Settings, address: str) -> Settings:
    """In development nobody has to repeat the port in GUICHET_PUBLIC_URL."""
    if settings.development and settings.public_url == DEFAULT_PUBLIC_URL:
        return replace(settings, public_url=address)
    return settings


@asynccontextmanager
async def _opened(settings: Settings, operators: ProvidersConfig, *, migrating: bool = False) -> AsyncIterator[Service]:
    if migrating:
        from guichet.db.migrate import upgrade  # noqa: PLC0415 - Alembic takes a tenth of a second to import

        await upgrade(settings)
    else:
        await ensure_schema(settings)
    async with service(settings, operators=operators) as opened:
        yield opened


@contextmanager
def _only_service(settings: Settings) -> Iterator[None]:
    """SQLite has one service, in one process or several of `--workers`; another is told what to use instead."""
    if not settings.embedded:
        yield
        return
    settings.sqlite_path.parent.mkdir(parents=True, exist_ok=True)
    with settings.sqlite_path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SettingsError(
                "Another Guichet service already uses this embedded database. "
                "Let it have more processes (--workers), or use PostgreSQL: set GUICHET_DATABASE_URL."
            ) from None
        yield
