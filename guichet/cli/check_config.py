"""`guichet check-config`: whether a server could start with this environment, and would work.

Each check asks the thing itself: it connects to the database and writes one row, it reads the files. No line ever shows
a secret.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

import asyncpg
import typer
from cryptography import x509
from redis.exceptions import RedisError

from guichet import __version__
from guichet.bootstrap import open_database
from guichet.cli.arguments import Json
from guichet.cli.console import error_console
from guichet.cli.doctor import report
from guichet.cli.environment_checks import (
    ENVIRONMENT_FILE,
    accounts_in_use,
    database_role,
    encryption,
    public_address,
    readable_secrets,
)
from guichet.cli.errors import fail
from guichet.cli.runner import run_async
from guichet.clock import DAY, Instant, SystemClock, from_datetime, iso
from guichet.db.encrypted_columns import encrypted_texts
from guichet.db.errors import StorageError
from guichet.db.schema import check_schema
from guichet.db.write_probe import WriteProbe
from guichet.logs import configure_logs
from guichet.merchants.catalogue_file import load_catalogue
from guichet.merchants.vault import UnreadableSecret, Vault
from guichet.provider_accounts import refuse_real_providers, usable_providers
from guichet.server.doctor.check import Check, age
from guichet.server.doctor.storage import file_modes
from guichet.server.errors import StartupError
from guichet.server.http_server import Tls
from guichet.server.redis_windows import connected
from guichet.settings import Settings, SettingsError, faults, load, with_development_key
from guichet.settings.parsers import shown_address

#: Seconds that each service has to answer.
_TIMEOUT: Final = 10.0


async def database(settings: Settings) -> Check:
    """Whether it answers, has a schema that this version can use, and takes a write."""
    address = settings.database_address
    try:
        async with asyncio.timeout(_TIMEOUT):
            revision = await check_schema(settings)
            async with open_database(settings) as db:
                probe = WriteProbe(db, SystemClock(), settings.sqlite_path.parent if settings.embedded else None, None)
                fault = await probe.fault()
                await probe.close()
    except TimeoutError:
        return Check("database", [f"it did not answer within {_TIMEOUT:g} s"], note=address)
    except (StorageError, OSError) as error:
        return Check("database", [str(error)], note=address)
    rows: list[dict[str, object]] = [{"address": address, "schema": revision}]
    return Check(
        "database", [f"nothing can be written: {fault}"] if fault else [], rows, f"{address}, schema {revision}"
    )


async def secret_keys(settings: Settings) -> Check:
    """Whether GUICHET_SECRET_KEYS reads every secret that the database holds."""
    if not settings.secret_keys and not (settings.home / "secret.key").exists():
        return Check("secret keys", [], note="one is made at the first start (development)")
    try:
        keys = with_development_key(settings).secret_keys
    except SettingsError as error:
        return Check("secret keys", [str(error)])
    vault, unreadable = Vault(keys), []
    async with open_database(settings) as db:
        secrets = [text async for text in encrypted_texts(db, "webhook_endpoints")]
    for text in secrets:
        try:
            vault.renewed(text.token)
        except UnreadableSecret:
            unreadable.append("merchant {} ({})".format(*text.key))
    problems = [f"no key of GUICHET_SECRET_KEYS reads the webhook secret of {', '.join(unreadable)}"]
    rows: list[dict[str, object]] = [{"keys": len(keys), "secrets": len(secrets), "unreadable": len(unreadable)}]
    return Check("secret keys", problems if unreadable else [], rows, f"{len(keys)}, for {len(secrets)} secrets")


async def listen_address(url: str) -> Check:
    """GUICHET_LISTEN_URL: only a connection can tell whether it is right, and a server would go on without it."""
    try:
        async with asyncio.timeout(_TIMEOUT):
            connection = await asyncpg.connect(url)
            try:
                await connection.execute("LISTEN guichet_check_config")
            finally:
                await connection.close()
    except TimeoutError:
        problem = f"it did not answer within {_TIMEOUT:g} s"
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        problem = str(error)
    else:
        problem = ""
    return Check("wake-ups", [f"GUICHET_LISTEN_URL: {problem}"] if problem else [], note=shown_address(url))


async def redis(url: str) -> Check:
    """A server would go on without it, and each process would count the rate limit alone."""
    parts = urlsplit(url)
    address = f"{parts.hostname or parts.path}{f':{parts.port}' if parts.port else ''}"
    problem = ""
    async with connected(url) as counters:
        try:
            await counters.ping()
        except (RedisError, OSError) as error:
            problem = str(error) or type(error).__name__
    return Check("Redis", [f"GUICHET_REDIS_URL: {problem}"] if problem else [], note=address)


#: A certificate that ends sooner is a problem: whatever renews it has failed for a while.
_TOO_SOON: Final = 14 * DAY


def certificate(tls: Tls, settings: Settings, now: Instant) -> Check:
    """Whether the files are a chain and its key, are valid now and for some days, and name the public address."""
    try:
        tls.check()
        chain = x509.load_pem_x509_certificates(tls.certfile.read_bytes())
    except (StartupError, ValueError, OSError) as error:
        return Check("certificate", [str(error)], note=str(tls.certfile))
    ends = min(from_datetime(cert.not_valid_after_utc) for cert in chain)
    begins = max(from_datetime(cert.not_valid_before_utc) for cert in chain)
    problems = []
    if begins > now:
        problems.append(f"it is not valid before {iso(begins)}")
    if ends <= now:
        problems.append(f"it expired on {iso(ends)}")
    elif ends < now + _TOO_SOON:
        problems.append(f"it expires in {age(now, ends)}, on {iso(ends)}: was it renewed?")
    host = urlsplit(settings.public_url).hostname or ""
    if not settings.development and not _covers(chain[0], host):
        problems.append(f"it does not name {host}, the host of GUICHET_PUBLIC_URL")
    return Check("certificate", problems, [{"expires_at": iso(ends)}], f"{tls.certfile}, until {iso(ends)}")


def _covers(leaf: x509.Certificate, host: str) -> bool:
    """As a client compares them: the whole name, or a `*` in place of its first part (RFC 6125)."""
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    try:
        return ip_address(host) in names.get_values_for_type(x509.IPAddress)
    except ValueError:
        known = [name.lower() for name in names.get_values_for_type(x509.DNSName)]
        return host.lower() in known or f"*.{host.lower().partition('.')[2]}" in known


_NOT_CHECKED: Final = "the rest was not checked: correct the settings first"

app = typer.Typer()


@app.command(epilog="Example: `guichet check-config --ssl-certfile fullchain.pem --ssl-keyfile key.pem`")
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
    problems = [*public_address(settings), *encryption(settings)]
    checks = [
        Check("settings", problems) if problems else _check("settings", lambda: _settings(settings)),
        _check("payment modes", lambda: f"{len(load_catalogue(settings.catalogue_file).modes)} modes"),
        _check("providers", lambda: _providers(settings)),
        file_modes(settings),
    ]
    if not settings.development:
        key = tls.keyfile or tls.certfile if tls else None
        checks.append(readable_secrets([ENVIRONMENT_FILE, settings.providers_file, key]))
    if isinstance(settings.ledger_heads, Path):
        checks.append(_heads_file(settings.ledger_heads))
    if tls is not None:
        checks.append(certificate(tls, settings, SystemClock().now()))
    return checks


async def _services(settings: Settings) -> list[Check]:
    """What others must answer. Each has its own time limit."""
    checks = [await database(settings)]
    if not settings.embedded and (role := await database_role(settings)) is not None:
        checks.append(role)
    if not checks[0].problems:
        checks.append(await secret_keys(settings))
        with suppress(SettingsError, ValueError, OSError):  # Said by the check of the providers.
            async with open_database(settings) as db:
                checks.append(await accounts_in_use(settings, db))
    if settings.listen_url is not None:
        checks.append(await listen_address(settings.listen_url))
    if settings.redis_url is not None:
        checks.append(await redis(settings.redis_url))
    return checks


def _check(name: str, work: Callable[[], str]) -> Check:
    """`work` returns the note, or raises the problem."""
    try:
        return Check(name, [], note=work())
    except (SettingsError, ValueError, OSError) as error:
        return Check(name, [str(error)])


def _settings(settings: Settings) -> str:
    refuse_real_providers(settings)
    simulated = ", live payments go to the simulator" if settings.development and not settings.providers_file else ""
    return f"Guichet {__version__}, {settings.profile} profile{simulated}, {settings.public_url}"


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
