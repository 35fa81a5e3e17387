"""The settings of a process, from GUICHET_* variables. No other module reads settings from the environment.

A wrong value, or a name that is no setting, stops the start with one sentence that names the variable
(`SettingsError`).
"""

import base64
import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from guichet.private_files import FILE_MODE, make_private_folder, sqlite_files
from guichet.settings import parsers
from guichet.settings.parsers import Network, shown_address, unknown_names
from guichet.settings.variables import DEFAULT_PUBLIC_URL, VARIABLES, Values, Variable

__all__ = [
    "DEFAULT_PUBLIC_URL",
    "VARIABLES",
    "Network",
    "Settings",
    "SettingsError",
    "Variable",
    "faults",
    "load",
    "with_development_key",
]


class SettingsError(Exception):
    """A wrong setting; the message is one sentence that names the variable. Exit code 1."""


class Settings(Values):
    """The values of the variables (`variables.py`), and what follows from them."""

    __slots__ = ()

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
    def database_address(self) -> str:
        """The database as people may be told about it: a path, or an address without its password."""
        return shown_address(self.database_url)

    @property
    def direct(self) -> "Settings":
        """With the direct address in place of PgBouncer's; the same settings if PgBouncer is not used or no direct
        address is known."""
        if not self.pgbouncer or self.listen_url is None:
            return self
        return replace(self, database_url=self.listen_url, pgbouncer=False)

    @property
    def browser_url(self) -> str:
        """The public address as people should open it: in development with a host name in place of 127.0.0.1, because
        browsers accept passkeys for names only."""
        return self.public_url.replace("://127.0.0.1:", "://localhost:") if self.development else self.public_url

    @property
    def timelines_file(self) -> Path:
        """The newest timeline of each PostgreSQL cluster that was seen from here."""
        return self.home / "postgresql-timelines.json"

    @property
    def private_paths(self) -> list[Path]:
        """The data folder and those of our files that exist: nobody but their owner should be able to read them."""
        databases = [self.home / "simulator.db", *([self.sqlite_path] if self.embedded else [])]
        files = (self.home, self.home / "secret.key", self.home / "demo.json", self.timelines_file)
        return [
            *(path for path in files if path.exists()),
            *(file for path in databases for file in sqlite_files(path)),
        ]

    def callback_url(self, provider_account: str) -> str:
        """Where a provider may tell us something about this account."""
        return f"{self.public_url}/providers/{provider_account}/callback"


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process; raises SettingsError on the first fault: a name that is unknown, a wrong value."""
    settings, faults = _read(os.environ if environ is None else environ)
    if settings is None:
        raise SettingsError(faults[0])
    return settings


def faults(environ: Mapping[str, str] | None = None) -> list[str]:
    """Everything that keeps `load` from succeeding, one sentence each."""
    return _read(os.environ if environ is None else environ)[1]


def _read(environ: Mapping[str, str]) -> tuple[Settings | None, list[str]]:
    """The settings, or None and what is wrong with them."""
    known = {variable.name for variable in VARIABLES}
    faults = unknown_names(environ, known, environ.get("GUICHET_PROVIDERS_FILE"))
    values: dict[str, Any] = {}
    for variable in VARIABLES:
        raw = environ.get(variable.name) or variable.default
        try:
            value = None if raw is None else variable.parse(raw)
        except (ValueError, OSError, RuntimeError) as error:
            faults.append(f"{variable.name} is wrong: {error}.")
            continue
        values[variable.name.removeprefix("GUICHET_").lower()] = value
    if len(values) < len(VARIABLES):
        return None, faults
    if values["database_url"] is None:
        values["database_url"] = f"sqlite:///{values['home'] / 'guichet.db'}"
    settings = Settings(**values)
    faults += _missing(settings)
    return None if faults else settings, faults


def _missing(settings: Settings) -> list[str]:
    """What the values of other settings require."""
    faults = []
    if isinstance(settings.ledger_heads, str) and not settings.ledger_heads_secret:
        faults.append("GUICHET_LEDGER_HEADS_SECRET is required when GUICHET_LEDGER_HEADS is an https address.")
    if settings.profile == "production" and not settings.secret_keys:
        faults.append("GUICHET_SECRET_KEYS is required in production; `guichet secret-key` makes a key.")
    if settings.profile == "production" and not settings.public_url.startswith("https://"):
        faults.append("GUICHET_PUBLIC_URL must be an https address in production.")
    return faults


def with_development_key(settings: Settings) -> Settings:
    """In development, if there are no keys: one that is created once in the data folder, readable by its owner only.

    Raises SettingsError if the key that is there cannot be used. Only who has found the database may call this: what is
    refused creates nothing.
    """
    if settings.secret_keys or settings.profile == "production":
        return settings
    make_private_folder(settings.home)
    path = settings.home / "secret.key"
    if not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(base64.urlsafe_b64encode(secrets.token_bytes(parsers.KEY_BYTES)))
    try:
        return replace(settings, secret_keys=(parsers.fernet_key(path.read_text()),))
    except (ValueError, OSError) as error:
        raise SettingsError(f"The development key in {path} cannot be used: {error}.") from None
