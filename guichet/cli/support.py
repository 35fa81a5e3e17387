"""What every command shares: one open service, refusals with exit code 1, tables for people, JSON for programs."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from guichet import wire
from guichet.bootstrap import Service, ensure_schema, service
from guichet.observability import configure_logs
from guichet.settings import Settings, SettingsError, load
from guichet.storage.engine import StorageError

T = TypeVar("T")

people = Console(highlight=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def refuse(sentence: str) -> NoReturn:
    """One sentence on stderr, exit code 1."""
    errors.print(f"[red]✗[/red] {sentence}", markup=True)
    raise typer.Exit(1)


def settings_or_refusal() -> Settings:
    try:
        return load()
    except SettingsError as error:
        refuse(str(error))


def run(work: Callable[[Service], Awaitable[T]]) -> T:
    """Opens the service, does `work`, closes it; every foreseeable fault is one sentence."""
    settings = settings_or_refusal()
    configure_logs("warning", machine_readable=not sys.stderr.isatty())

    async def inside() -> T:
        await ensure_schema(settings)
        async with service(settings) as opened:
            return await work(opened)

    return run_async(inside())


def run_async(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(coroutine)
    except SettingsError as error:
        refuse(str(error))
    except StorageError as error:
        refuse(f"The database could not do it: {error}")
    except OSError as error:
        refuse(f"The database cannot be reached: {error}")


def print_json(value: object) -> None:
    """One JSON object on stdout and nothing else."""
    sys.stdout.write(wire.encode(value).decode() + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    table = Table(*columns, header_style="bold")
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    people.print(table)
