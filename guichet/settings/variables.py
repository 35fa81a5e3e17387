"""Every GUICHET_* variable, as a field of the settings (`GUICHET_RATE_LIMIT` is `rate_limit`): its type, how it is
read, its default and its meaning (a test compares docs/admin-guide.md, "Settings")."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

from guichet.domain.records import Record
from guichet.settings import parsers
from guichet.settings.parsers import Network

DEFAULT_PUBLIC_URL: Final = "http://127.0.0.1:8000"

Profile = Literal["development", "production"]


class Variable(Record, frozen=True):
    """`default`: the text used when the variable is unset or empty; None means no value."""

    name: str
    parse: Callable[[str], Any]
    default: str | None
    meaning: str


def _variable(parse: Callable[[str], Any], default: str | None, meaning: str) -> Any:
    return field(metadata={"variable": (parse, default, meaning)})


@dataclass(frozen=True, slots=True)
class Values:
    home: Path = _variable(
        parsers.folder,
        "./var",
        "Data folder: the embedded database, the development key, the newest timeline of PostgreSQL that was seen.",
    )
    database_url: str = _variable(
        parsers.database_url,
        None,
        "`postgresql://user:password@host/name`. Unset: an embedded SQLite file in `GUICHET_HOME` (one host).",
    )
    pgbouncer: bool = _variable(
        parsers.flag,
        "no",
        "`yes`: `GUICHET_DATABASE_URL` is a PgBouncer in transaction mode. "
        "Workers look for work once a second unless `GUICHET_LISTEN_URL` is set.",
    )
    listen_url: str | None = _variable(
        parsers.postgresql_url,
        None,
        "`postgresql://user:password@host/name` without PgBouncer: each process with loops keeps one connection to it, "
        "on which other processes wake it; `guichet worker` and `guichet migrate` use it for everything. Unset: "
        "`GUICHET_DATABASE_URL`, unless `GUICHET_PGBOUNCER` is `yes`.",
    )
    public_url: str = _variable(
        parsers.url,
        DEFAULT_PUBLIC_URL,
        "Address under which customers and merchants reach the service; hosted pages and links start with it.",
    )
    profile: Profile = _variable(
        parsers.choice("development", "production"),
        "development",
        "`development`: demo merchant, loopback webhooks, simulated providers. `production`: refuses to start without "
        "`GUICHET_SECRET_KEYS` and an https `GUICHET_PUBLIC_URL`.",
    )
    redis_url: str | None = _variable(
        parsers.redis_url,
        None,
        "`redis://host:6379/0`: counts the rate limit across processes. Unset or not reachable: each process counts "
        "alone.",
    )
    rate_limit: int = _variable(
        parsers.count,
        "120",
        "API requests a minute for one client address; 0 switches it off.",
    )
    page_rate_limit: int = _variable(
        parsers.count,
        "60",
        "Requests a minute for hosted pages that do not exist, for one client address; pages that exist may be "
        "requested twenty times as often, because whole networks share an address. 0 switches both limits off.",
    )
    phone_prompts: int = _variable(
        parsers.count,
        "3",
        "Payments from links that one telephone number may be asked to confirm within ten minutes without confirming "
        "any, whatever the link and the client address; four times as many within a day. 0 switches both limits off.",
    )
    link_prompts: int = _variable(
        parsers.count,
        "60",
        "Payments from one link that telephones may be asked to confirm within ten minutes, in addition to those that "
        "succeed: the numbers confirmed and not confirmed may differ by this many. 0 switches the limit off.",
    )
    link_reservation_minutes: int = _variable(
        parsers.minutes,
        "15",
        "Minutes that a pending payment keeps its use of a `limité` link from other customers. If it succeeds later, "
        "it is credited all the same, and the link may be used once more than it allows.",
    )
    time_zone: ZoneInfo = _variable(
        parsers.time_zone,
        "Africa/Porto-Novo",
        "Time zone of your merchants (`Africa/Dakar`, `Africa/Brazzaville`…): hosted pages and receipts show every "
        "date in it, except for merchants with one of their own (`guichet merchant time-zone`). The API answers UTC in "
        "any case.",
    )
    trusted_proxies: tuple[Network, ...] = _variable(
        parsers.networks,
        "",
        "Networks (comma-separated) of reverse proxies whose `X-Forwarded-For` is trusted.",
    )
    ipv6_prefix: int = _variable(
        parsers.ipv6_prefix,
        "64",
        "Bits of an IPv6 address that are counted as one client address, in every limit; IPv4 is counted as it is.",
    )
    max_connections: int = _variable(
        parsers.connections,
        "4096",
        "Connections that each process keeps open at most; also not more than three quarters of its file descriptors. "
        "When they are used up, the oldest connection without a full request is closed for a new one.",
    )
    connections_per_address: int = _variable(
        parsers.connections,
        "256",
        "Connections of one client address at most, in each process. `GUICHET_TRUSTED_PROXIES` are not limited.",
    )
    secret_keys: tuple[str, ...] = _variable(
        parsers.fernet_keys,
        "",
        "Encryption keys for secrets at rest, newest first, comma-separated. Development makes one in `GUICHET_HOME`.",
    )
    egress_allow: tuple[Network, ...] = _variable(
        parsers.networks,
        "",
        "Private networks (comma-separated) that webhooks may also reach.",
    )
    egress_ca_file: Path | None = _variable(
        parsers.certificates_file,
        None,
        "PEM file of certificate authorities that are trusted in addition to the system's.",
    )
    catalogue_file: Path | None = _variable(
        parsers.existing_file,
        None,
        "TOML file of payment modes and fees that replaces the packaged `catalogue.toml`.",
    )
    providers_file: Path | None = _variable(
        parsers.existing_file,
        None,
        "TOML file of provider accounts and routes. Unset: the simulator in development, no provider in production.",
    )
    allow_simulator: bool = _variable(
        parsers.flag,
        "no",
        "`yes` lets the production profile serve the simulator and route live payments to it (rehearsals).",
    )
    treasury_one_person_below: int = _variable(
        parsers.count,
        "0",
        "Up to this amount, in the main unit of any currency, one person records a movement of our own money; above it "
        "another one approves. 0: always two.",
    )
    keep_deliveries_days: int = _variable(
        parsers.days,
        "90",
        "Days that webhook deliveries are kept after they succeeded or failed; 0 keeps them for ever.",
    )
    keep_incidents_days: int = _variable(
        parsers.days,
        "365",
        "Days that closed incidents, callbacks of providers and daily comparisons are kept; 0 keeps them for ever.",
    )
    ledger_heads: Path | str | None = _variable(
        parsers.heads_target,
        "log",
        "Where the heads of the hash chains go besides the log: `log` (nowhere else), `file:/path` (one line is added "
        "each time; audits read it) or an `https://…` address (they are sent there, signed).",
    )
    ledger_heads_secret: str | None = _variable(
        parsers.token,
        None,
        "Signs the heads that are sent to an `https://…` address: 16 characters or more.",
    )
    smtp_url: str | None = _variable(
        parsers.smtp_url,
        None,
        "`smtps://user:password@host:465` (TLS) or `smtp://user:password@host:587` (STARTTLS, which only a loopback "
        "address may lack): sends invitations and links for new passwords. Unset: in development `/console/mailbox` "
        "shows them; in production `guichet user invite` prints the link.",
    )
    mail_from: str = _variable(
        parsers.mail_sender,
        "Guichet <no-reply@localhost>",
        "Sender of the mails: `Name <address>`.",
    )
    log_level: str = _variable(
        parsers.choice("debug", "info", "warning", "error"),
        "info",
        "Least severe level logged.",
    )
    metrics_port: int | None = _variable(
        parsers.port,
        None,
        "Port of its own for `/metrics` (Prometheus); with `--workers N` the first of N ports. Unset: see "
        "`GUICHET_METRICS_TOKEN`.",
    )
    metrics_host: str = _variable(
        parsers.address,
        "127.0.0.1",
        "IP address of `GUICHET_METRICS_PORT`; with `0.0.0.0` other machines can scrape it.",
    )
    metrics_token: str | None = _variable(
        parsers.token,
        None,
        "Bearer token that `/metrics` requires, 16 characters or more. Without `GUICHET_METRICS_PORT`, `/metrics` is "
        "on the service's own port. Neither set: no metrics.",
    )
    otlp_endpoint: str | None = _variable(
        parsers.url,
        None,
        "`http://127.0.0.1:4318`: base address of an OpenTelemetry collector that takes OTLP over HTTP; traces go to "
        "its `/v1/traces`. Needs `make tracing`. Unset: no traces.",
    )


VARIABLES: Final = tuple(
    Variable(f"GUICHET_{value.name.upper()}", *value.metadata["variable"]) for value in fields(Values)
)
