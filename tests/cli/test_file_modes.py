"""What Guichet writes is private, and what was not is made so at the start, whatever the umask: commands of tests begin
with one that takes nothing away."""

import json
import stat
from pathlib import Path
from typing import Any

from guichet.settings import Settings
from tests.cli.conftest import Cli, answers, cli_for
from tests.patience import PATIENCE


def modes(folder: Path) -> dict[str, str]:
    """The mode of the folder (".") and of all that is in it."""
    found = {".": folder, **{str(path.relative_to(folder)): path for path in folder.rglob("*")}}
    return {name: f"{stat.S_IMODE(path.stat().st_mode):04o}" for name, path in found.items()}


def test_a_new_data_folder_is_private_whatever_the_umask(fresh: Cli) -> None:
    """The demonstration writes all there is: database, key, keys of the merchant, the simulator's state."""
    home = fresh.folder / "deep" / "var"
    with fresh.having(GUICHET_HOME=str(home)).running("demo") as demo:
        assert answers(f"{demo.address}/simulator/phone")
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
    with sqlite_cli.running("serve") as server:
        assert modes(home)["."] == "0700"
        assert {name: mode for name, mode in modes(home).items() if name.startswith("guichet.db")} == dict.fromkeys(
            ("guichet.db", "guichet.db-wal", "guichet.db-shm"), "0600"
        )
        server.process.terminate()
        assert "files.tightened" in "".join(server.process.communicate(timeout=PATIENCE))
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
    statement = sqlite_cli.folder / "statement.csv"
    statement.write_text("reference,amount\nx,1\n")
    found = sqlite_cli("reconcile", "mtn", statement, "--csv", sqlite_cli.folder / "differences.csv")
    path = sqlite_cli.folder / "differences.csv"
    assert path.exists(), found
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def _modes_check(cli: Cli) -> dict[str, Any]:
    return dict(json.loads(cli("doctor", "--json").out)["checks"]["modes of files"])
