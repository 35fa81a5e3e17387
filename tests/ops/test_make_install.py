"""`make install`: an installation that stopped in the middle is made again, and a missing `venv` is named."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT
from tests.patience import PATIENCE

#: In place of Python. `-m venv` makes a `.venv` with this program and a pip, unless `no-ensurepip` stands beside it.
PYTHON = """#!/bin/sh
here={folder}
[ "$1" = -c ] && exit 0
[ "$2" = pip ] && {{ [ -e .venv/bin/pip ]; exit; }}
mkdir -p .venv/bin
cp "$0" .venv/bin/python
[ -e "$here/no-ensurepip" ] && exit 1
cp "$here/pip" .venv/bin/pip
echo venv >> "$here/done"
"""
#: Fails at the file that `broken` names.
PIP = """#!/bin/sh
here={folder}
echo "pip $*" >> "$here/done"
[ ! -e "$here/broken" ] || case "$*" in *"$(cat "$here/broken")"*) touch .venv/half; exit 1;; esac
"""


class Checkout:
    def __init__(self, folder: Path) -> None:
        self.folder, self.tools = folder / "guichet", folder / "tools"
        self.tools.mkdir()
        self.folder.mkdir()
        for name in ("Makefile", "pyproject.toml"):
            shutil.copy(ROOT / name, self.folder)
        shutil.copytree(ROOT / "requirements", self.folder / "requirements")
        for name, text in (("python", PYTHON), ("pip", PIP)):
            (self.tools / name).write_text(text.format(folder=self.tools))
            (self.tools / name).chmod(0o755)

    @property
    def venv(self) -> Path:
        return self.folder / ".venv"

    def make(self, target: str = "install") -> subprocess.CompletedProcess[str]:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        return subprocess.run(
            ["make", target, f"PYTHON={self.tools / 'python'}"],
            cwd=self.folder, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip

    def done(self) -> list[str]:
        """What was run since the last look: `venv` and `pip`."""
        file = self.tools / "done"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return [line.split()[0] for line in lines]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_it_installs_once(checkout: Checkout) -> None:
    assert checkout.make().returncode == 0
    assert checkout.done() == ["venv", "pip", "pip"]
    assert checkout.make().returncode == 0
    assert checkout.done() == []


def test_a_python_that_makes_no_venv_is_named_and_leaves_nothing(checkout: Checkout) -> None:
    lacking = checkout.tools / "no-ensurepip"
    lacking.touch()
    ran = checkout.make()
    assert ran.returncode != 0
    assert "apt install python3-venv" in ran.stderr
    assert not checkout.venv.exists()
    lacking.unlink()
    assert checkout.make().returncode == 0
    assert checkout.done() == ["venv", "pip", "pip"]


@pytest.mark.parametrize("file", ["requirements/runtime.txt", "-e ."])
def test_an_interrupted_installation_begins_again(checkout: Checkout, file: str) -> None:
    (checkout.tools / "broken").write_text(file)
    assert checkout.make().returncode != 0
    (checkout.tools / "broken").unlink()
    checkout.done()
    assert checkout.make().returncode == 0
    assert checkout.done() == ["venv", "pip", "pip"]
    assert not (checkout.venv / "half").exists()


def test_interrupted_development_tools_begin_again_with_everything(checkout: Checkout) -> None:
    assert checkout.make(".venv/runtime").returncode == 0
    (checkout.tools / "broken").write_text("requirements/dev.txt")
    assert checkout.make(".venv/dev").returncode != 0
    (checkout.tools / "broken").unlink()
    checkout.done()
    assert checkout.make().returncode == 0
    assert checkout.done() == ["venv", "pip", "pip"]


def test_a_venv_made_by_half_in_another_way_is_repaired(checkout: Checkout) -> None:
    """As `python3 -m venv` leaves it on a Debian without python3-venv: a Python and no pip."""
    (checkout.venv / "bin").mkdir(parents=True)
    shutil.copy(checkout.tools / "python", checkout.venv / "bin" / "python")
    assert checkout.make().returncode == 0
    assert checkout.done() == ["venv", "pip", "pip"]
