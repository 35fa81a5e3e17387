"""Every GUICHET_* variable: its default, unit and meaning. Nothing else reads the environment for configuration.

A wrong value stops the start with one sentence that names the variable (`SettingsError`).
`docs/admin-guide.md` repeats this table; a test holds it to `VARIABLES`.
"""

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from cryptography.fernet import Fernet

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Profile = Literal["development", "production"]

#: What a bearer token may hold, and enough of it not to be guessed.
_TOKEN: Final = re.compile(r"[!-~]{16,}")
#: A hundred years: anything above was mistyped.
MOST_DAYS: Final = 36_500
DEFAULT_PUBLIC_URL: Final = "http://127.0.0.1:8000"


class SettingsError(Exception):
    """One sentence for the person who starts the service; it names the variable."""


@dataclass(frozen=True, slots=True)
class Settings:
    home: Path
    database_url: str
    pgbouncer: bool
    listen_url: str | None
    public_url: str
    profile: Profile
    redis_url: str | None
    rate_limit: int
    page_rate_limit: int
    trusted_proxies: tuple[Network, ...]
    secret_keys: tuple[str, ...]
    egress_allow: tuple[Network, ...]
    egress_ca_file: Path | None
    catalogue_file: Path | None
    providers_file: Path | None
    allow_simulator: bool
    keep_deliveries_days: int
    keep_logs_days: int
    log_level: str
    metrics_port: int | None
    metrics_host: str
    metrics_token: str | None
    otlp_endpoint: str | None

    @property
    def development(self) -> bool:
        return self.profile == "development"

    @property
    def embedded(self) -> bool:
        """SQLite in the data folder rather than PostgreSQL."""
        return self.database_url.startswith("sqlite:")

    @property
    def sqlite_path(self) -> Path:
        return Path(self.database_url.removeprefix("sqlite:///"))


def _text(raw: str) -> str:
    return raw


def _path(raw: str) -> Path:
    return Path(raw).expanduser().resolve()


def _folder(raw: str) -> Path:
    """Need not exist yet, but it must be possible to make it and to write in it."""
    path = _path(raw)
    nearest = next(each for each in (path, *path.parents) if each.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise ValueError(f"{nearest} is not a folder that can be written in")
    return path


def _existing_file(raw: str) -> Path:
    path = _path(raw)
    if not os.access(path, os.R_OK) or not path.is_file():
        raise ValueError(f"the file {raw} does not exist, or this user may not read it")
    return path


def _database_url(raw: str) -> str:
    if raw.startswith("postgres://"):
        raw = "postgresql://" + raw.removeprefix("postgres://")
    if not raw.startswith(("postgresql://", "sqlite:///")):
        raise ValueError("must start with postgresql:// (or sqlite:///)")
    return raw


def _postgresql_url(raw: str) -> str:
    url = _database_url(raw)
    if not url.startswith("postgresql://"):
        raise ValueError("must start with postgresql://")
    return url


def _url(raw: str) -> str:
    parts = urlsplit(raw)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be an http or https address without a query, such as https://pay.example.com")
    return raw.rstrip("/")


def _choice(*allowed: str) -> Callable[[str], str]:
    def parse(raw: str) -> str:
        if raw not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return raw

    return parse


def _count(raw: str) -> int:
    if not raw.isascii() or not raw.isdigit():
        raise ValueError("must be a whole number, 0 or more")
    return int(raw)


def _days(raw: str) -> int:
    if not raw.isascii() or not raw.isdigit() or int(raw) > MOST_DAYS:
        raise ValueError(f"must be a whole number of days, 0 to {MOST_DAYS}")
    return int(raw)


def _port(raw: str) -> int:
    if not raw.isascii() or not raw.isdigit() or not 1 <= int(raw) <= 65535:
        raise ValueError("must be a port, 1 to 65535")
    return int(raw)


def _address(raw: str) -> str:
    return str(ipaddress.ip_address(raw))


def _token(raw: str) -> str:
    if not _TOKEN.fullmatch(raw):
        raise ValueError("must be at least 16 characters, and none of them a space or outside ASCII")
    return raw


def _redis_url(raw: str) -> str:
    if not raw.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("must start with redis://, rediss:// or unix://")
    return raw


def _flag(raw: str) -> bool:
    if raw.lower() not in ("yes", "no"):
        raise ValueError("must be yes or no")
    return raw.lower() == "yes"


def _networks(raw: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(part.strip()) for part in raw.split(",") if part.strip())


def _fernet_keys(raw: str) -> tuple[str, ...]:
    keys = tuple(part.strip() for part in raw.split(",") if part.strip())
    for key in keys:
        try:
            Fernet(key)
        except ValueError:
            raise ValueError("each key must be 32 bytes in URL-safe base64 (`guichet secret-key` makes one)") from None
    return keys


@dataclass(frozen=True, slots=True)
class Variable:
    """`default` is the text used when the variable is unset or empty; None means "no value"."""

    name: str
    parse: Callable[[str], Any]
    default: str | None
    meaning: str


VARIABLES: Final = (
    Variable("GUICHET_HOME", _folder, "./var", "Data folder: the embedded database, development keys."),
    Variable(
        "GUICHET_DATABASE_URL",
        _database_url,
        None,
        "`postgresql://user:password@host/name`. Unset: an embedded SQLite file in `GUICHET_HOME` (one host).",
    ),
    Variable(
        "GUICHET_PGBOUNCER",
        _flag,
        "no",
        "`yes`: `GUICHET_DATABASE_URL` leads to PgBouncer in transaction mode; no prepared statement outlives its "
        "transaction, and workers look for work once a second unless `GUICHET_LISTEN_URL` is set.",
    ),
    Variable(
        "GUICHET_LISTEN_URL",
        _postgresql_url,
        None,
        "`postgresql://user:password@host/name`, past PgBouncer: one connection of each process with loops, by which "
        "other processes wake them at once. Unset: `GUICHET_DATABASE_URL`, without PgBouncer.",
    ),
    Variable(
        "GUICHET_PUBLIC_URL",
        _url,
        DEFAULT_PUBLIC_URL,
        "Address under which customers and merchants reach the service; hosted pages and links start with it.",
    ),
    Variable(
        "GUICHET_PROFILE",
        _choice("development", "production"),
        "development",
        "`development`: demo merchant, loopback webhooks, simulated operators. `production`: refuses to start without "
        "`GUICHET_SECRET_KEYS` and an https `GUICHET_PUBLIC_URL`.",
    ),
    Variable(
        "GUICHET_REDIS_URL",
        _redis_url,
        None,
        "`redis://host:6379/0`: counts the rate limit across processes. Unset, or away: each process counts for "
        "itself.",
    ),
    Variable("GUICHET_RATE_LIMIT", _count, "120", "API requests a minute for one client address; 0 switches it off."),
    Variable(
        "GUICHET_PAGE_RATE_LIMIT",
        _count,
        "60",
        "Unknown hosted pages that one client address may ask for in a minute before it is refused any; known pages "
        "may be asked for twenty times as often, since whole networks share an address. 0 switches both off.",
    ),
    Variable(
        "GUICHET_TRUSTED_PROXIES",
        _networks,
        "",
        "Networks (comma-separated) of reverse proxies whose `X-Forwarded-For` is believed.",
    ),
    Variable(
        "GUICHET_SECRET_KEYS",
        _fernet_keys,
        "",
        "Encryption keys for secrets at rest, newest first, comma-separated. Development makes one in `GUICHET_HOME`.",
    ),
    Variable(
        "GUICHET_EGRESS_ALLOW",
        _networks,
        "",
        "Networks (comma-separated) that webhooks may also reach, besides public.",
    ),
    Variable(
        "GUICHET_EGRESS_CA_FILE",
        _existing_file,
        None,
        "PEM file of certificate authorities trusted besides the system's.",
    ),
    Variable(
        "GUICHET_CATALOGUE_FILE",
        _existing_file,
        None,
        "Payment modes and fees in place of the packaged `catalogue.toml`.",
    ),
    Variable(
        "GUICHET_PROVIDERS_FILE",
        _existing_file,
        None,
        "TOML file of operator connections and routes. Unset: the simulator in development, no operator in production.",
    ),
    Variable(
        "GUICHET_ALLOW_SIMULATOR",
        _flag,
        "no",
        "`yes` lets the production profile serve the operators' simulator and route live payments to it (rehearsals).",
    ),
    Variable(
        "GUICHET_KEEP_DELIVERIES_DAYS",
        _days,
        "90",
        "Days that webhook deliveries are kept once they were delivered or given up; 0 keeps them for ever.",
    ),
    Variable(
        "GUICHET_KEEP_LOGS_DAYS",
        _days,
        "365",
        "Days that closed incidents and operators' notifications that match nothing are kept; 0 keeps them for ever.",
    ),
    Variable("GUICHET_LOG_LEVEL", _choice("debug", "info", "warning", "error"), "info", "Least severe level logged."),
    Variable(
        "GUICHET_METRICS_PORT",
        _port,
        None,
        "Port of `/metrics` for Prometheus, apart from the service; with `--workers N` the first of N. Unset: see "
        "`GUICHET_METRICS_TOKEN`.",
    ),
    Variable(
        "GUICHET_METRICS_HOST",
        _address,
        "127.0.0.1",
        "IP address that `GUICHET_METRICS_PORT` listens on; `0.0.0.0` lets other machines scrape it.",
    ),
    Variable(
        "GUICHET_METRICS_TOKEN",
        _token,
        None,
        "Bearer token that `/metrics` asks for, 16 characters or more; without `GUICHET_METRICS_PORT` it opens "
        "`/metrics` on the service's own port. Neither set: no metrics.",
    ),
    Variable(
        "GUICHET_OTLP_ENDPOINT",
        _url,
        None,
        "`http://127.0.0.1:4318`: base address of an OpenTelemetry collector that takes OTLP over HTTP; traces go to "
        "its `/v1/traces`. Needs `make tracing`. Unset: no traces.",
    ),
)


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process; raises SettingsError on the first wrong value."""
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    for variable in VARIABLES:
        raw = environ.get(variable.name) or variable.default
        try:
            value = None if raw is None else variable.parse(raw)
        except ValueError as error:
            raise SettingsError(f"{variable.name} is wrong: {error}.") from None
        values[variable.name.removeprefix("GUICHET_").lower()] = value
    if values["database_url"] is None:
        values["database_url"] = f"sqlite:///{values['home'] / 'guichet.db'}"
    if not values["secret_keys"]:
        values["secret_keys"] = ()
    settings = Settings(**values)
    if settings.profile == "production":
        _check_production(settings)
    return settings


def _check_production(settings: Settings) -> None:
    if not settings.secret_keys:
        raise SettingsError("GUICHET_SECRET_KEYS is required in production; `guichet secret-key` makes a key.")
    if not settings.public_url.startswith("https://"):
        raise SettingsError("GUICHET_PUBLIC_URL must be an https address in production.")


def with_development_key(settings: Settings) -> Settings:
    """Development without keys: one is made once in the data folder, readable by its owner only."""
    if settings.secret_keys or settings.profile == "production":
        return settings
    settings.home.mkdir(parents=True, exist_ok=True)
    path = settings.home / "secret.key"
    if not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(Fernet.generate_key())
    return replace(settings, secret_keys=(path.read_text().strip(),))
