"""`guichet check-config`: whether a server could start with this environment, and would work.

Each check asks the thing itself: it connects to the database and writes one row, it reads the files. No line ever shows
a secret.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer

from guichet import __version__
from guichet.bootstrap import refuse_real_providers, usable_providers
from guichet.cli.arguments import Json
from guichet.cli.check_config_services import database, listen_address, redis, secret_keys
from guichet.cli.check_config_tls import certificate
from guichet.cli.console import error_console
from guichet.cli.doctor_check import report
from guichet.cli.errors import fail
from guichet.cli.runner import run_async
from guichet.clock import SystemClock
from guichet.logs import configure_logs
from guichet.merchants.catalogue_file import load_catalogue
from guichet.server.doctor.check import Check
from guichet.server.doctor.storage import file_modes
from guichet.server.http_server import Tls
from guichet.settings import Settings, SettingsError, faults, load

_NOT_CHECKED: Final = "the rest was not checked: correct the settings first"


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: `guichet check-config --ssl-certfile fullchain.pem --ssl-keyfile key.pem`")(
        check_config
    )


def check_config(
    ssl_certfile: Annotated[
        Path | None, typer.Option(help="PEM file: the certificate that `guichet serve` gets, with its chain.")
    ] = None,
    ssl_keyfile: Annotated[
        Path | None, typer.Option(help="PEM file: the certificate's key, unless it is in the same file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check the environment before a server uses it: every setting, names that are no settings, the providers' file,
    the database, Redis, certificates, encryption keys. It writes one row to the database and changes nothing else.

    Exit code 1 when there is a problem.
    """
    if ssl_keyfile is not None and ssl_certfile is None:
        fail("--ssl-keyfile belongs to an --ssl-certfile.")
    if wrong := faults():
        report([Check("settings", [*wrong, _NOT_CHECKED])], as_json=as_json)
    configure_logs("warning", machine_readable=not sys.stderr.isatty())
    settings = load()
    tls = Tls(ssl_certfile, ssl_keyfile) if ssl_certfile else None
    with error_console.status("Checking…"):
        checks = [*_files(settings, tls), *run_async(_services(settings))]
    report(checks, as_json=as_json)


def _files(settings: Settings, tls: Tls | None) -> list[Check]:
    """What this machine alone can tell."""
    found = [
        _check("settings", lambda: _settings(settings)),
        _check("payment modes", lambda: f"{len(load_catalogue(settings.catalogue_file).modes)} modes"),
        _check("providers", lambda: _providers(settings)),
        file_modes(settings),
    ]
    if isinstance(settings.ledger_heads, Path):
        found.append(_heads_file(settings.ledger_heads))
    if tls is not None:
        found.append(certificate(tls, settings, SystemClock().now()))
    return found


async def _services(settings: Settings) -> list[Check]:
    """What others must answer. Each has its own time limit."""
    found = [await database(settings)]
    if not found[0].problems:
        found.append(await secret_keys(settings))
    if settings.listen_url is not None:
        found.append(await listen_address(settings.listen_url))
    if settings.redis_url is not None:
        found.append(await redis(settings.redis_url))
    return found


def _check(name: str, work: Callable[[], str]) -> Check:
    """`work` returns the note, or raises the problem."""
    try:
        return Check(name, [], note=work())
    except (SettingsError, ValueError, OSError) as error:
        return Check(name, [str(error)])


def _settings(settings: Settings) -> str:
    refuse_real_providers(settings)
    return f"Guichet {__version__}, {settings.profile} profile, {settings.public_url}"


def _providers(settings: Settings) -> str:
    """No account is called: `guichet providers check` does that."""
    providers = asyncio.run(usable_providers(settings))
    if not providers.accounts:
        return "none, live payments are refused (GUICHET_PROVIDERS_FILE is not set)"
    return f"{len(providers.accounts)} accounts, {len(providers.routes)} routes"


def _heads_file(file: Path) -> Check:
    place = file if file.exists() else file.parent
    problems = [] if os.access(place, os.W_OK) else [f"GUICHET_LEDGER_HEADS: this user may not write {place}"]
    return Check("published heads", problems, note=str(file))
