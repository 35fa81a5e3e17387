"""`/metrics` on a port of its own, beside whatever this process serves; each process of a machine has one."""

import errno
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

import uvicorn
from starlette.types import ASGIApp

from guichet.context import AppContext
from guichet.server.errors import StartupError
from guichet.settings import Settings


@asynccontextmanager
async def metrics_port(ctx: AppContext, number: int = 1) -> AsyncIterator[None]:
    """Serves until the block ends; nothing without `GUICHET_METRICS_PORT`.

    `number`: which process of `--workers` this is, from 1; the next ports belong to the next processes.
    """
    with _listening(ctx.settings, number) as listening:
        if listening is None:
            yield
            return
        config = uvicorn.Config(
            _exposition(ctx),
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            lifespan="off",
            ws="none",
        )
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listening])
        try:
            yield
        finally:  # Nobody loses money with a scrape: it is not waited for.
            for each in server.servers:
                each.close()
            for connection in list(server.server_state.connections):
                connection.shutdown()


def _exposition(ctx: AppContext) -> ASGIApp:
    from guichet.server.error_handler import application  # noqa: PLC0415 - `guichet --help` does without
    from guichet.server.metrics_endpoint import routes  # noqa: PLC0415

    return application(routes(ctx))


def check_metrics_ports(settings: Settings, workers: int) -> None:
    """Refuses what the processes of `--workers` would each refuse for themselves, and what would mislead."""
    if settings.metrics_port is None and settings.metrics_token is not None:
        raise StartupError(
            "With --workers, GUICHET_METRICS_TOKEN alone would show one process at random: set GUICHET_METRICS_PORT."
        )
    for number in range(1, workers + 1):
        with _listening(settings, number):
            """Free."""


def _listening(settings: Settings, number: int) -> "socket.socket | nullcontext[None]":
    if settings.metrics_port is None:
        return nullcontext()
    port = settings.metrics_port + number - 1
    family = socket.AF_INET6 if ":" in settings.metrics_host else socket.AF_INET
    try:
        return socket.create_server((settings.metrics_host, port), family=family)
    except (OSError, OverflowError) as error:
        taken = getattr(error, "errno", None) == errno.EADDRINUSE
        why = "it is already in use" if taken else str(getattr(error, "strerror", error))
        raise StartupError(
            f"GUICHET_METRICS_PORT: cannot listen on {settings.metrics_host}, port {port}: {why}."
        ) from None
