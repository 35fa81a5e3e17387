"""`docs/operations/systemd/as_guichet`: what it asks of systemd, and what it says instead."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT
from tests.patience import PATIENCE

SCRIPT = ROOT / "docs" / "operations" / "systemd" / "as_guichet"


class Machine:
    """A folder in place of `/opt/guichet`, a `systemd-run` that prints its arguments, and a user."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.opt = folder / "bin", folder / "opt"
        self.bin.mkdir()
        self.script = folder / "as_guichet"
        self.script.write_text(SCRIPT.read_text(encoding="utf-8").replace("/opt/guichet", str(self.opt)))
        self.program("systemd-run", 'for each in "$@"; do printf "%s\\n" "$each"; done; exit 7')
        self.user(0)

    def program(self, name: str, text: str) -> None:
        file = self.bin / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    def user(self, number: int) -> None:
        self.program("id", f'[ "$1" = -u ] && echo {number} || echo root')
        self.program("logname", "exit 1")

    def release(self, version: str) -> None:
        folder = self.opt / "releases" / version / ".venv" / "bin"
        folder.mkdir(parents=True)
        (folder / "guichet").touch()

    def link(self, version: str) -> None:
        (self.opt / "current").symlink_to(f"releases/{version}")

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        inherited = {"PATH": f"{self.bin}:{os.environ['PATH']}"}
        return subprocess.run(
            ["sh", str(self.script), *arguments],
            env={**inherited, **environ}, capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    for version in ("1.0.0", "1.1.0"):
        made.release(version)
    made.link("1.0.0")
    return made


def test_a_command_runs_as_the_service_with_its_arguments(machine: Machine) -> None:
    ran = machine.run("merchant", "create", "Boutique  d'Awa", "--status", "pending", SUDO_USER="zoe")
    assert ran.returncode == 7, "the command's own exit code"
    options, _, command = ran.stdout.partition("\n--\n")
    assert command.splitlines() == [
        f"{machine.opt}/current/.venv/bin/guichet", "merchant", "create", "Boutique  d'Awa", "--status", "pending",
    ]  # fmt: skip
    assert {
        "--wait", "--uid=guichet", "--gid=guichet", "--setenv=SUDO_USER=zoe",
        "--property=EnvironmentFile=/etc/guichet/guichet.env", "--working-directory=/var/lib/guichet",
    } <= set(options.splitlines())  # fmt: skip


def test_root_without_sudo_is_named_too(machine: Machine) -> None:
    assert "--setenv=SUDO_USER=root" in machine.run("doctor").stdout.splitlines()


def test_another_release_may_be_named(machine: Machine) -> None:
    ran = machine.run("--release", "1.1.0", "migrate", "--plan")
    assert ran.stdout.partition("\n--\n")[2].splitlines() == [
        f"{machine.opt}/releases/1.1.0/.venv/bin/guichet", "migrate", "--plan",
    ]  # fmt: skip


def test_a_release_that_is_not_there_and_a_user_who_may_not_are_told_so(machine: Machine) -> None:
    missing = machine.run("--release", "9.9.9", "doctor")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr.startswith(f"✗ There is no {machine.opt}/releases/9.9.9/.venv/bin/guichet")
    assert machine.run("--release").returncode != 0
    machine.user(1000)
    refused = machine.run("doctor")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("✗ as_guichet must be run by root")
