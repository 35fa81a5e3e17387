"""Every GUICHET_* variable: how it is read, its default and its meaning (a test compares docs/admin-guide.md,
"Settings")."""

from collections.abc import Callable
from typing import Any, Final

from guichet.domain.records import Record
from guichet.settings import parsers

DEFAULT_PUBLIC_URL: Final = "http://127.0.0.1:8000"


class Variable(Record, frozen=True):
    """`default`: the text used when the variable is unset or empty; None means no value."""

    name: str
    parse: Callable[[str], Any]
    default: str | None
    meaning: str


VARIABLES: Final = (
    Variable(
        "GUICHET_HOME",
        parsers.folder,
        "./var",
        "Data folder: the embedded database, the development key, the newest timeline of PostgreSQL that was seen.",
    ),
    Variable(
        "GUICHET_DATABASE_URL",
        parsers.database_url,
        None,
        "`postgresql://user:password@host/name`. Unset: an embedded SQLite file in `GUICHET_HOME` (one host).",
    ),
    Variable(
        "GUICHET_PGBOUNCER",
        parsers.flag,
        "no",
        "`yes`: `GUICHET_DATABASE_URL` is a PgBouncer in transaction mode. "
        "Workers look for work once a second unless `GUICHET_LISTEN_URL` is set.",
    ),
    Variable(
        "GUICHET_LISTEN_URL",
        parsers.postgresql_url,
        None,
        "`postgresql://user:password@host/name` without PgBouncer: each process with loops keeps one connection to it, "
        "on which other processes wake it; `guichet worker` and `guichet migrate` use it for everything. Unset: "
        "`GUICHET_DATABASE_URL`, unless `GUICHET_PGBOUNCER` is `yes`.",
    ),
    Variable(
        "GUICHET_PUBLIC_URL",
        parsers.url,
        DEFAULT_PUBLIC_URL,
        "Address under which customers and merchants reach the service; hosted pages and links start with it.",
    ),
    Variable(
        "GUICHET_PROFILE",
        parsers.choice("development", "production"),
        "development",
        "`development`: demo merchant, loopback webhooks, simulated providers. `production`: refuses to start without "
        "`GUICHET_SECRET_KEYS` and an https `GUICHET_PUBLIC_URL`.",
    ),
    Variable(
        "GUICHET_REDIS_URL",
        parsers.redis_url,
        None,
        "`redis://host:6379/0`: counts the rate limit across processes. Unset or not reachable: each process counts "
        "alone.",
    ),
    Variable(
        "GUICHET_RATE_LIMIT", parsers.count, "120", "API requests a minute for one client address; 0 switches it off."
    ),
    Variable(
        "GUICHET_PAGE_RATE_LIMIT",
        parsers.count,
        "60",
        "Requests a minute for hosted pages that do not exist, for one client address; pages that exist may be "
        "requested twenty times as often, because whole networks share an address. 0 switches both limits off.",
    ),
    Variable(
        "GUICHET_PHONE_PROMPTS",
        parsers.count,
        "3",
        "Payments from links that one telephone number may be asked to confirm within ten minutes without confirming "
        "any, whatever the link and the client address; four times as many within a day. 0 switches both limits off.",
    ),
    Variable(
        "GUICHET_LINK_PROMPTS",
        parsers.count,
        "60",
        "Payments from one link that telephones may be asked to confirm within ten minutes, in addition to those that "
        "succeed: the numbers confirmed and not confirmed may differ by this many. 0 switches the limit off.",
    ),
    Variable(
        "GUICHET_LINK_RESERVATION_MINUTES",
        parsers.minutes,
        "15",
        "Minutes that a pending payment keeps its use of a `limité` link from other customers. If it succeeds later, "
        "it is credited all the same, and the link may be used once more than it allows.",
    ),
    Variable(
        "GUICHET_TIME_ZONE",
        parsers.time_zone,
        "Africa/Porto-Novo",
        "Time zone of your merchants (`Africa/Dakar`, `Africa/Brazzaville`…): hosted pages and receipts show every "
        "date in it, except for merchants with one of their own (`guichet merchant time-zone`). The API answers UTC in "
        "any case.",
    ),
    Variable(
        "GUICHET_TRUSTED_PROXIES",
        parsers.networks,
        "",
        "Networks (comma-separated) of reverse proxies whose `X-Forwarded-For` is trusted.",
    ),
    Variable(
        "GUICHET_IPV6_PREFIX",
        parsers.ipv6_prefix,
        "64",
        "Bits of an IPv6 address that are counted as one client address, in every limit; IPv4 is counted as it is.",
    ),
    Variable(
        "GUICHET_MAX_CONNECTIONS",
        parsers.connections,
        "4096",
        "Connections that each process keeps open at most; also not more than three quarters of its file descriptors. "
        "When they are used up, the oldest connection without a full request is closed for a new one.",
    ),
    Variable(
        "GUICHET_CONNECTIONS_PER_ADDRESS",
        parsers.connections,
        "256",
        "Connections of one client address at most, in each process. `GUICHET_TRUSTED_PROXIES` are not limited.",
    ),
    Variable(
        "GUICHET_SECRET_KEYS",
        parsers.fernet_keys,
        "",
        "Encryption keys for secrets at rest, newest first, comma-separated. Development makes one in `GUICHET_HOME`.",
    ),
    Variable(
        "GUICHET_EGRESS_ALLOW",
        parsers.networks,
        "",
        "Private networks (comma-separated) that webhooks may also reach.",
    ),
    Variable(
        "GUICHET_EGRESS_CA_FILE",
        parsers.certificates_file,
        None,
        "PEM file of certificate authorities that are trusted in addition to the system's.",
    ),
    Variable(
        "GUICHET_CATALOGUE_FILE",
        parsers.existing_file,
        None,
        "TOML file of payment modes and fees that replaces the packaged `catalogue.toml`.",
    ),
    Variable(
        "GUICHET_PROVIDERS_FILE",
        parsers.existing_file,
        None,
        "TOML file of provider accounts and routes. Unset: the simulator in development, no provider in production.",
    ),
    Variable(
        "GUICHET_ALLOW_SIMULATOR",
        parsers.flag,
        "no",
        "`yes` lets the production profile serve the simulator and route live payments to it (rehearsals).",
    ),
    Variable(
        "GUICHET_TREASURY_ONE_PERSON_BELOW",
        parsers.count,
        "0",
        "Up to this amount, in the main unit of any currency, one person records a movement of our own money; above it "
        "another one approves. 0: always two.",
    ),
    Variable(
        "GUICHET_KEEP_DELIVERIES_DAYS",
        parsers.days,
        "90",
        "Days that webhook deliveries are kept after they succeeded or failed; 0 keeps them for ever.",
    ),
    Variable(
        "GUICHET_KEEP_INCIDENTS_DAYS",
        parsers.days,
        "365",
        "Days that closed incidents, callbacks of providers and daily comparisons are kept; 0 keeps them for ever.",
    ),
    Variable(
        "GUICHET_LEDGER_HEADS",
        parsers.heads_target,
        "log",
        "Where the heads of the hash chains go besides the log: `log` (nowhere else), `file:/path` (one line is added "
        "each time; audits read it) or an `https://…` address (they are sent there, signed).",
    ),
    Variable(
        "GUICHET_LEDGER_HEADS_SECRET",
        parsers.token,
        None,
        "Signs the heads that are sent to an `https://…` address: 16 characters or more.",
    ),
    Variable(
        "GUICHET_SMTP_URL",
        parsers.smtp_url,
        None,
        "`smtps://user:password@host:465` (TLS) or `smtp://user:password@host:587` (STARTTLS, which only a loopback "
        "address may lack): sends invitations and links for new passwords. Unset: in development `/console/mailbox` "
        "shows them; in production `guichet user invite` prints the link.",
    ),
    Variable(
        "GUICHET_MAIL_FROM",
        parsers.mail_sender,
        "Guichet <no-reply@localhost>",
        "Sender of the mails: `Name <address>`.",
    ),
    Variable(
        "GUICHET_LOG_LEVEL", parsers.choice("debug", "info", "warning", "error"), "info", "Least severe level logged."
    ),
    Variable(
        "GUICHET_METRICS_PORT",
        parsers.port,
        None,
        "Port of its own for `/metrics` (Prometheus); with `--workers N` the first of N ports. Unset: see "
        "`GUICHET_METRICS_TOKEN`.",
    ),
    Variable(
        "GUICHET_METRICS_HOST",
        parsers.address,
        "127.0.0.1",
        "IP address of `GUICHET_METRICS_PORT`; with `0.0.0.0` other machines can scrape it.",
    ),
    Variable(
        "GUICHET_METRICS_TOKEN",
        parsers.token,
        None,
        "Bearer token that `/metrics` requires, 16 characters or more. Without `GUICHET_METRICS_PORT`, `/metrics` is "
        "on the service's own port. Neither set: no metrics.",
    ),
    Variable(
        "GUICHET_OTLP_ENDPOINT",
        parsers.url,
        None,
        "`http://127.0.0.1:4318`: base address of an OpenTelemetry collector that takes OTLP over HTTP; traces go to "
        "its `/v1/traces`. Needs `make tracing`. Unset: no traces.",
    ),
)
