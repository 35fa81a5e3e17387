"""`guichet serve` on a full disk: not ready, clear errors, and all by itself again when there is room."""

import json
import os
import resource
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guichet.settings import Settings
from tests.cli.conftest import Cli, RunningCommand, cli_for, until

ORDER = {"amount": 5000, "operator": "mtn", "phone_number": "2290197000002"}


def readiness(server: RunningCommand) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(server.address + "/readyz", timeout=5) as answer:
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
    until(lambda: readiness(server)[0] == 503, 10)
    assert readiness(server)[1]["reason"] == reason
    yield
    until(lambda: readiness(server)[0] == 200, 10)
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


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if os.getuid() != 0 or mounted.returncode != 0:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


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
        with pytest.raises(OSError, match="No space"):
            filling.write_bytes(b"x" * 32 * 1024 * 1024)
        next(steps)
        filling.unlink()
        assert next(steps, "the end") == "the end"
