"""Every GUICHET_* variable: its default, unit and meaning. No other module reads settings from the environment.

A wrong value stops the start with one sentence that names the variable (`SettingsError`). docs/admin-guide.md,
"Settings", has the same table; a test compares it with `VARIABLES`.
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

from guichet.private_files import FILE_MODE, make_private_folder, sqlite_files

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Profile = Literal["development", "production"]

#: A bearer token: printable ASCII, long enough that it cannot be guessed.
_TOKEN: Final = re.compile(r"[!-~]{16,}")
#: A hundred years. More is a typing mistake.
MAX_DAYS: Final = 36_500
#: A month. A customer who has not paid by then will not.
MAX_RESERVATION_MINUTES: Final = 30 * 24 * 60
DEFAULT_PUBLIC_URL: Final = "http://127.0.0.1:8000"


class SettingsError(Exception):
    """A wrong setting; the message is one sentence that names the variable. Exit code 1."""


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
    phone_prompts: int
    link_prompts: int
    link_reservation_minutes: int
    trusted_proxies: tuple[Network, ...]
    ipv6_prefix: int
    max_connections: int
    connections_per_address: int
    secret_keys: tuple[str, ...]
    egress_allow: tuple[Network, ...]
    egress_ca_file: Path | None
    catalogue_file: Path | None
    providers_file: Path | None
    allow_simulator: bool
    keep_deliveries_days: int
    keep_incidents_days: int
    ledger_heads: Path | str | None
    ledger_heads_secret: str | None
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
        """Whether the database is SQLite in the data folder, not PostgreSQL."""
        return self.database_url.startswith("sqlite:")

    @property
    def sqlite_path(self) -> Path:
        return Path(self.database_url.removeprefix("sqlite:///"))

    @property
    def private_paths(self) -> list[Path]:
        """The data folder and those of our files that exist: nobody but their owner should be able to read them."""
        databases = [self.home / "simulator.db", *([self.sqlite_path] if self.embedded else [])]
        named = (self.home, self.home / "secret.key", self.home / "demo.json")
        return [
            *(path for path in named if path.exists()),
            *(file for path in databases for file in sqlite_files(path)),
        ]

    def callback_url(self, provider_account: str) -> str:
        """Where a provider may tell us something about this account."""
        return f"{self.public_url}/providers/{provider_account}/callback"


def _text(raw: str) -> str:
    return raw


def _path(raw: str) -> Path:
    return Path(raw).expanduser().resolve()


def _folder(raw: str) -> Path:
    """A folder that exists or can be created, and that can be written in."""
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


def _whole_number(meaning: str, least: int, most: int | None = None) -> Callable[[str], int]:
    """`meaning`: `a whole number of days`, for the sentence about a wrong value."""
    bounds = f"{least} or more" if most is None else f"{least} to {most}"

    def parse(raw: str) -> int:
        if not raw.isascii() or not raw.isdigit() or int(raw) < least or (most is not None and int(raw) > most):
            raise ValueError(f"must be {meaning}, {bounds}")
        return int(raw)

    return parse


_count: Final = _whole_number("a whole number", 0)
_minutes: Final = _whole_number("a whole number of minutes", 1, MAX_RESERVATION_MINUTES)
_ipv6_prefix: Final = _whole_number("a number of bits", 1, 128)
_connections: Final = _whole_number("a number of connections", 1, 1_000_000)
_days: Final = _whole_number("a whole number of days", 0, MAX_DAYS)
_port: Final = _whole_number("a port", 1, 65535)


def _address(raw: str) -> str:
    return str(ipaddress.ip_address(raw))


def _token(raw: str) -> str:
    if not _TOKEN.fullmatch(raw):
        raise ValueError("must be at least 16 characters, and none of them a space or outside ASCII")
    return raw


def _heads_target(raw: str) -> Path | str | None:
    """A file, the https address of a receiver, or None for the log alone."""
    if raw == "log":
        return None
    if raw.startswith("file:"):
        path = Path(raw.removeprefix("file:"))
        if not path.is_absolute() or not path.parent.is_dir() or path.is_dir():
            raise ValueError(f"{raw} must be file: and the absolute path of a file in a folder that exists")
        return path
    parts = urlsplit(raw)
    if parts.scheme != "https" or not parts.hostname or "@" in parts.netloc:
        raise ValueError("must be log, file:/absolute/path or an https address without a user")
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
    """`default`: the text used when the variable is unset or empty; None means no value."""

    name: str
    parse: Callable[[str], Any]
    default: str | None
    meaning: str


VARIABLES: Final = (
    Variable("GUICHET_HOME", _folder, "./var", "Data folder: the embedded database and the development key."),
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
        "`yes`: `GUICHET_DATABASE_URL` is a PgBouncer in transaction mode. No prepared statement outlives its "
        "transaction, and workers look for work once a second unless `GUICHET_LISTEN_URL` is set.",
    ),
    Variable(
        "GUICHET_LISTEN_URL",
        _postgresql_url,
        None,
        "`postgresql://user:password@host/name` without PgBouncer: each process with loops keeps one connection to it, "
        "on which other processes wake it. Unset: `GUICHET_DATABASE_URL`, unless `GUICHET_PGBOUNCER` is `yes`.",
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
        "`development`: demo merchant, loopback webhooks, simulated providers. `production`: refuses to start without "
        "`GUICHET_SECRET_KEYS` and an https `GUICHET_PUBLIC_URL`.",
    ),
    Variable(
        "GUICHET_REDIS_URL",
        _redis_url,
        None,
        "`redis://host:6379/0`: counts the rate limit across processes. Unset or not reachable: each process counts "
        "alone.",
    ),
    Variable("GUICHET_RATE_LIMIT", _count, "120", "API requests a minute for one client address; 0 switches it off."),
    Variable(
        "GUICHET_PAGE_RATE_LIMIT",
        _count,
        "60",
        "Requests a minute for hosted pages that do not exist, for one client address; pages that exist may be "
        "requested twenty times as often, because whole networks share an address. 0 switches both limits off.",
    ),
    Variable(
        "GUICHET_PHONE_PROMPTS",
        _count,
        "3",
        "Payments from links that one telephone number may be asked to confirm within ten minutes without confirming "
        "any, whatever the link and the client address; four times as many within a day. 0 switches both limits off.",
    ),
    Variable(
        "GUICHET_LINK_PROMPTS",
        _count,
        "60",
        "Payments from one link that telephones may be asked to confirm within ten minutes, in addition to those that "
        "succeed: the numbers confirmed and not confirmed may differ by this many. 0 switches the limit off.",
    ),
    Variable(
        "GUICHET_LINK_RESERVATION_MINUTES",
        _minutes,
        "15",
        "Minutes that a pending payment keeps its use of a `limité` link from other customers. If it succeeds later, "
        "it is credited all the same, and the link may be used once more than it allows.",
    ),
    Variable(
        "GUICHET_TRUSTED_PROXIES",
        _networks,
        "",
        "Networks (comma-separated) of reverse proxies whose `X-Forwarded-For` is trusted.",
    ),
    Variable(
        "GUICHET_IPV6_PREFIX",
        _ipv6_prefix,
        "64",
        "Bits of an IPv6 address that are counted as one client address, in every limit; IPv4 is counted as it is.",
    ),
    Variable(
        "GUICHET_MAX_CONNECTIONS",
        _connections,
        "4096",
        "Connections that each process keeps open at most; also not more than three quarters of its file descriptors. "
        "When they are used up, the oldest connection without a full request is closed for a new one.",
    ),
    Variable(
        "GUICHET_CONNECTIONS_PER_ADDRESS",
        _connections,
        "256",
        "Connections of one client address at most, in each process. `GUICHET_TRUSTED_PROXIES` are not limited.",
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
        "Private networks (comma-separated) that webhooks may also reach.",
    ),
    Variable(
        "GUICHET_EGRESS_CA_FILE",
        _existing_file,
        None,
        "PEM file of certificate authorities that are trusted in addition to the system's.",
    ),
    Variable(
        "GUICHET_CATALOGUE_FILE",
        _existing_file,
        None,
        "TOML file of payment modes and fees that replaces the packaged `catalogue.toml`.",
    ),
    Variable(
        "GUICHET_PROVIDERS_FILE",
        _existing_file,
        None,
        "TOML file of provider accounts and routes. Unset: the simulator in development, no provider in production.",
    ),
    Variable(
        "GUICHET_ALLOW_SIMULATOR",
        _flag,
        "no",
        "`yes` lets the production profile serve the simulator and route live payments to it (rehearsals).",
    ),
    Variable(
        "GUICHET_KEEP_DELIVERIES_DAYS",
        _days,
        "90",
        "Days that webhook deliveries are kept after they succeeded or failed; 0 keeps them for ever.",
    ),
    Variable(
        "GUICHET_KEEP_INCIDENTS_DAYS",
        _days,
        "365",
        "Days that closed incidents, callbacks of providers and daily comparisons are kept; 0 keeps them for ever.",
    ),
    Variable(
        "GUICHET_LEDGER_HEADS",
        _heads_target,
        "log",
        "Where the heads of the hash chains go besides the log: `log` (nowhere else), `file:/path` (one line is added "
        "each time; audits read it) or an `https://…` address (they are sent there, signed).",
    ),
    Variable(
        "GUICHET_LEDGER_HEADS_SECRET",
        _token,
        None,
        "Signs the heads that are sent to an `https://…` address: 16 characters or more.",
    ),
    Variable("GUICHET_LOG_LEVEL", _choice("debug", "info", "warning", "error"), "info", "Least severe level logged."),
    Variable(
        "GUICHET_METRICS_PORT",
        _port,
        None,
        "Port of its own for `/metrics` (Prometheus); with `--workers N` the first of N ports. Unset: see "
        "`GUICHET_METRICS_TOKEN`.",
    ),
    Variable(
        "GUICHET_METRICS_HOST",
        _address,
        "127.0.0.1",
        "IP address of `GUICHET_METRICS_PORT`; with `0.0.0.0` other machines can scrape it.",
    ),
    Variable(
        "GUICHET_METRICS_TOKEN",
        _token,
        None,
        "Bearer token that `/metrics` requires, 16 characters or more. Without `GUICHET_METRICS_PORT`, `/metrics` is "
        "on the service's own port. Neither set: no metrics.",
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
    if isinstance(settings.ledger_heads, str) and not settings.ledger_heads_secret:
        raise SettingsError("GUICHET_LEDGER_HEADS_SECRET is required when GUICHET_LEDGER_HEADS is an https address.")
    if settings.profile == "production":
        _check_production(settings)
    return settings


def _check_production(settings: Settings) -> None:
    if not settings.secret_keys:
        raise SettingsError("GUICHET_SECRET_KEYS is required in production; `guichet secret-key` makes a key.")
    if not settings.public_url.startswith("https://"):
        raise SettingsError("GUICHET_PUBLIC_URL must be an https address in production.")


def with_development_key(settings: Settings) -> Settings:
    """In development, if there are no keys: one that is created once in the data folder, readable by its owner only."""
    if settings.secret_keys or settings.profile == "production":
        return settings
    make_private_folder(settings.home)
    path = settings.home / "secret.key"
    if not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(Fernet.generate_key())
    return replace(settings, secret_keys=(path.read_text().strip(),))
