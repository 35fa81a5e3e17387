"""What every command shares: one open service, refusals with exit code 1, tables for people, JSON for programs."""

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from guichet.bootstrap import Service, ensure_schema, service
from guichet.clock import Instant, iso
from guichet.db.engine import Reader, StorageError
from guichet.db.migrate import DatabaseUnusable, DevelopmentDatabase, SchemaUnknown
from guichet.domain.merchants import Merchant
from guichet.logs import configure_logs
from guichet.merchants import repository as merchants
from guichet.merchants.vault import UnreadableSecret
from guichet.providers.providers_file import NO_PROVIDERS, ProvidersConfig
from guichet.schemas.json_output import encode
from guichet.server.errors import StartupError
from guichet.settings import Settings, SettingsError, load

T = TypeVar("T")

#: Wide enough for any table when nobody's terminal says otherwise, so that a pipe receives whole lines.
_PIPE_WIDTH: Final = 200

people = Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)
errors = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
#: Ids are 64-bit in both databases; anything else was mistyped.
_MAX_ID: Final = 2**63 - 1


def row_id(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and 1 <= int(text) <= _MAX_ID):
        raise typer.BadParameter(f"{text!r} is not an id: a whole number from 1 is expected.")
    return int(text)


MerchantId = Annotated[
    int, typer.Argument(parser=row_id, metavar="MERCHANT_ID", help="As `guichet merchant list` shows it.")
]


class CommandError(Exception):
    """One sentence for the person at the keyboard; exit code 1."""


def refuse(sentence: str) -> NoReturn:
    """One sentence on stderr, exit code 1."""
    errors.print(Text.assemble(("✗", "red"), f" {sentence}"))
    raise typer.Exit(1)


def settings_or_refusal() -> Settings:
    try:
        return load()
    except SettingsError as error:
        refuse(str(error))


def run(
    work: Callable[[Service], Awaitable[T]],
    doing: str | None = "Waiting for the database…",
    operators: ProvidersConfig = NO_PROVIDERS,
) -> T:
    """Opens the service, does `work`, closes it; every foreseeable fault is one sentence.

    `doing` is shown while it lasts; None for work that shows its own progress.
    """
    settings = settings_or_refusal()
    configure_logs("warning", machine_readable=not sys.stderr.isatty())

    async def inside() -> T:
        await ensure_schema(settings)
        async with service(settings, operators=operators) as opened:
            return await work(opened)

    with errors.status(doing) if doing else nullcontext():
        return run_async(inside())


def run_async(coroutine: Coroutine[Any, Any, T], runner: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run) -> T:
    try:
        return runner(coroutine)
    except (SettingsError, StartupError, CommandError, DevelopmentDatabase) as error:
        refuse(str(error))
    except UnreadableSecret as error:
        refuse(f"{error}.")
    except SchemaUnknown as error:
        refuse(f"The schema cannot be migrated by this version of Guichet: {error}.")
    except DatabaseUnusable as error:
        refuse(f"The database cannot be used, is GUICHET_DATABASE_URL right? {error}")
    except StorageError as error:
        refuse(f"The database could not do it: {error}.")
    except OSError as error:
        refuse(f"The database cannot be reached, is GUICHET_DATABASE_URL right? {error}")


async def known_merchant(db: Reader, merchant_id: int) -> Merchant:
    return present(await merchants.get(db, merchant_id), "merchant", merchant_id)


def present(found: T | None, noun: str, number: int) -> T:
    """Refuses an id that nobody has."""
    if found is None:
        raise CommandError(f"There is no {noun} with the id {number}.")
    return found


def date(instant: Instant | None) -> str | None:
    return None if instant is None else iso(instant)


def this_command() -> str:
    """How the running command can be typed again in the same shell."""
    started = Path(sys.argv[0])
    if started.name == "__main__.py":
        return f"{sys.executable} -m guichet"
    return started.name if shutil.which(started.name) == str(started) else str(started)


def print_json(value: object) -> None:
    """One JSON object on stdout and nothing else."""
    sys.stdout.write(encode(value).decode() + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    table = Table(*columns, header_style="bold")
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    people.print(table)
