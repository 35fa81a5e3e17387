"""The database pages of docs/operations: their commands can be run as they stand, and agree with the files beside
them (docs/operations/two-hosts).

`make machines` runs all of them (docs/reliability.md); this is the short slice of it.
"""

import re
import subprocess
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest

from guichet.settings import load
from reliability.machines.hosts import APP, DATABASES
from reliability.machines.pages import FAILOVER, OPERATIONS, PGBOUNCER, SETUP, SWITCHOVER, Step, steps
from tests.conftest import SECRET_KEY

FILES: Final = OPERATIONS / "two-hosts"
#: Every title whose commands the trial runs.
TITLES: Final = [
    (SETUP, "Setting it up"),
    (SETUP, "Two standbys"),
    (SWITCHOVER, "Before"),
    (SWITCHOVER, "Stop the primary"),
    (SWITCHOVER, "Promote the standby"),
    (SWITCHOVER, "The old primary becomes the standby"),
    (FAILOVER, "It can be reached"),
    (FAILOVER, "Neither"),
    (FAILOVER, "3. Promote the standby"),
    (FAILOVER, "With two standbys"),
    (FAILOVER, "4. Rejoin the old primary"),
    (FAILOVER, "5. Wait for the standby again"),
    (FAILOVER, "6. Lift the fence"),
    (FAILOVER, "A new copy instead"),
    (PGBOUNCER, "Setting it up"),
]
STEPS: Final = [step for page, title in TITLES for step in steps(page, title)]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.commands[:40])
def test_a_block_names_a_machine_and_a_user_and_is_a_script(step: Step) -> None:
    assert {*step.machines} <= {APP[0], *DATABASES}
    assert step.user in {"root", "postgres"}
    checked = subprocess.run(["bash", "-n"], input=step.commands, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_exchanged_twice_is_the_same() -> None:
    for step in STEPS:
        assert step.exchanged().exchanged() == step
    assert steps(FAILOVER, "Neither")[0].exchanged().commands == "ip route replace unreachable 10.77.0.12/32\n"


def test_nothing_that_differs_between_the_hosts_stands_in_the_data_folder() -> None:
    """`ALTER SYSTEM` and `-R` write there, and a copy or pg_rewind would bring it to the other host."""
    for step in STEPS:
        assert "ALTER SYSTEM" not in step.commands
        assert not re.search(r"pg_(basebackup|rewind)[^\n]* -R\b", step.commands)


def test_a_host_is_a_standby_before_it_is_started_again() -> None:
    """Started without `standby.signal`, an old primary would be a second one."""
    for page, title in (
        (SWITCHOVER, "The old primary becomes the standby"),
        (FAILOVER, "4. Rejoin the old primary"),
        (FAILOVER, "A new copy instead"),
    ):
        text = "".join(step.commands for step in steps(page, title))
        assert text.index("standby.signal") < text.index("pg_ctlcluster 15 main start")


def test_the_primary_is_fenced_before_the_promotion() -> None:
    text = FAILOVER.read_text(encoding="utf-8")
    assert text.index("## 2. Fence the old primary") < text.index("pg_ctlcluster 15 main promote")
    assert "echo manual > /etc/postgresql/15/main/start.conf" in SETUP.read_text(encoding="utf-8")


def test_guichet_checks_who_answers_in_the_databases_place() -> None:
    lines = (FILES / "guichet.env").read_text(encoding="utf-8").splitlines()
    variables = dict(line.split("=", 1) for line in lines if line.startswith("GUICHET_"))
    settings = load({**variables, "GUICHET_SECRET_KEYS": SECRET_KEY})
    options = parse_qs(urlsplit(settings.database_url).query)
    assert options["sslmode"] == ["verify-full"]
    assert options["target_session_attrs"] == ["primary"]
    assert f"ca.crt {options['sslrootcert'][0]}" in SETUP.read_text(encoding="utf-8")


def test_the_hosts_find_each_other_under_the_names_of_their_slots() -> None:
    config = (FILES / "guichet.conf").read_text(encoding="utf-8")
    for host in DATABASES:
        letter = host[-1]
        assert f"guichet_{letter}" in FAILOVER.read_text(encoding="utf-8") + SETUP.read_text(encoding="utf-8")
        for name in ("application_name=guichet_THIS", "primary_slot_name = 'guichet_THIS'"):
            assert name in config
    for line in (FILES / "pg_hba.conf").read_text(encoding="utf-8").splitlines():
        assert line.startswith(("#", "hostssl ")), "a connection without TLS would be allowed"
