"""How the text of a variable becomes a value, and which names are no setting. A parser raises a ValueError that says
what is expected; what the system says about a path (OSError, RuntimeError) passes through."""

import base64
import ipaddress
import os
import re
import ssl
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from email.utils import formataddr, parseaddr
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit
from zoneinfo import ZoneInfo

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

#: A bearer token: printable ASCII, long enough that it cannot be guessed.
_TOKEN: Final = re.compile(r"[!-~]{16,}")
#: Of a secret key, which URL-safe base64 writes.
KEY_BYTES: Final = 32
#: A hundred years. More is a typing mistake.
MAX_DAYS: Final = 36_500
#: A month. A customer who has not paid by then will not.
MAX_RESERVATION_MINUTES: Final = 30 * 24 * 60


def text(raw: str) -> str:
    return raw


def file_path(raw: str) -> Path:
    return Path(raw).expanduser().resolve()


def folder(raw: str) -> Path:
    """A folder that exists or can be created, and that can be written in."""
    path = file_path(raw)
    nearest = next(parent for parent in (path, *path.parents) if parent.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise ValueError(f"{nearest} is not a folder that can be written in")
    return path


def existing_file(raw: str) -> Path:
    path = file_path(raw)
    if not os.access(path, os.R_OK) or not path.is_file():
        raise ValueError(f"the file {raw} does not exist, or this user may not read it")
    return path


def certificates_file(raw: str) -> Path:
    path = existing_file(raw)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError:
        raise ValueError(f"{raw} is not a PEM file of certificates") from None
    return path


def database_url(raw: str) -> str:
    if raw.startswith("postgres://"):
        raw = "postgresql://" + raw.removeprefix("postgres://")
    if not raw.startswith(("postgresql://", "sqlite:///")):
        raise ValueError("must start with postgresql:// (or sqlite:///)")
    return raw


def postgresql_url(raw: str) -> str:
    url = database_url(raw)
    if not url.startswith("postgresql://"):
        raise ValueError("must start with postgresql://")
    return url


def url(raw: str) -> str:
    parts = _split(raw)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be an http or https address without a query, such as https://pay.example.com")
    return raw.rstrip("/")


def choice(*allowed: str) -> Callable[[str], str]:
    def parse(raw: str) -> str:
        if raw not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return raw

    return parse


def whole_number(meaning: str, least: int, most: int | None = None) -> Callable[[str], int]:
    """`meaning`: `a whole number of days`, for the sentence about a wrong value."""
    bounds = f"{least} or more" if most is None else f"{least} to {most}"

    def parse(raw: str) -> int:
        if not raw.isascii() or not raw.isdigit() or int(raw) < least or (most is not None and int(raw) > most):
            raise ValueError(f"must be {meaning}, {bounds}")
        return int(raw)

    return parse


count: Final = whole_number("a whole number", 0)
minutes: Final = whole_number("a whole number of minutes", 1, MAX_RESERVATION_MINUTES)
ipv6_prefix: Final = whole_number("a number of bits", 1, 128)
connections: Final = whole_number("a number of connections", 1, 1_000_000)
days: Final = whole_number("a whole number of days", 0, MAX_DAYS)
port: Final = whole_number("a port", 1, 65535)


def address(raw: str) -> str:
    return str(ipaddress.ip_address(raw))


def time_zone(raw: str) -> ZoneInfo:
    try:
        return ZoneInfo(raw)
    except (KeyError, ValueError, OSError):  # Unknown, not a name, a folder of names.
        raise ValueError("must be the name of a time zone, such as Africa/Dakar") from None


def token(raw: str) -> str:
    if not _TOKEN.fullmatch(raw):
        raise ValueError("must be at least 16 characters, and none of them a space or outside ASCII")
    return raw


def heads_target(raw: str) -> Path | str | None:
    """A file, the https address of a receiver, or None for the log alone."""
    if raw == "log":
        return None
    if raw.startswith("file:"):
        path = Path(raw.removeprefix("file:"))
        if not path.is_absolute() or not path.parent.is_dir() or path.is_dir():
            raise ValueError(f"{raw} must be file: and the absolute path of a file in a folder that exists")
        return path
    parts = _split(raw)
    if parts.scheme != "https" or not parts.hostname or "@" in parts.netloc:
        raise ValueError("must be log, file:/absolute/path or an https address without a user")
    return raw


def redis_url(raw: str) -> str:
    if not raw.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("must start with redis://, rediss:// or unix://")
    _split(raw)
    return raw


def smtp_url(raw: str) -> str:
    parts = _split(raw)
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError("must be smtps://user:password@host:465 or smtp://user:password@host:587")
    return raw


def mail_sender(raw: str) -> str:
    name, address = parseaddr(raw)
    local, _, domain = address.rpartition("@")
    if not local or not domain or any(char.isspace() for char in address) or not raw.isprintable():
        raise ValueError("must be a sender such as Guichet <no-reply@pay.example.com>")
    return formataddr((name, address))


def flag(raw: str) -> bool:
    if raw.lower() not in ("yes", "no"):
        raise ValueError("must be yes or no")
    return raw.lower() == "yes"


def networks(raw: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(part.strip()) for part in raw.split(",") if part.strip())


def fernet_key(raw: str) -> str:
    """A key of `cryptography.fernet`, which is imported with the first secret only (`merchants/vault.py`)."""
    key = raw.strip()
    try:
        is_key = len(base64.urlsafe_b64decode(key)) == KEY_BYTES
    except ValueError:
        is_key = False
    if not is_key:
        raise ValueError("each key must be 32 bytes in URL-safe base64 (`guichet secret-key` makes one)")
    return key


def fernet_keys(raw: str) -> tuple[str, ...]:
    return tuple(fernet_key(part) for part in raw.split(",") if part.strip())


def _split(raw: str) -> SplitResult:
    """Raises ValueError also for a port that is none. The words of `urlsplit` are not passed on: what they quote may be
    a part of a password."""
    try:
        parts = urlsplit(raw)
        _ = parts.port
    except ValueError:
        raise ValueError("its host or its port cannot be read") from None
    return parts


_PREFIX: Final = "GUICHET_"
#: What Kubernetes puts into the environment of every pod about a service whose name begins with `guichet`.
_KUBERNETES: Final = re.compile(
    r"GUICHET_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)=.*|"
    r"GUICHET_(\w+_)?PORT=(tcp|udp|sctp)://.*"
)


def unknown_names(environ: Mapping[str, str], known: Collection[str], providers_file: str | None) -> list[str]:
    """One sentence for each name that begins with GUICHET_ and is not in `known`.

    `providers_file`: its path. A name that stands in it is a secret of a provider's account, not a setting.
    """
    names = [
        name
        for name, value in environ.items()
        if name.startswith(_PREFIX) and name not in known and not _KUBERNETES.fullmatch(f"{name}={value}")
    ]
    if not names:
        return []
    secrets = _names_in(providers_file)
    return [_sentence(name, known) for name in names if name not in secrets]


def _names_in(file: str | None) -> set[str]:
    """Whoever uses the file says what is wrong with it."""
    try:
        text = Path(file).expanduser().read_text(encoding="utf-8", errors="replace") if file else ""
    except (OSError, RuntimeError):  # RuntimeError: `~nobody`, a home that does not exist.
        return set()
    return set(re.findall(rf"{_PREFIX}\w+", text))


def _sentence(name: str, known: Collection[str]) -> str:
    nearest = get_close_matches(name, known, 1, cutoff=0.8)
    hint = f"did you mean {nearest[0]}?" if nearest else "every setting is in docs/admin-guide.md."
    return f"{name} is unknown; {hint}"


_SCHEME: Final = "postgresql://"
#: What of the query says where the database is. The rest may hold a password.
_SHOWN: Final = ("host", "hostaddr", "port", "dbname", "user")


def shown_address(url: str) -> str:
    """`postgresql://user@host/name`, or the path of an SQLite file.

    Nothing between the user's name and the last `@` is shown, so that a password with a `/` or a `?` that was not
    escaped stays hidden too.
    """
    if not url.startswith(_SCHEME):
        return url.removeprefix("sqlite:///")
    credentials, at, place = url.removeprefix(_SCHEME).rpartition("@")
    user = re.split(r"[:@/?]", credentials)[0]
    place, _, query = place.partition("?")
    options = urlencode([(name, value) for name, value in parse_qsl(query) if name in _SHOWN], safe="/,:")
    return f"{_SCHEME}{user}{at}{place}{'?' if options else ''}{options}"
