"""docs/operations/backup.md: its own commands archive, back up and restore, from a primary with the settings of
docs/operations/two-hosts, on Debian's PostgreSQL."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from reliability.machines.pages import OPERATIONS, Step, steps
from reliability.network import Machine
from tests.cli.conftest import ROOT
from tests.conftest import SECRET_KEY

BACKUP: Final = OPERATIONS / "backup.md"
BASE: Final = "PostgreSQL: base backup and WAL archive (point-in-time recovery)"
#: Folders and files of the system that the trial has of its own.
OWN: Final = (
    "/etc/hosts", "/etc/postgresql", "/var/lib/postgresql", "/var/log/postgresql", "/run/postgresql", "/backup",
    "/usr/local/bin",
)  # fmt: skip
PSQL: Final = "psql -X -v ON_ERROR_STOP=1 -At"


@pytest.fixture
def machine() -> Iterator[Machine]:
    """Both hosts of the page in one: a namespace with both addresses, which nothing leaves."""
    if not Path("/usr/lib/postgresql/15/bin/postgres").exists() or shutil.which("pg_createcluster") is None:
        pytest.skip("LOUD: Debian's postgresql-15 is not installed, restoring a backup is not tested")
    if os.getuid() != 0 or Path("/run/systemd/system").exists():
        pytest.skip("LOUD: restoring a backup needs root, and no systemd that starts PostgreSQL")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="guichet-restore-")))
        folder.chmod(0o755)  # The server belongs to another user.
        made = Machine("db-b", "10.77.0.12", folder, f"guichet-restore-{os.getpid()}", OWN)
        made.prepare("postgres")
        if not Path("/backup").exists():
            Path("/backup").mkdir()
            stack.callback(Path("/backup").rmdir)
        subprocess.run(["ip", "netns", "add", made.namespace], check=True)
        stack.callback(subprocess.run, ["ip", "netns", "delete", made.namespace], check=False)
        stack.callback(made.send_signal, signal.SIGKILL)
        for command in ("link set lo up", "address add 10.77.0.11/24 dev lo", "address add 10.77.0.12/24 dev lo"):
            subprocess.run(["ip", "-n", made.namespace, *command.split()], check=True)
        yield made


def run(machine: Machine, commands: str, user: str = "root") -> str:
    environ = {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "GUICHET_SECRET_KEYS": SECRET_KEY,
    }
    home = {"root": "/root", "postgres": "/var/lib/postgresql"}[user]
    script = f"cd {home}\n{commands}"
    done = subprocess.run(
        machine.command("bash", "-euo", "pipefail", "-c", script, user=user, environ={**environ, "HOME": home}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}"
    return done.stdout


def set_up(machine: Machine) -> None:
    """A primary as the pages make it: more connections than Debian's default, the archive, the role of replication."""
    machine.own_path("/etc/hosts").write_text(
        "127.0.0.1 localhost\n10.77.0.11 db-a.internal\n10.77.0.12 db-b.internal\n"
    )
    shutil.copy(OPERATIONS / "archive-wal.sh", machine.own_path("/usr/local/bin") / "archive-wal")
    run(machine, "pg_createcluster 15 main --port 5432 && install -d -o postgres -g postgres /backup/wal")
    (archive,) = re.findall(
        r"^```ini\n(# postgresql.conf of .*?)^```$", BACKUP.read_text(encoding="utf-8"), re.M | re.S
    )
    guichet_conf = (OPERATIONS / "two-hosts" / "guichet.conf").read_text(encoding="utf-8")
    settings = re.sub(r"^primary_\w+ = .*\n", "", guichet_conf, flags=re.M) + archive
    folder = machine.own_path("/etc/postgresql") / "15" / "main"
    (folder / "conf.d" / "guichet.conf").write_text(settings, encoding="utf-8")
    with (folder / "pg_hba.conf").open("a") as rules:
        rules.write((OPERATIONS / "two-hosts" / "pg_hba.conf").read_text(encoding="utf-8"))
    run(
        machine,
        "cd /etc/postgresql/15/main && openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=db-a.internal"
        " -keyout server.key -out server.crt && chown postgres server.key && pg_ctlcluster 15 main start",
    )
    run(machine, "echo '*:5432:*:replicator:change-me' > .pgpass && chmod 0600 .pgpass", "postgres")
    run(machine, f"psql -X -f {OPERATIONS / 'two-hosts' / 'roles.sql'}", "postgres")


def step_of(title: str, containing: str) -> Step:
    (found,) = [step for step in steps(BACKUP, title) if containing in step.commands]
    return found


def test_the_pages_own_commands_restore_to_a_point_in_time(machine: Machine) -> None:
    set_up(machine)
    live = "export GUICHET_HOME=$(mktemp -d) GUICHET_DATABASE_URL=postgresql://guichet:change-me@10.77.0.11/guichet\n"
    run(machine, f"{live}guichet migrate && guichet merchant create Before --json")
    base = step_of(BASE, "pg_basebackup")
    run(machine, base.commands, base.user)
    run(machine, f"{live}guichet merchant create After --json")
    at = run(machine, f"{PSQL} -c 'SELECT pg_switch_wal()' -c 'SELECT now()' -d guichet", "postgres").splitlines()[-1]
    run(machine, f"{PSQL} -d guichet -c 'DROP TABLE postings CASCADE'", "postgres")
    segment = run(machine, f"{PSQL} -c 'SELECT pg_walfile_name(pg_switch_wal())'", "postgres").strip()
    run(machine, f"timeout 30 sh -c 'until [ -e /backup/wal/{segment} ]; do sleep 0.1; done'")

    for wanted in ("pg_createcluster", "audit-log verify"):
        step = step_of("Restoring to a point in time", wanted)
        run(machine, re.sub(r"(?<=recovery_target_time = ').*(?=')", at, step.commands), step.user)
    names = run(machine, f"{PSQL} -p 5433 -d guichet -c 'SELECT name FROM merchants ORDER BY id'", "postgres")
    assert names.split() == ["Before", "After"]
    step = step_of("Restoring to a point in time", "pg_dropcluster")
    run(machine, step.commands, step.user)
    assert json.loads(run(machine, "pg_lsclusters --json"))[0]["cluster"] == "main"


def test_the_commands_are_scripts() -> None:
    for step in steps(BACKUP, BASE):
        subprocess.run(["bash", "-n", "-c", step.commands], check=True)
        assert shlex.split(step.commands, comments=True)
