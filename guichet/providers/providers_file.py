"""The operators' file (`GUICHET_PROVIDERS_FILE`, TOML): connections, and for each operator code their order.

    [connections.feexpay]
    family = "feexpay"
    base_url = "https://…"
    api_key = { env = "FEEXPAY_API_KEY" }     # secrets by reference to the environment
    shop = "…"

    [routes]
    mtn = ["mtn_benin", "feexpay"]            # the next is tried only if the one before provably took nothing

Checked whole at start; each fault names the file and the line.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

from guichet.clock import Clock
from guichet.http_client import HttpClient
from guichet.providers.base import Provider
from guichet.providers.client import ProviderAccount
from guichet.providers.families import FAMILIES
from guichet.providers.registry import SANDBOX, UNCONNECTED, Registry
from guichet.settings import SettingsError

SIMULATOR_PATH: Final = "/simulator/"
_NAME: Final = re.compile(r"[a-z0-9_]{1,64}")
_COMMON: Final = ("family", "base_url")


class ProvidersFileError(SettingsError):
    """The operators' file is unusable; one sentence for the person who edited it."""


@dataclass(frozen=True, slots=True)
class ProvidersConfig:
    """Who can be asked (by name), and in which order for each operator code of the contract."""

    connections: Mapping[str, ProviderAccount]
    routes: Mapping[str, tuple[str, ...]]
    #: Where each connection stands: file and line.
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def simulated(self) -> list[str]:
        """Connections that lead to the simulator."""
        return [name for name, each in self.connections.items() if SIMULATOR_PATH in each.base_url]

    def registry(self, clock: Clock, http_client: HttpClient) -> Registry:
        built = {name: self._build(each, http_client, clock) for name, each in self.connections.items()}
        families: dict[str, list[str]] = defaultdict(list)
        for name, each in self.connections.items():
            families[each.family].append(name)
        return Registry(clock, built, self.routes, families)

    def _build(self, connection: ProviderAccount, http_client: HttpClient, clock: Clock) -> Provider:
        try:
            return FAMILIES[connection.family].build(connection, http_client, clock)
        except ValueError as error:
            where = self.sources.get(connection.name, "the operators' file")
            raise ProvidersFileError(f"{where}: [connections.{connection.name}] {error}.") from None


NO_PROVIDERS: Final = ProvidersConfig({}, {})


def read_providers_file(
    path: Path,
    environ: Mapping[str, str],
    operator_codes: Collection[str],
    placeholders: Mapping[str, str] | None = None,
) -> ProvidersConfig:
    """Raises OperatorsFileError: unreadable file, unknown family or setting, missing secret, route to nowhere.

    `{name}` in the text stands for the placeholder of that name.
    """
    text = path.read_text(encoding="utf-8")
    for name, value in (placeholders or {}).items():
        text = text.replace(f"{{{name}}}", value)
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProvidersFileError(f"{path.name}: {error}.") from None
    return _Reader(path.name, text, environ).operators(raw, operator_codes)


class _Reader:
    """Reads one file; every fault is found again in its text so that the line can be named."""

    def __init__(self, file: str, text: str, environ: Mapping[str, str]) -> None:
        self._file = file
        self._lines = text.splitlines()
        self._environ = environ

    def operators(self, raw: Mapping[str, Any], codes: Collection[str]) -> ProvidersConfig:
        for key in raw:
            if key not in ("connections", "routes"):
                self._fault(f"[{key}]", None, "only [connections.NAME] and [routes] are known")
        connections = {name: self._connection(name, table) for name, table in raw.get("connections", {}).items()}
        routes = {code: self._route(code, names, connections, codes) for code, names in raw.get("routes", {}).items()}
        sources = {name: f"{self._file}, line {self._line(f'[connections.{name}]', None)}" for name in connections}
        return ProvidersConfig(connections, routes, sources)

    def _connection(self, name: str, table: object) -> ProviderAccount:
        section = f"[connections.{name}]"
        if not _NAME.fullmatch(name) or name in (SANDBOX, UNCONNECTED):
            self._fault(
                section, None, "a name is 1 to 64 small letters, digits and underscores, and not a reserved one"
            )
        if not isinstance(table, dict):
            self._fault(section, None, "must be a table")
        family = FAMILIES.get(str(table.get("family")))
        if family is None:
            self._fault(section, "family", f"must be one of {', '.join(FAMILIES)}")
        known = (*_COMMON, *family.required, *family.optional)
        settings = {key: self._setting(section, key, value, known) for key, value in table.items()}
        for key in (*_COMMON, *family.required):
            if not settings.get(key):
                self._fault(section, None, f"{key} is missing")
        url = urlsplit(settings["base_url"])
        if url.scheme not in ("http", "https") or not url.hostname:
            self._fault(section, "base_url", "must be an http or https address")
        own = {key: value for key, value in settings.items() if key not in _COMMON}
        return ProviderAccount(name, settings["family"], settings["base_url"].rstrip("/"), own)

    def _setting(self, section: str, key: str, value: object, known: Collection[str]) -> str:
        if key not in known:
            self._fault(section, key, f"is unknown (known: {', '.join(known)})")
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, str | int):
            return str(value)
        variable = value.get("env") if isinstance(value, dict) and len(value) == 1 else None
        if not isinstance(variable, str):
            self._fault(section, key, 'must be a text, or { env = "VARIABLE" } for a secret')
        if not self._environ.get(variable):
            self._fault(section, key, f"refers to {variable}, which is not in the environment")
        return self._environ[variable]

    def _route(
        self, code: str, names: object, connections: Mapping[str, ProviderAccount], codes: Collection[str]
    ) -> tuple[str, ...]:
        if code not in codes:
            self._fault("[routes]", code, "is not an operator code of the catalogue")
        if not isinstance(names, list) or not names or len(set(map(str, names))) != len(names):
            self._fault("[routes]", code, "must be a list of different connection names")
        for name in names:
            if name not in connections:
                self._fault("[routes]", code, f"leads to {name}, which is no connection of this file")
        return tuple(names)

    def _fault(self, section: str, key: str | None, problem: str) -> NoReturn:
        where = f"{section} {key}" if key else section
        raise ProvidersFileError(f"{self._file}, line {self._line(section, key)}: {where} {problem}.")

    def _line(self, section: str, key: str | None) -> int:
        inside = 0
        for number, line in enumerate(self._lines, 1):
            stripped = line.strip()
            if stripped.replace('"', "").replace(" ", "") == section:
                inside = number
                if key is None:
                    return number
            elif inside and stripped.startswith("["):
                break
            elif inside and key and re.match(rf'"?{re.escape(key)}"?\s*=', stripped):
                return number
        return inside or 1
