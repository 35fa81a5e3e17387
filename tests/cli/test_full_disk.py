"""`guichet serve` on a full disk: not ready, clear errors, and all by itself again when there is room."""

import asyncio
import json
import os
import resource
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guichet.settings import Settings
from reliability.postgresql import PostgresqlServer
from tests.cli.conftest import Cli, RunningCommand, cli_for, until
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.processes.failover import server_folder

ORDER = {"amount": 5000, "operator": "mtn", "phone_number": "2290197000002"}


def readiness(server: RunningCommand) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(server.address + "/readyz", timeout=PATIENCE) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def pay(server: RunningCommand, key: str, number: int) -> tuple[int, Any]:
    return server.call("POST", "/v1/payments", key, {**ORDER, "external_id": f"order-{number}"})


def refused_and_recovered(server: RunningCommand, key: str, reason: str) -> Iterator[None]:
    """Before the first step writes work; before the second none does; after it they work again."""
    assert readiness(server)[0] == 200
    assert pay(server, key, 1)[0] == 201
    yield
    until(lambda: readiness(server)[0] == 503)
    assert readiness(server)[1]["reason"] == reason
    yield
    until(lambda: readiness(server)[0] == 200)
    assert [pay(server, key, number)[0] for number in (1, 2)] == [201, 201]
    server.stop()


def test_a_file_that_may_not_grow_is_not_ready_until_it_may(sqlite_cli: Cli) -> None:
    """The limit on the size of files stands for a full disk: it needs no rights."""
    key = sqlite_cli("merchant", "create", "Awa", "--json").json["keys"]["test"]
    with sqlite_cli.running("serve") as server:
        pid = server.process.pid
        _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        steps = refused_and_recovered(server, key, "the database is unavailable")
        next(steps)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, most))
        next(steps)
        status, body = pay(server, key, 2)
        assert (status, body["error"]["code"]) == (500, "server_error")
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
        assert next(steps, "the end") == "the end"


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if os.getuid() != 0 or done.returncode != 0:
        pytest.skip("only root may mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", "16m") as folder:
        yield folder


def fill(file: Path) -> None:
    with file.open("ab", buffering=0) as filling, suppress(OSError):
        while filling.write(b"x" * 65536):
            pass
    with file.open("ab", buffering=0) as filling, suppress(OSError):
        while filling.write(b"x" * 4096):
            pass


def test_a_disk_filled_by_somebody_else_is_not_ready_until_there_is_room(
    sqlite_settings: Settings, small_disk: Path
) -> None:
    settings = replace(sqlite_settings, database_url=f"sqlite:///{small_disk}/guichet.db")
    cli = cli_for(settings)
    key = cli("merchant", "create", "Awa", "--json").json["keys"]["test"]
    filling = small_disk / "filling"
    with cli.running("serve") as server:
        steps = refused_and_recovered(server, key, "the disk is full")
        next(steps)
        fill(filling)
        next(steps)
        filling.unlink()
        assert next(steps, "the end") == "the end"


@pytest.fixture
def postgres_on_a_small_disk(sqlite_settings: Settings) -> Iterator[tuple[Settings, Path]]:
    """The settings of a database of its own, and the disk that it is on."""
    with server_folder() as folder, mounted(folder / "disk", "160m") as disk, asyncio.Runner() as runner:
        disk.chmod(0o755)
        server = PostgresqlServer(disk, free_port())
        runner.run(server.start())
        try:
            url = runner.run(server.create_database("guichet"))
            yield replace(sqlite_settings, database_url=url), disk
        finally:
            runner.run(server.kill())


def test_postgresql_whose_disk_is_full_is_not_ready_until_there_is_room(
    postgres_on_a_small_disk: tuple[Settings, Path],
) -> None:
    """What is written to a page that is there already works on a full disk, but a payment needs new pages."""
    settings, disk = postgres_on_a_small_disk
    cli = cli_for(settings)
    cli("migrate")
    key = cli("merchant", "create", "Awa", "--json").json["keys"]["test"]
    filling = disk / "filling"
    with cli.running("serve") as server:
        steps = refused_and_recovered(server, key, "the disk is full")
        next(steps)
        fill(filling)
        next(steps)
        assert "nothing can be written: the disk is full" in cli("doctor").out
        filling.unlink()
        assert next(steps, "the end") == "the end"


def test_a_postgresql_that_accepts_no_connection_for_want_of_room_is_called_full(
    postgres_on_a_small_disk: tuple[Settings, Path],
) -> None:
    settings, disk = postgres_on_a_small_disk
    cli = cli_for(settings)
    cli("migrate")
    for file in disk.rglob("pg_internal.init"):  # The next connection writes it again.
        file.unlink()
    fill(disk / "filling")
    refusal = cli("doctor").refusal
    assert "disk is full" in refusal
    assert "GUICHET_DATABASE_URL" not in refusal
