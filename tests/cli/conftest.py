"""The real command, in another process (child.py, shell.py), on a database of each kind."""

import json
import os
import re
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from guichet.settings import Settings
from tests.cli.child import Child
from tests.cli.shell import run_command
from tests.conftest import SECRET_KEY
from tests.patience import PATIENCE
from tests.ports import free_port

ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True)
class CommandResult:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on stdout; anything else there is a fault."""
        assert self.code == 0, self
        lines = self.out.splitlines()
        assert len(lines) == 1, self.out
        return json.loads(lines[0])

    @property
    def refusal(self) -> str:
        """The one sentence of exit code 1. A command that uses the database names it first."""
        assert self.code == 1, self
        assert self.out == ""
        assert "Traceback" not in self.err
        lines = [line for line in self.err.splitlines() if not line.startswith("Database: ")]
        assert len(lines) == 1, self.err
        assert lines[0].startswith("✗ ")
        return lines[0].removeprefix("✗ ")

    @property
    def misuse(self) -> str:
        assert self.code == 2, self
        assert "Traceback" not in self.err
        return re.sub(r"[\s│╭╮╰╯─]+", " ", self.err)


@dataclass
class RunningCommand:
    """A process that serves until it is stopped."""

    process: Child
    address: str

    def stop(self, with_signal: int = signal.SIGINT) -> None:
        """It ends by itself, with exit code 0."""
        self.process.send_signal(with_signal)
        self.ends()

    def ends(self) -> None:
        assert self.process.wait(timeout=PATIENCE) == 0

    def call(self, method: str, path: str, key: str, body: object = None) -> tuple[int, Any]:
        request = urllib.request.Request(
            self.address + path,
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {key}"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)


@dataclass(frozen=True)
class Cli:
    environ: Mapping[str, str]
    folder: Path

    def having(self, **variables: str) -> "Cli":
        return Cli({**self.environ, **variables}, self.folder)

    def __call__(self, *arguments: object) -> CommandResult:
        out, err = self.folder / "stdout", self.folder / "stderr"
        code = run_command([*map(str, arguments)], self.environ, self.folder, out, err)
        assert code is not None, "it did not end"
        return CommandResult(code, out.read_text(), err.read_text())

    def start(self, *arguments: object) -> Child:
        return Child([*map(str, arguments)], self.environ, self.folder)

    @contextmanager
    def running(self, *arguments: object, ready: str = "/readyz") -> Iterator[RunningCommand]:
        """`arguments` with a free `--port`, once `ready` answers 200."""
        port = free_port()
        with self.start(*arguments, "--port", port) as process:
            running = RunningCommand(process, f"http://127.0.0.1:{port}")
            try:
                until(lambda: process.poll() is not None or answers(running.address + ready))
                assert process.poll() is None, process.communicate()
                yield running
            finally:
                process.kill()


def until(condition: Callable[[], object]) -> float:
    """Waits until `condition()` holds. Returns when it last did not hold, in seconds."""
    started = time.monotonic()
    latest = 0.0
    while True:
        elapsed = time.monotonic() - started
        if condition():
            return latest
        assert elapsed < PATIENCE, "the condition did not come true in time"
        latest = elapsed
        time.sleep(0.02)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE):
            return True
    except (OSError, urllib.error.HTTPError):
        return False


def clean_environ(home: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GUICHET_")}
    return {**inherited, "PYTHONPATH": str(ROOT), "GUICHET_HOME": str(home), "COLUMNS": "100"}


def cli_for(settings: Settings) -> Cli:
    environ = {
        **clean_environ(settings.home),
        "GUICHET_DATABASE_URL": settings.database_url,
        "GUICHET_SECRET_KEYS": SECRET_KEY,
        "GUICHET_RATE_LIMIT": "0",
    }
    return Cli(environ, settings.home)


@pytest.fixture
def cli(settings: Settings) -> Cli:
    """On SQLite and on PostgreSQL, migrated."""
    return cli_for(settings)


@pytest.fixture
def sqlite_cli(sqlite_settings: Settings) -> Cli:
    return cli_for(sqlite_settings)


@pytest.fixture
def fresh(tmp_path: Path) -> Cli:
    """As a newcomer has it: no settings, nothing in the folder."""
    return Cli(clean_environ(tmp_path / "var"), tmp_path)


@pytest.fixture(scope="module")
def development(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """The command beside a running server of the development profile."""
    folder, port = tmp_path_factory.mktemp("serving"), free_port()
    address = f"http://127.0.0.1:{port}"
    cli = Cli({**clean_environ(folder / "var"), "GUICHET_PUBLIC_URL": address}, folder)
    with cli.start("serve", "--port", port) as server:
        try:
            until(lambda: answers(f"{address}/readyz"))
            yield cli
        finally:
            server.kill()
