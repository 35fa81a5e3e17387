"""Runs the work of a command: reads the settings, opens the service, turns expected failures into one sentence."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import nullcontext
from typing import Any, Final, TypeVar

from guichet.bootstrap import ensure_schema, service
from guichet.cli.errors import CommandError, fail
from guichet.context import AppContext
from guichet.db.engine import Reader
from guichet.db.errors import DatabaseUnusable, DiskFull, NoPrimary, StorageError, UnknownSchema, UnusableSchema
from guichet.domain.audit_log import ActRefused
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Merchant
from guichet.domain.refusals import Refusal
from guichet.logs import configure_logs, log
from guichet.merchants.vault import UnreadableSecret
from guichet.private_files import tighten
from guichet.provider_accounts import refuse_real_providers
from guichet.providers.providers_file import NO_PROVIDERS, ProvidersConfig
from guichet.server.errors import StartupError
from guichet.settings import Settings, SettingsError, load

T = TypeVar("T")
_UNREACHABLE: Final = "Does it run there (a full disk stops PostgreSQL), and is GUICHET_DATABASE_URL right?"


def load_settings() -> Settings:
    """The settings of any command; a wrong one, or a profile that does not fit the providers, ends it with one
    sentence."""
    try:
        settings = load()
        refuse_real_providers(settings)
    except SettingsError as error:
        fail(str(error))
    return settings


def run(
    work: Callable[[AppContext], Awaitable[T]],
    message: str | None = "Waiting for the database…",
    providers: ProvidersConfig = NO_PROVIDERS,
    *,
    create: bool = False,
    direct: bool = False,
) -> T:
    """Opens the service, runs `work` and returns its result.

    `message` is shown meanwhile; None for work that shows its own progress. `create`: an embedded database that is not
    there is created in development; whatever only looks or changes something refuses it. `direct`: past PgBouncer where
    possible, for work that must end while every connection of PgBouncer waits.
    """
    from guichet.cli.console import error_console  # noqa: PLC0415 - a server does not wait for it

    settings = load_settings()
    if direct:
        settings = settings.direct
    configure_logs("warning", machine_readable=not sys.stderr.isatty())
    name_database(settings)

    async def main() -> T:
        await ensure_schema(settings, create=create)
        async with service(settings, providers=providers) as opened:
            return await work(opened.ctx)

    with error_console.status(message) if message else nullcontext():
        return run_async(main())


def name_database(settings: Settings) -> None:
    """Says on stderr which database the command is about to use: it may not be the one that was meant."""
    from rich.text import Text  # noqa: PLC0415 - a server does not wait for it

    from guichet.cli.console import error_console  # noqa: PLC0415 - a server does not wait for it

    error_console.print(Text(f"Database: {settings.database_address}", "dim"))


def tighten_files(settings: Settings) -> None:
    """Takes away the rights that others have on files of an earlier version, or that somebody gave them."""
    for path, mode in tighten(settings.private_paths):
        log.warning("files.tightened", path=str(path), mode=f"{mode:04o}")


def run_async(coroutine: Coroutine[Any, Any, T], runner: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run) -> T:
    """Runs a coroutine; an expected failure ends the command with one sentence and exit code 1."""
    try:
        return runner(coroutine)
    except (SettingsError, StartupError, CommandError, ActRefused, UnusableSchema) as error:
        fail(str(error))
    except UnreadableSecret as error:
        fail(f"{error}.")
    except UnknownSchema as error:
        fail(f"The schema is none that this version of Guichet knows: {error}.")
    except DatabaseUnusable as error:
        fail(f"The database cannot be used, is GUICHET_DATABASE_URL right? {error}")
    except DiskFull as error:
        fail(f"The database's disk is full: {error}. Make room, and it goes on by itself (docs/operations/runbook.md).")
    except NoPrimary as error:
        fail(f"The database cannot be reached: {error}. {_UNREACHABLE}")
    except StorageError as error:
        fail(f"The database could not do it: {error}.")
    except OSError as error:
        fail(f"The database cannot be reached: {error}. {_UNREACHABLE}")


async def get_merchant(db: Reader, merchant_id: MerchantId) -> Merchant:
    """Raises ActRefused if there is no such merchant."""
    from guichet.merchants import repository as merchants  # noqa: PLC0415 - a server does not wait for it

    merchant = await merchants.get(db, merchant_id)
    if merchant is None:
        raise ActRefused(Refusal.NO_MERCHANT(merchant=merchant_id))
    return merchant
