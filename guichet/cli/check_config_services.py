"""The checks of `guichet check-config` that ask a service: the database, its keys, Redis."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

import asyncpg
from redis.exceptions import RedisError

from guichet import bootstrap
from guichet.clock import SystemClock
from guichet.db.engine import Database
from guichet.db.errors import StorageError
from guichet.db.schema import check_schema
from guichet.db.write_probe import WriteProbe
from guichet.merchants import webhook_secrets
from guichet.merchants.vault import UnreadableSecret, Vault
from guichet.server.doctor.check import Check
from guichet.server.redis_windows import connected
from guichet.settings import Settings, SettingsError, with_development_key
from guichet.settings.database_address import shown_address

#: Seconds that each service has to answer.
_TIMEOUT: Final = 10.0


async def database(settings: Settings) -> Check:
    """Whether it answers, has a schema that this version can use, and takes a write."""
    address = settings.database_address
    try:
        async with asyncio.timeout(_TIMEOUT):
            revision = await check_schema(settings)
            async with _open(settings) as db:
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
    async with _open(settings) as db:
        secrets = await webhook_secrets.all_secrets(db)
    for merchant_id, env, secret in secrets:
        try:
            vault.renewed(secret)
        except UnreadableSecret:
            unreadable.append(f"merchant {merchant_id} ({env})")
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


@asynccontextmanager
async def _open(settings: Settings) -> AsyncIterator[Database]:
    db = bootstrap.database(settings)
    await db.open()
    try:
        yield db
    finally:
        await db.close()
