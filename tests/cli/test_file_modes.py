"""What Guichet writes is private, whatever the umask; what was not is made so at the start."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from guichet.settings import Settings
from tests.cli.conftest import Cli, answers, cli_for, until
from tests.ports import free_port


@contextmanager
def running_with_umask_0(cli: Cli, *arguments: str) -> Iterator[str]:
    """The real command in a shell whose umask takes nothing away, until it is ready; its address."""
    port = free_port()
    guichet = (sys.executable, "-m", "guichet", *arguments, "--port", str(port))
    command = ["sh", "-c", 'umask 000; exec "$0" "$@"', *guichet]
    log = cli.folder / "output"
    with (
        log.open("wb") as output,
        subprocess.Popen(command, env=dict(cli.environ), cwd=cli.folder, stdout=output, stderr=output) as process,
    ):
        try:
            until(lambda: process.poll() is not None or answers(f"http://127.0.0.1:{port}/readyz"), 30)
            assert process.poll() is None, log.read_text()
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(20)


def modes(folder: Path) -> dict[str, str]:
    """The mode of the folder (".") and of all that is in it."""
    found = {".": folder, **{str(path.relative_to(folder)): path for path in folder.rglob("*")}}
    return {name: f"{stat.S_IMODE(path.stat().st_mode):04o}" for name, path in found.items()}


def test_a_new_data_folder_is_private_whatever_the_umask(fresh: Cli) -> None:
    """The demonstration writes all there is: database, key, keys of the merchant, the simulator's state."""
    home = fresh.folder / "deep" / "var"
    with running_with_umask_0(fresh.having(GUICHET_HOME=str(home)), "demo") as address:
        assert answers(f"{address}/simulator/phone")
        found = modes(home)
        databases = {f"{name}.db{suffix}" for name in ("guichet", "simulator") for suffix in ("", "-wal", "-shm")}
        assert databases | {"secret.key", "demo.json"} <= found.keys()
        assert found.pop(".") == "0700"
        assert set(found.values()) == {"0600"}, found
        assert modes(home.parent)["."] == "0700"


def test_files_of_an_earlier_version_are_made_private_at_the_start(sqlite_cli: Cli) -> None:
    home = Path(sqlite_cli.environ["GUICHET_HOME"])
    sqlite_cli("merchant", "create", "Awa")
    (home / "guichet.db").chmod(0o644)
    home.chmod(0o755)
    said = {each.partition(" has mode ")[0] for each in _modes_check(sqlite_cli)["problems"]}
    assert said >= {str(home), str(home / "guichet.db")}
    with running_with_umask_0(sqlite_cli, "serve"):
        assert modes(home)["."] == "0700"
        assert {name: mode for name, mode in modes(home).items() if name.startswith("guichet.db")} == dict.fromkeys(
            ("guichet.db", "guichet.db-wal", "guichet.db-shm"), "0600"
        )
    assert "files.tightened" in (home / "output").read_text()
    assert _modes_check(sqlite_cli)["ok"] is True


def test_a_folder_that_everybody_shares_is_left_as_it_is(sqlite_settings: Settings, tmp_path: Path) -> None:
    """Closing `/tmp` would break the machine."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    cli = cli_for(sqlite_settings).having(GUICHET_HOME=str(shared))
    assert cli("migrate").code == 0
    assert modes(shared)["."] == "1777"


def test_an_export_is_private(sqlite_cli: Cli) -> None:
    before = os.umask(0)
    try:
        statement = sqlite_cli.folder / "statement.csv"
        statement.write_text("reference,amount\nx,1\n")
        found = sqlite_cli("reconcile", "mtn", statement, "--csv", sqlite_cli.folder / "differences.csv")
        path = sqlite_cli.folder / "differences.csv"
        assert path.exists(), found
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def _modes_check(cli: Cli) -> dict[str, Any]:
    return dict(json.loads(cli("doctor", "--json").out)["checks"]["modes of files"])
