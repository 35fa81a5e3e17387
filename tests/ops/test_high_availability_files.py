"""docs/operations/ha: each program accepts its file as it stands there, and the files agree with each other.

`make ha` runs all of them together (docs/reliability.md); this is the short slice of it.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped,unused-ignore]

from guichet.db.postgres.pool import READ_CONNECTIONS, WRITE_CONNECTIONS
from guichet.settings import load
from reliability.ha.cluster import ADDRESSES, environment_file
from reliability.network import Machine
from tests.cli.conftest import ROOT
from tests.conftest import SECRET_KEY

FILES: Final = ROOT / "docs" / "operations" / "ha"
HAPROXY: Final = (FILES / "haproxy.cfg").read_text(encoding="utf-8")
PATRONI: Final[dict[str, Any]] = yaml.safe_load((FILES / "patroni.yml").read_text(encoding="utf-8"))
PGBOUNCER: Final = (FILES / "pgbouncer.ini").read_text(encoding="utf-8")


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin")
    if found is None:
        pytest.skip(f"LOUD: {name} is not installed, its file in docs/operations/ha is not checked")
    return found


@pytest.mark.parametrize("file", ["haproxy.cfg", "haproxy-two-machines.cfg"])
def test_haproxy_accepts_its_file(file: str) -> None:
    checked = subprocess.run(
        [_program("haproxy"), "-c", "-f", FILES / file], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, "WARNING" in checked.stderr) == (0, False), checked.stderr


def test_patroni_accepts_its_file(tmp_path: Path) -> None:
    machine = Machine("db-a", ADDRESSES["db-a"], tmp_path, "")
    environ = {"PATH": os.environ["PATH"], **environment_file("patroni.env", machine)}
    checked = subprocess.run(
        [_program("patroni"), "--validate-config", FILES / "patroni.yml"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    # The address is not this machine's, PostgreSQL may not be installed, and the other two are optional.
    ignored = re.compile(r"^(restapi|postgresql)\.listen |bin_dir|data_dir|bootstrap\.pg_hba|authentication\.rewind")
    faults = [line for line in (checked.stdout + checked.stderr).splitlines() if line and not ignored.search(line)]
    assert not faults, faults


def test_the_lock_outlasts_every_retry_of_its_holder() -> None:
    """Otherwise two machines may believe that they are the primary (Patroni's own rule)."""
    settings = PATRONI["bootstrap"]["dcs"]
    assert settings["loop_wait"] + 2 * settings["retry_timeout"] <= settings["ttl"]
    assert settings["synchronous_mode"] is settings["synchronous_mode_strict"] is True
    assert settings["postgresql"]["parameters"]["synchronous_commit"] == "on"


def test_the_files_name_the_same_machines_and_ports(tmp_path: Path) -> None:
    machines = [Machine(name, address, tmp_path, "") for name, address in ADDRESSES.items()]
    for machine in machines:
        etcd, patroni = environment_file("etcd.env", machine), environment_file("patroni.env", machine)
        assert f"{machine.name}=http://{machine.address}:2380" in etcd["ETCD_INITIAL_CLUSTER"].split(",")
        assert f"{machine.address}:2379" in PATRONI["etcd3"]["hosts"]
        port = patroni["PATRONI_RESTAPI_LISTEN"].rpartition(":")[2]
        assert f"server {machine.name} {patroni['PATRONI_POSTGRESQL_LISTEN']} check port {port}" in HAPROXY
    assert "on-marked-down shutdown-sessions" in HAPROXY, "sessions of a primary that was replaced would stay open"


def test_guichet_reaches_the_primary_through_pgbouncer_and_directly() -> None:
    lines = (FILES / "guichet.env").read_text(encoding="utf-8").splitlines()
    variables = dict(line.split("=", 1) for line in lines if line.startswith("GUICHET_"))
    settings = load({**variables, "GUICHET_SECRET_KEYS": SECRET_KEY})
    assert settings.pgbouncer
    assert ":6432/" in settings.database_url
    assert "listen_port = 6432" in PGBOUNCER
    assert settings.listen_url is not None
    assert ":5000/" in settings.listen_url
    assert "port=5000" in PGBOUNCER
    assert "bind 127.0.0.1:5000" in HAPROXY
    assert "pool_mode = transaction" in PGBOUNCER


def test_writes_that_wait_for_a_standby_leave_connections_for_reads() -> None:
    """PgBouncer has one pool for both."""
    (pool,) = re.findall(r"^default_pool_size = (\d+)$", PGBOUNCER, re.MULTILINE)
    processes = len(set(re.findall(r"^ +server (serve-\d)", HAPROXY, re.MULTILINE))) + 1
    assert int(pool) >= WRITE_CONNECTIONS * processes + 2 * READ_CONNECTIONS
    (clients,) = re.findall(r"^max_client_conn = (\d+)$", PGBOUNCER, re.MULTILINE)
    assert int(clients) > (WRITE_CONNECTIONS + READ_CONNECTIONS) * processes
    in_all = PATRONI["bootstrap"]["dcs"]["postgresql"]["parameters"]["max_connections"]
    assert in_all > 3 * int(pool)


def test_haproxy_asks_postgresql_who_the_primary_is() -> None:
    """PostgreSQL's protocol, message by message."""
    text = (FILES / "haproxy-two-machines.cfg").read_text(encoding="utf-8")
    sent = b"".join(bytes.fromhex(each) for each in re.findall(r"tcp-check send-binary (\w+)", text))
    start, sent = sent[: int.from_bytes(sent[:4])], sent[int.from_bytes(sent[:4]) :]
    assert start[4:] == (3 << 16).to_bytes(4) + b"user\0guichet_check\0database\0postgres\0\0"
    question = b"SELECT pg_is_in_recovery()\0"
    assert sent == b"Q" + (4 + len(question)).to_bytes(4) + question + b"X" + (4).to_bytes(4)
    row = b"D" + (11).to_bytes(4) + (1).to_bytes(2) + (1).to_bytes(4)
    (waited_for,) = re.findall(r"tcp-check expect rbinary (\S+)", text)
    assert all(re.fullmatch(waited_for, (row + answer).hex().upper()) for answer in (b"f", b"t"))
    (accepted,) = re.findall(r"tcp-check expect min-recv 1 binary (\w+)", text)
    assert bytes.fromhex(accepted) == row + b"f"
