"""The providers' file (`GUICHET_PROVIDERS_FILE`, TOML): accounts with providers, and for each operator their order.

    [accounts.feexpay]
    provider = "feexpay"
    base_url = "https://…"
    api_key = { env = "FEEXPAY_API_KEY" }     # a secret is the name of an environment variable
    shop = "…"

    [routes]
    mtn = ["mtn_benin", "feexpay"]            # feexpay is tried only when mtn_benin certainly took nothing

The whole file is checked at start; an error names the file and the line.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

from msgspec import field

from guichet.clock import Clock
from guichet.domain.money import Hundredths
from guichet.domain.records import Record
from guichet.http_client import HttpClient
from guichet.providers.base import Provider
from guichet.providers.provider_types import (
    PROVIDER_TYPES,
    leads_to_simulator,
    may_be_real,
    sandbox_reason,
    served_operators,
)
from guichet.providers.registry import SANDBOX, UNCONNECTED, Registry
from guichet.providers.shared.client import ProviderAccount
from guichet.settings import SettingsError

_NAME: Final = re.compile(r"[a-z0-9_]{1,64}")
_COMMON: Final = ("provider", "base_url")
#: A whole number of main units for every wallet of the account, or a table of numbers by wallet.
_ALERT_BELOW: Final = "float_alert_below"
#: The host of `base_url`, for one that looks like a test environment but is not.
_LIVE_HOST: Final = "live_host"
#: What every account may have; these are no settings of its provider.
_OF_EVERY_ACCOUNT: Final = (_ALERT_BELOW, _LIVE_HOST)


class ProvidersFileError(SettingsError):
    """The providers' file cannot be used. The message is one sentence for the person who edits it."""


class ProvidersConfig(Record, frozen=True):
    """The accounts by name, and for each operator of the contract the accounts to try in order."""

    accounts: Mapping[str, ProviderAccount]
    routes: Mapping[str, tuple[str, ...]]
    #: Where each account stands, as "file, line N".
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def simulated(self) -> list[str]:
        return [name for name, account in self.accounts.items() if leads_to_simulator(account)]

    def accounts_of(self, name: str) -> list[str]:
        """The account of that name, or the accounts with the provider of that name; none when there is neither."""
        return [account for account, config in self.accounts.items() if name in (account, config.provider)]

    def refuse_sandboxes(self) -> None:
        """Raises ProvidersFileError when an account leads to a provider's sandbox, where no money moves."""
        for name, account in self.accounts.items():
            if reason := sandbox_reason(account):
                raise ProvidersFileError(
                    f"{self._source(name)}: [accounts.{name}] {reason}, which the production profile refuses."
                )

    def registry(self, clock: Clock, http_client: HttpClient) -> Registry:
        """Raises ProvidersFileError when an account's settings cannot work."""
        providers = {name: self._build(account, http_client, clock) for name, account in self.accounts.items()}
        accounts_by_type: dict[str, list[str]] = defaultdict(list)
        for name, account in self.accounts.items():
            accounts_by_type[account.provider].append(name)
        return Registry(clock, providers, self.routes, accounts_by_type)

    def _build(self, account: ProviderAccount, http_client: HttpClient, clock: Clock) -> Provider:
        try:
            return PROVIDER_TYPES[account.provider].build(account, http_client, clock)
        except ValueError as error:
            raise ProvidersFileError(f"{self._source(account.name)}: [accounts.{account.name}] {error}.") from None

    def _source(self, account: str) -> str:
        return self.sources.get(account, "the providers' file")


NO_PROVIDERS: Final = ProvidersConfig({}, {})


def read_providers_file(
    path: Path,
    environ: Mapping[str, str],
    operator_codes: Collection[str],
    placeholders: Mapping[str, str] | None = None,
) -> ProvidersConfig:
    """Read and check the file. `{name}` in its text is replaced by the placeholder of that name.

    Raises ProvidersFileError for a file that cannot be read or is not TOML, an unknown provider or setting, a secret
    that is not in `environ`, or a route to an account that does not exist.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProvidersFileError(f"{path.name} cannot be read: {error}.") from None
    for name, value in (placeholders or {}).items():
        text = text.replace(f"{{{name}}}", value)
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProvidersFileError(f"{path.name}: {error}.") from None
    return _Reader(path.name, text, environ).read(raw, operator_codes)


def first_real_account(path: Path, environ: Mapping[str, str]) -> ProviderAccount | None:
    """The first account of the file that leads to a real provider; None when there is none.

    For every command, also those that need no provider: it raises nothing, because whoever uses the file reports what
    is wrong with it, and a secret need not be in `environ`.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("accounts", {})
    except (OSError, ValueError):
        return None
    for name, table in tables.items() if isinstance(tables, dict) else ():
        if not isinstance(table, dict):
            continue
        values = {
            key: environ.get(str(value.get("env"))) if isinstance(value, dict) else value
            for key, value in table.items()
        }
        settings = {key: str(value) for key, value in values.items() if value is not None}
        provider, address = settings.get("provider", ""), settings.get("base_url", "")
        account = ProviderAccount(name, provider, address, settings, settings.get(_LIVE_HOST, ""))
        if not _is_http_address(account.base_url):
            continue  # Nobody can use it.
        if may_be_real(account):
            return account
    return None


def _is_http_address(text: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:  # Brackets without an IPv6 address, or an invalid port.
        return False


class _Reader:
    """Checks one file. To name the line of an error, it looks for the section and the key in the text."""

    def __init__(self, file: str, text: str, environ: Mapping[str, str]) -> None:
        self._file = file
        self._lines = text.splitlines()
        self._environ = environ

    def read(self, raw: Mapping[str, Any], operator_codes: Collection[str]) -> ProvidersConfig:
        for key, value in raw.items():
            if key not in ("accounts", "routes"):
                self._error(f"[{key}]", None, "only [accounts.NAME] and [routes] are known")
            if not isinstance(value, dict):
                self._error(f"[{key}]", None, "must be a table")
        accounts = {name: self._account(name, table) for name, table in raw.get("accounts", {}).items()}
        routes = {
            operator: self._route(operator, names, accounts, operator_codes)
            for operator, names in raw.get("routes", {}).items()
        }
        sources = {name: f"{self._file}, line {self._line(f'[accounts.{name}]', None)}" for name in accounts}
        return ProvidersConfig(accounts, routes, sources)

    def _account(self, name: str, table: object) -> ProviderAccount:
        section = f"[accounts.{name}]"
        if not _NAME.fullmatch(name) or name in (SANDBOX, UNCONNECTED):
            self._error(
                section, None, "a name is 1 to 64 small letters, digits and underscores, and not a reserved one"
            )
        if not isinstance(table, dict):
            self._error(section, None, "must be a table")
        provider_type = PROVIDER_TYPES.get(str(table.get("provider")))
        if provider_type is None:
            self._error(section, "provider", f"must be one of {', '.join(PROVIDER_TYPES)}")
        known = (*_COMMON, *provider_type.required, *provider_type.optional, *_OF_EVERY_ACCOUNT)
        values = {key: self._setting(section, key, value, known) for key, value in table.items() if key != _ALERT_BELOW}
        settings = {key: value for key, value in values.items() if key != _LIVE_HOST}
        for key in (*_COMMON, *provider_type.required):
            if not settings.get(key):
                self._error(section, None, f"{key} is missing")
        if not _is_http_address(settings["base_url"]):
            self._error(section, "base_url", "must be an http or https address")
        if values.get(_LIVE_HOST) not in (None, urlsplit(settings["base_url"]).hostname):
            self._error(section, _LIVE_HOST, "must be the host of base_url")
        return ProviderAccount(
            name=name,
            provider=settings["provider"],
            base_url=settings["base_url"].rstrip("/"),
            settings={key: value for key, value in settings.items() if key not in _COMMON},
            live_host=values.get(_LIVE_HOST, ""),
            float_alert_below=self._alert_below(section, table.get(_ALERT_BELOW, {})),
        )

    def _alert_below(self, section: str, value: object) -> dict[str, Hundredths]:
        """By wallet; the key "" stands for all that are not named."""
        bounds: dict[str, object] = value if isinstance(value, dict) else {"": value}
        amounts = {}
        for wallet, bound in bounds.items():
            if isinstance(bound, bool) or not isinstance(bound, int) or bound < 0:
                problem = "must be a whole amount, or a table of amounts by wallet, such as { disbursement = 500000 }"
                self._error(section, _ALERT_BELOW, problem)
            amounts[wallet] = Hundredths(bound * 100)
        return amounts

    def _setting(self, section: str, key: str, value: object, known: Collection[str]) -> str:
        if key not in known:
            self._error(section, key, f"is unknown (known: {', '.join(known)})")
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, str | int):
            return str(value)
        variable = value.get("env") if isinstance(value, dict) and len(value) == 1 else None
        if not isinstance(variable, str):
            self._error(section, key, 'must be a text, or { env = "VARIABLE" } for a secret')
        if not self._environ.get(variable):
            self._error(section, key, f"refers to {variable}, which is not in the environment")
        return self._environ[variable]

    def _route(
        self, operator: str, names: object, accounts: Mapping[str, ProviderAccount], operator_codes: Collection[str]
    ) -> tuple[str, ...]:
        if operator not in operator_codes:
            self._error("[routes]", operator, "is not an operator code of the catalogue")
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            self._error("[routes]", operator, "must be a list of account names")
        if len(set(names)) != len(names):
            self._error("[routes]", operator, "must be a list of different account names")
        for name in names:
            if name not in accounts:
                self._error("[routes]", operator, f"leads to {name}, which is no account of this file")
            served = served_operators(accounts[name])
            if served is not None and operator not in served:
                self._error("[routes]", operator, f"leads to {name}, which serves only {', '.join(sorted(served))}")
        return tuple(names)

    def _error(self, section: str, key: str | None, problem: str) -> NoReturn:
        place = f"{section} {key}" if key else section
        raise ProvidersFileError(f"{self._file}, line {self._line(section, key)}: {place} {problem}.")

    def _line(self, section: str, key: str | None) -> int:
        """The number of the line of `key` in `section`; of the section when the key is absent; else 1."""
        section_line = 0
        for number, line in enumerate(self._lines, 1):
            stripped = line.strip()
            if stripped.replace('"', "").replace(" ", "") == section:
                section_line = number
                if key is None:
                    return number
            elif section_line and stripped.startswith("["):
                break
            elif section_line and key and re.match(rf'"?{re.escape(key)}"?\s*=', stripped):
                return number
        return section_line or 1
