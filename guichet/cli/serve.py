"""`guichet serve`: its options, and the parent of `--workers`. What a process serves is in `serve_process.py`."""

from pathlib import Path
from typing import Annotated

import typer

from guichet.bootstrap import ensure_schema, open_database
from guichet.cli.errors import fail
from guichet.cli.process import Grace, begin_process, check_files
from guichet.cli.runner import load_settings, run_async
from guichet.cli.serve_process import Listen, serve_process
from guichet.clock import SystemClock
from guichet.db.sqlite.lock import lock_database
from guichet.server.http_server import GRACE, ServerOptions, Tls
from guichet.server.metrics_port import check_metrics_ports
from guichet.server.processes import STOP_TIMEOUT, supervise
from guichet.settings import Settings, with_development_key
from guichet.webhooks.lease_release import release_webhooks

app = typer.Typer()


@app.command(epilog="Example: `guichet serve --host 0.0.0.0 --port 8000`")
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
    begin_process(settings)
    options = listen.options

    async def main() -> None:
        await check_files(settings, options.tls)
        check_metrics_ports(settings, workers)
        await ensure_schema(settings, create=True)
        with lock_database(settings) as is_alone, listen.open() as listener:
            if is_alone:
                async with open_database(settings) as db:
                    await release_webhooks(db, SystemClock().now())
            with_development_key(settings)  # Two processes would both make one.
            timeout = STOP_TIMEOUT - GRACE + options.grace + options.drain
            await supervise(listener, workers, ["serve", *arguments, *options.arguments], timeout)

    run_async(main())
