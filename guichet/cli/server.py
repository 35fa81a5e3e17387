"""`guichet serve`, `guichet worker`, `guichet migrate`."""

import asyncio
import fcntl
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Annotated, Final

import typer
import uvicorn
import uvloop

from guichet.bootstrap import Service, application, ensure_schema, service
from guichet.cli.support import errors, people, print_json, refuse, run_async, settings_or_refusal
from guichet.observability import configure_logs, log
from guichet.settings import Settings, SettingsError
from guichet.storage import migrate as schema
from guichet.worker import Worker

#: How long requests that were accepted may finish when the service stops, in seconds.
GRACE: Final = 1


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: `guichet serve --host 0.0.0.0 --port 8000`")(serve)
    app.command(epilog="Example: `guichet worker`")(worker)
    app.command(epilog="Example: `GUICHET_DATABASE_URL=postgresql://… guichet migrate`")(migrate)


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)] = 8000,
    no_worker: Annotated[bool, typer.Option("--no-worker", help="Leave the loops to `guichet worker`.")] = False,
) -> None:
    """Serve the API, the hosted pages and, unless told otherwise, the worker, in one process."""
    start(settings_or_refusal(), host, port, with_worker=not no_worker)


def start(
    settings: Settings,
    host: str,
    port: int,
    *,
    with_worker: bool,
    before: Callable[[Service], Awaitable[None]] | None = None,
) -> None:
    """Serves until it is told to stop; `before` runs once everything is open."""
    configure_logs(settings.log_level, machine_readable=not settings.development)

    async def main() -> None:
        async with _opened(settings) as opened:
            if before:
                await before(opened)
            running = opened.worker() if with_worker else None
            server = _server(opened, running, host, port)
            _on_stop(server.handle_exit)
            if running:
                running.start()
            try:
                await server.serve()
            finally:
                if running:
                    await running.stop()

    _run(main)


def worker() -> None:
    """Run the loops alone: ask operators, disburse refunds, deliver webhooks."""
    settings = settings_or_refusal()
    configure_logs(settings.log_level, machine_readable=not settings.development)

    async def main() -> None:
        async with _opened(settings) as opened:
            stopped = asyncio.Event()
            _on_stop(lambda *_: stopped.set())
            running = opened.worker()
            running.start()
            log.info("worker.started")
            await stopped.wait()
            await running.stop()

    _run(main)


def migrate(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Bring the database schema up to date. Harmless when it already is."""
    settings = settings_or_refusal()
    with errors.status("Migrating…"):
        before, after = run_async(schema.upgrade(settings))
    if as_json:
        print_json({"from": before, "to": after})
    elif before == after:
        people.print(f"The schema is up to date ({after}).")
    else:
        people.print(f"The schema went from {before or 'nothing'} to {after}.")


class _Server(uvicorn.Server):
    """Signals are ours: the worker and the database are closed after the last request, not before."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _server(opened: Service, running: Worker | None, host: str, port: int) -> _Server:
    config = uvicorn.Config(
        application(opened, running),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=GRACE,
    )
    return _Server(config)


def _on_stop(stop: Callable[[int, None], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number, None)


def _run(main: Callable[[], Awaitable[None]]) -> None:
    async def wrapped() -> None:
        await main()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(wrapped())
        except SettingsError as error:
            refuse(str(error))
        except OSError as error:
            refuse(f"Cannot start: {error}")


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[Service]:
    async with AsyncExitStack() as stack:
        if settings.embedded:
            stack.enter_context(_only_process(settings))
        await ensure_schema(settings)
        yield await stack.enter_async_context(service(settings))


@contextmanager
def _only_process(settings: Settings) -> Iterator[None]:
    """SQLite has one server process; a second one is told what to use instead."""
    settings.sqlite_path.parent.mkdir(parents=True, exist_ok=True)
    with settings.sqlite_path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SettingsError(
                "Another Guichet process already serves this embedded database. "
                "Several processes need PostgreSQL: set GUICHET_DATABASE_URL."
            ) from None
        yield
