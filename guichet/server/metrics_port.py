"""`/metrics` on a port of its own. Each process of a machine has one."""

import errno
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

from starlette.types import ASGIApp

from guichet.context import AppContext
from guichet.server.errors import StartupError
from guichet.server.http_server import Server
from guichet.settings import Settings


@asynccontextmanager
async def metrics_port(ctx: AppContext, number: int = 1) -> AsyncIterator[None]:
    """Serves `/metrics` until the block ends; does nothing if `GUICHET_METRICS_PORT` is not set.

    `number`: which process of `--workers` this is, from 1; each process has the port after that of the one before.
    """
    with _bind(ctx.settings, number) as listener:
        if listener is None:
            yield
            return
        server = Server(_metrics_app(ctx))
        await server.startup([listener])
        try:
            yield
        finally:  # Does not wait for a scrape that is under way: Prometheus asks again.
            for bound in server.servers:
                bound.close()
            for connection in list(server.server_state.connections):
                connection.shutdown()
            for bound in server.servers:
                await bound.wait_closed()


def _metrics_app(ctx: AppContext) -> ASGIApp:
    from guichet.server.error_handler import application  # noqa: PLC0415 - `guichet --help` does not need it
    from guichet.server.metrics_endpoint import routes  # noqa: PLC0415

    return application(routes(ctx))


def check_metrics_ports(settings: Settings, workers: int) -> None:
    """Raises StartupError for settings that no process of `--workers` could start with, or that would mislead."""
    if settings.metrics_port is None and settings.metrics_token is not None:
        raise StartupError(
            "With --workers, GUICHET_METRICS_TOKEN alone would show one process at random: set GUICHET_METRICS_PORT."
        )
    for number in range(1, workers + 1):
        with _bind(settings, number):
            pass  # The port is free.


def _bind(settings: Settings, number: int) -> "socket.socket | nullcontext[None]":
    if settings.metrics_port is None:
        return nullcontext()
    port = settings.metrics_port + number - 1
    family = socket.AF_INET6 if ":" in settings.metrics_host else socket.AF_INET
    try:
        return socket.create_server((settings.metrics_host, port), family=family)
    except (OSError, OverflowError) as error:
        in_use = getattr(error, "errno", None) == errno.EADDRINUSE
        reason = "it is already in use" if in_use else str(getattr(error, "strerror", error))
        raise StartupError(
            f"GUICHET_METRICS_PORT: cannot listen on {settings.metrics_host}, port {port}: {reason}."
        ) from None
