"""An installation of Guichet for a trial: a folder, a database, ports, and the simulator as a server of its own."""

import base64
import hashlib
import tomllib
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Final

from guichet.provider_accounts import live_providers
from guichet.providers.providers_file import ProvidersConfig
from guichet.settings import Settings, load
from reliability.processes import ManagedProcess, clean_environ, guichet

HOST: Final = "127.0.0.1"
#: Not secret: the same in every trial, so that a folder can be opened again.
_SECRET_KEY: Final = base64.urlsafe_b64encode(hashlib.sha256(b"a trial of Guichet").digest()).decode()
#: Routes that begin with Orange's own accounts, which are otherwise only reached when others took nothing.
_ORANGE_FIRST: Final = {
    '"pawapay", "orange_ivory_coast", ': '"orange_ivory_coast", "pawapay", ',
    '"feexpay", "orange_mali"': '"orange_mali", "feexpay"',
}


@dataclass
class Installation:
    """`ports` are those of `guichet serve`, the first one is where providers send callbacks and customers find pages.

    `public_url`: where both are sent instead, such as a proxy. `variables`: more GUICHET_* settings.
    """

    folder: Path
    simulator_port: int
    ports: list[int]
    database_url: str | None = None
    public_url: str | None = None
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        packaged = (resources.files("guichet.data") / "simulated_providers.toml").read_text(encoding="utf-8")
        for usual, ours in _ORANGE_FIRST.items():
            assert usual in packaged, usual
            packaged = packaged.replace(usual, ours)
        self.providers_file.write_text(packaged.replace("{simulator}", self.simulator_url), encoding="utf-8")

    @property
    def simulator_url(self) -> str:
        return f"http://{HOST}:{self.simulator_port}/simulator"

    @property
    def simulator_db(self) -> Path:
        """The simulator's own file: what the providers really moved."""
        return self.folder / "simulator" / "simulator.db"

    @property
    def providers_file(self) -> Path:
        return self.folder / "providers.toml"

    @property
    def base_urls(self) -> list[str]:
        return [f"http://{HOST}:{port}" for port in self.ports]

    @property
    def environ(self) -> dict[str, str]:
        """For every `guichet …` command."""
        database = {"GUICHET_DATABASE_URL": self.database_url} if self.database_url else {}
        return {
            **clean_environ(),
            "GUICHET_HOME": str(self.folder / "home"),
            "GUICHET_PROFILE": "development",
            "GUICHET_PUBLIC_URL": self.public_url or self.base_urls[0],
            "GUICHET_PROVIDERS_FILE": str(self.providers_file),
            "GUICHET_SECRET_KEYS": _SECRET_KEY,
            "GUICHET_RATE_LIMIT": "0",
            "GUICHET_PAGE_RATE_LIMIT": "0",
            "GUICHET_LOG_LEVEL": "error",
            "PYTHONDONTWRITEBYTECODE": "",
            **database,
            **self.variables,
        }

    @property
    def settings(self) -> Settings:
        return load({name: value for name, value in self.environ.items() if name.startswith("GUICHET_")})

    @property
    def providers(self) -> ProvidersConfig:
        return live_providers(self.settings)

    @property
    def accounts(self) -> dict[str, dict[str, str]]:
        """The provider accounts by name, as the providers' file has them."""
        accounts: dict[str, dict[str, str]] = tomllib.loads(self.providers_file.read_text(encoding="utf-8"))["accounts"]
        return accounts

    def simulator(self) -> ManagedProcess:
        environ = self.environ | {"GUICHET_HOME": str(self.simulator_db.parent)}
        command = guichet("simulator", "--port", self.simulator_port)
        return self._process("simulator", command, f"{self.simulator_url}/control/scenarios", environ)

    def server(self, port: int, *options: object) -> ManagedProcess:
        command = guichet("serve", "--port", port, *options)
        return self._process(f"serve-{port}", command, f"http://{HOST}:{port}/readyz", self.environ)

    def worker(self, number: int) -> ManagedProcess:
        return self._process(f"worker-{number}", guichet("worker"), None, self.environ)

    def _process(self, name: str, command: list[str], ready_url: str | None, environ: dict[str, str]) -> ManagedProcess:
        return ManagedProcess(name, command, environ, self.folder / f"{name}.log", ready_url)
