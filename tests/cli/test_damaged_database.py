"""A damaged file of the embedded database: what the commands say, before and while it is served."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from guichet.settings import Settings
from tests.cli.conftest import Cli, until
from tests.cli.test_full_disk import ORDER, pay, readiness

#: Of a database page. The first one stays as it is in "the middle".
PAGE = 4096


def damage(path: Path, first: int) -> None:
    """Overwrites the file, and its log if there is one, from byte `first` on."""
    for each in (path, path.with_name(path.name + "-wal")):
        if each.exists() and (size := each.stat().st_size) > first:
            with each.open("r+b") as file:
                file.seek(first)
                file.write(b"\xa5" * (size - first))


def test_a_damaged_file_is_named_by_every_command(sqlite_cli: Cli, sqlite_settings: Settings) -> None:
    sqlite_cli("merchant", "create", "Awa")
    damage(sqlite_settings.sqlite_path, 0)
    for arguments in (("serve", "--port", 1), ("worker",), ("migrate",), ("doctor",), ("merchant", "list")):
        sentence = sqlite_cli(*arguments).refusal
        assert f"the database file {sqlite_settings.sqlite_path} is damaged" in sentence
        assert "restore a backup" in sentence


def test_doctor_finds_damage_in_the_middle_of_the_file(sqlite_cli: Cli, sqlite_settings: Settings) -> None:
    path = sqlite_settings.sqlite_path
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'ix_disputes_payment_id'"
        ).fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\xa5" * PAGE)
    found = sqlite_cli("doctor", "--json")
    assert found.code == 1
    (problem,) = json.loads(found.out)["checks"]["database file"]["problems"]
    assert f"{path} is damaged" in problem


def test_a_server_whose_file_is_damaged_answers_errors_and_is_not_ready(
    sqlite_cli: Cli, sqlite_settings: Settings
) -> None:
    key = sqlite_cli("merchant", "create", "Awa", "--json").json["keys"]["test"]
    with sqlite_cli.running("serve") as server:
        assert pay(server, key, 1)[0] == 201
        damage(sqlite_settings.sqlite_path, 0)
        until(lambda: readiness(server)[0] == 503)
        assert readiness(server)[1]["reason"] == "the database file is damaged"
        for method, path, body in (
            ("POST", "/v1/payments", ORDER),
            ("POST", "/v1/payments", ORDER),
            ("GET", "/v1/payments/order-1", None),
            ("GET", "/v1/payments", None),
        ):
            status, answer = server.call(method, path, key, body)
            assert (status, answer["error"]["code"]) == (500, "server_error")
        server.process.kill()
        assert server.process.stderr is not None
        log = server.process.stderr.read()
    assert f"{sqlite_settings.sqlite_path} is damaged" in log
    assert "restore a backup" in log
