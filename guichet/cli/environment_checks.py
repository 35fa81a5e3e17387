"""What `guichet check-config` says of an environment in which a server would start, and would lose something later."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import asyncpg

from guichet.db.engine import Database, require
from guichet.db.errors import StorageError
from guichet.db.postgres.address import read_address
from guichet.db.postgres.connection import keeps_statements
from guichet.db.postgres.hosts import PostgresHosts
from guichet.db.tables import audit_log, metadata, postings
from guichet.provider_accounts import usable_providers
from guichet.server.doctor.check import Check
from guichet.server.doctor.providers import pending_accounts
from guichet.settings import Settings

#: Where docs/operations/systemd.md puts the settings and secrets.
ENVIRONMENT_FILE: Final = Path("/etc/guichet/guichet.env")
#: Guichet only adds to them, so a careful administrator may have taken the rest away.
_ONLY_ADDED_TO: Final = {audit_log.name, postings.name}
_ENCRYPTED: Final = {"require", "verify-ca", "verify-full"}
_ROLE: Final = "SELECT current_user, rolsuper, pg_backend_pid() FROM pg_roles WHERE rolname = current_user"
_MISSING_RIGHTS: Final = """SELECT privilege || ' on ' || name
FROM unnest($1::text[], $2::text[]) AS needed(name, privilege)
WHERE NOT has_table_privilege('public.' || name, privilege) ORDER BY name, privilege"""


def public_address(settings: Settings) -> Iterator[str]:
    """What is wrong with a production profile's GUICHET_PUBLIC_URL, or with a development profile's environment."""
    address = settings.public_url
    if settings.development:
        if not is_local(urlsplit(address).hostname) or _remote_hosts(settings.database_url):
            yield (
                f"GUICHET_PROFILE is development, with {address} and {settings.database_address}: live payments go to "
                "the simulator and move no money. Set GUICHET_PROFILE=production"
            )
    elif is_local(urlsplit(address).hostname):
        yield f"GUICHET_PUBLIC_URL is {address}: providers' callbacks and customers come from other machines"


def is_local(host: str | None) -> bool:
    with suppress(ValueError):
        return ip_address(host or "").is_loopback
    return host is None or host == "localhost" or host.endswith(".localhost")


def encryption(settings: Settings) -> Iterator[str]:
    """Connections to PostgreSQL on another machine that anybody on the way may read."""
    for name, url in (("GUICHET_DATABASE_URL", settings.database_url), ("GUICHET_LISTEN_URL", settings.listen_url)):
        if url is None or settings.development or not (hosts := _remote_hosts(url)):
            continue
        mode = parse_qs(urlsplit(url).query).get("sslmode", [os.environ.get("PGSSLMODE", "")])[0]
        if mode not in _ENCRYPTED:
            parameter = f"sslmode={mode}" if mode else "no sslmode"
            yield f"{name} has {parameter}, so the way to {', '.join(hosts)} may be read: use sslmode=verify-full"


def _remote_hosts(url: str) -> list[str]:
    """Of a PostgreSQL address, the hosts that are other machines; none for the embedded database."""
    if not url.startswith(("postgresql:", "postgres:")):
        return []
    hosts = [host.address for host in read_address(url, bouncer=True).hosts]
    return [host for host in hosts if not host.startswith("/") and not is_local(host)]


def readable_secrets(files: Iterable[Path | None]) -> Check:
    """Files with secrets that every user of this machine may read. Their group may: it is the service's."""
    problems = []
    for file in files:
        with suppress(OSError):  # Not there, or in a folder that is closed to us.
            if file is not None and (mode := stat.S_IMODE(file.stat().st_mode)) & stat.S_IRWXO:
                problems.append(f"{file} has mode {mode:04o}, so others may read its secrets: `chmod o= {file}`")
    return Check("secrets in files", problems)


async def database_role(settings: Settings) -> Check | None:
    """Whether the role of a PostgreSQL may do what Guichet does and not everything, and whether PgBouncer stands where
    the settings say so. None where nobody can tell: the check of the database says why."""
    problems, warnings = [], []
    tables = [table for table in metadata.tables if table != "alembic_version"]
    needed = [(table, right) for table in tables for right in ("SELECT", "INSERT")]
    needed += [(table, right) for table in tables if table not in _ONLY_ADDED_TO for right in ("UPDATE", "DELETE")]
    try:
        connection = await PostgresHosts.of(settings).connect(statement_cache_size=0)
        try:
            async with connection.transaction():
                role, is_superuser, server_pid = require(await connection.fetchrow(_ROLE))
                missing = await connection.fetch(_MISSING_RIGHTS, *map(list, zip(*needed, strict=True)))
            # PostgreSQL tells a new connection its process; PgBouncer tells a number of its own.
            is_bouncer = connection.get_server_pid() != server_pid
            keeps = is_bouncer and await keeps_statements(connection)
        finally:
            await connection.close()
    except (StorageError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
        return None
    if missing:
        rights = ", ".join(right for (right,) in missing[:5]) + (f" and {len(missing) - 5} more" if missing[5:] else "")
        problems.append(f"the role {role} has not: {rights}. Let it own the tables, or grant them")
    if is_superuser:
        warnings.append(f"the role {role} is a superuser: who gets its password has the whole server (roles.sql)")
    if settings.pgbouncer and not is_bouncer:
        problems.append("GUICHET_PGBOUNCER is yes, but GUICHET_DATABASE_URL leads to PostgreSQL and to no PgBouncer")
    elif is_bouncer and not settings.pgbouncer:
        problems.append("GUICHET_DATABASE_URL leads to PgBouncer: set GUICHET_PGBOUNCER=yes and GUICHET_LISTEN_URL")
    kept = f", PgBouncer keeps {'' if keeps else 'no '}prepared statements" if is_bouncer else ""
    return Check("database role", problems, note=f"{role}{kept}", warnings=warnings)


async def accounts_in_use(settings: Settings, db: Database) -> Check:
    """Whether every account over which a payment or refund is pending is in the providers' file."""
    known = (await usable_providers(settings)).accounts
    return Check(
        "accounts in use",
        [
            f"{count} live payments and refunds are pending over {account}, which is not in the providers' file: "
            "nobody asks about them. Was it renamed? Give it back its name"
            for account, count in await pending_accounts(db)
            if account not in known
        ],
    )
