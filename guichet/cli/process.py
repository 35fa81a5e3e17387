"""What `guichet serve` and `guichet worker` share: what is checked before they begin, and their event loop."""

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any

import typer
import uvloop

from guichet import __version__
from guichet.cli.runner import run_async, tighten_files
from guichet.logs import configure_logs, log
from guichet.provider_accounts import usable_providers
from guichet.server.http_server import Tls
from guichet.server.process_tuning import tune_threads
from guichet.settings import Settings

Grace = Annotated[
    int, typer.Option(help="Seconds that requests and jobs under way have to finish at a stop.", min=1, max=300)
]


def begin_process(settings: Settings) -> None:
    configure_logs(settings.log_level, machine_readable=not settings.development)
    tighten_files(settings)
    tune_threads()


async def check_files(settings: Settings, tls: Tls | None = None) -> None:
    """Reads what the settings and options name, before anything is created, and before any process of `--workers`
    starts. Raises SettingsError, StartupError."""
    if tls is not None:
        tls.check()
    await usable_providers(settings)


def run_process(main: Coroutine[Any, Any, None]) -> None:
    """Runs it on uvloop; an expected failure ends the command with one sentence and exit code 1."""
    run_async(main, _run_uvloop)


def complete_start(settings: Settings) -> None:
    """Once the start can no longer fail: logs which version serves which database."""
    log.info("service.opened", version=__version__, database=settings.database_address)


def _run_uvloop(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)
