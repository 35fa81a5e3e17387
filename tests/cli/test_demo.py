"""`guichet demo` and `guichet listen`: a newcomer's first five minutes."""

import json
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from guichet.clock import SECOND, SystemClock
from guichet.private_files import make_private_file, make_private_folder
from guichet.webhooks.sender import sign
from tests.cli.child import Child
from tests.cli.conftest import Cli, until
from tests.cli.demonstration import demo, demonstrated, stopped
from tests.patience import PATIENCE
from tests.ports import free_port

__all__ = ["demonstrated"]


@pytest.fixture
def after_demo(fresh: Cli, demonstrated: Path) -> Cli:
    """As it is when somebody starts the demo again."""
    shutil.copytree(demonstrated, fresh.folder / "var")
    return fresh


def pasted(command: str) -> dict[str, object]:
    """What a shell prints when `command` is pasted into it."""
    done = subprocess.run(shlex.split(command), capture_output=True, text=True, timeout=PATIENCE, check=True)
    answer: dict[str, object] = json.loads(done.stdout)
    assert answer["success"] is True, answer
    data = answer["data"]
    assert isinstance(data, dict)
    return data


def facts(text: str) -> dict[str, str]:
    return dict(re.findall(r"^  (\S[^\n]*?)  +(\S.*)$", text, re.MULTILINE))


def _base(shown: dict[str, str]) -> str:
    return shown["API base URL"].partition(" ")[0]


def test_the_printed_commands_and_links_work_and_a_second_demo_reuses_everything(fresh: Cli) -> None:
    seen, links = [], set()
    for _ in range(2):
        with demo(fresh) as (text, commands, process):
            assert len(text.splitlines()) <= 30
            _commands_work(text, commands)
            shown = facts(text)
            seen.append((shown["Test key"], shown["Live key"], shown["Webhook secret"]))
            for label, home in (("Sign in", "/console"), ("Sign in as staff", "/admin")):
                link = shown[label]
                assert link.startswith("http://localhost:")
                links.add(link)
                assert _leads_to(link) == f"303 {link.partition('/console/')[0]}{home}"
                assert _leads_to(link) == "410 "
            stopped(process)
    kept = fresh.folder / "var" / "demo.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert len(links) == 4, "links are new at each start"
    assert seen[0] == seen[1]
    assert [each["name"] for each in fresh("merchant", "list", "--json").json["merchants"]] == [
        "Boutique Démo",
        "Marché Démo",
    ]


def _commands_work(text: str, commands: list[str]) -> None:
    """Each run offers an order of its own."""
    assert len(commands) == 3
    payment = pasted(commands[0])
    assert (payment["status"], payment["amount"]) == ("pending", 5000)
    assert pasted(commands[1])["status"] == "succeeded"
    refund = pasted(commands[2])
    assert (refund["status"], refund["payment_reference"]) == ("succeeded", payment["reference"])
    assert pasted(commands[1])["status"] == "refunded"
    shown = facts(text)
    assert _base(shown).startswith("http://127.0.0.1:")
    assert _base(shown) in commands[0]
    assert shown["Webhook secret"].startswith("whsec_")
    assert shown["Live key"].startswith("sk_live_")


def _leads_to(link: str) -> str:
    """The status, and the address of a redirect."""
    command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{redirect_url}", link]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout


def test_demo_keys_are_added_to_another_database_and_replaced_once_revoked(cli: Cli) -> None:
    """Both kinds of database; the schema of the second one is made on the way."""
    with demo(cli) as (text, _, process):
        key = facts(text)["Test key"]
        stopped(process)
    other = cli.having(GUICHET_DATABASE_URL=f"sqlite:///{cli.folder / 'other.db'}")
    with demo(other) as (text, commands, process):
        assert facts(text)["Test key"] == key
        pasted(commands[0])
        stopped(process)
    for each in other("key", "list", 1, "--json").json["keys"]:
        other("key", "revoke", each["id"])
    with demo(other) as (text, commands, process):
        assert facts(text)["Test key"] != key
        pasted(commands[0])
        stopped(process)


def test_demo_refuses_production_and_a_damaged_file(fresh: Cli) -> None:
    key = fresh("secret-key").out.strip()
    production = fresh.having(
        GUICHET_PROFILE="production", GUICHET_SECRET_KEYS=key, GUICHET_PUBLIC_URL="https://pay.example.com"
    )
    for command in ("demo", "listen"):
        refusal = production(command).refusal
        assert refusal == "There is no demo merchant in production: GUICHET_PROFILE must be development."
    kept = fresh.folder / "var" / "demo.json"
    make_private_folder(kept.parent)
    make_private_file(kept)
    kept.write_text("{}")
    assert "demo.json is damaged: delete it" in fresh("demo", "--port", free_port()).refusal


def test_production_does_not_open_the_database_of_a_demonstration(cli: Cli) -> None:
    """Both kinds of database: its staff and its keys are open doors."""
    with demo(cli) as (_, _, process):
        stopped(process)
    production = cli.having(
        GUICHET_PROFILE="production",
        GUICHET_SECRET_KEYS=cli("secret-key").out.strip(),
        GUICHET_METRICS_TOKEN="m" * 32,
        GUICHET_PUBLIC_URL="https://pay.example.com",
    )
    for command in (("serve", "--port", "0"), ("worker",), ("merchant", "list")):
        refusal = production(*command).refusal
        assert "this database is that of a demonstration" in refusal
        assert "Start with a new, empty database (GUICHET_DATABASE_URL" in refusal
    assert cli("merchant", "list").out, "development opens it as before"


def test_demo_stops_in_time_while_a_receiver_and_a_client_hang(after_demo: Cli) -> None:
    """It waits for neither: the receiver would have ten seconds, and the client longer."""
    with demo(after_demo) as (_, _, process):
        idle = stopped(process)
    with socket.create_server(("127.0.0.1", 0)) as receiver, demo(after_demo) as (text, _, process):
        shown = facts(text)
        authorization = f"Authorization: Bearer {shown['Test key']}"
        url = f"http://127.0.0.1:{receiver.getsockname()[1]}/"
        curl = ["curl", "-s", "-H", authorization, _base(shown)]
        configured = [*curl[:-1], "-X", "PUT", f"{curl[-1]}/webhooks/endpoint", "-d", json.dumps({"url": url})]
        subprocess.run(configured, check=True, capture_output=True)
        subprocess.run([*curl[:-1], "-X", "POST", f"{curl[-1]}/webhooks/test"], check=True, capture_output=True)
        attempt, _ = receiver.accept()  # and never a word
        host, _, port = _base(shown).removeprefix("http://").removesuffix("/v1").partition(":")
        with attempt, socket.create_connection((host, int(port))) as client:
            head = f"POST /v1/payments HTTP/1.1\r\nHost: x\r\n{authorization}\r\nContent-Length: 99\r\n\r\n"
            client.sendall(head.encode())  # and never the body
            time.sleep(0.3)
            assert stopped(process) < idle + 8


class OutputLines:
    """What a process prints, as it comes."""

    def __init__(self, process: Child) -> None:
        self.seen: list[str] = []
        assert process.stdout is not None
        self._thread = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
        self._thread.start()

    def _read(self, source: Iterator[str]) -> None:
        for line in source:
            self.seen.append(line)

    def wait(self, pattern: str) -> str:
        until(lambda: any(re.search(pattern, line) for line in self.seen))
        return next(line for line in self.seen if re.search(pattern, line))


def test_the_demo_merchant_receives_webhooks(after_demo: Cli) -> None:
    with (
        demo(after_demo) as (_, commands, process),
        after_demo.start("listen", "--configure", "--port", free_port()) as listener,
    ):
        shown = OutputLines(listener)
        address = re.search(r"http://\S+", shown.wait("Ctrl-C stops it"))
        assert address is not None
        payment = pasted(commands[0])
        line = shown.wait(r"payment\.succeeded")
        assert f"{payment['reference']}  succeeded  5000 XOF  ✓ signature" in line
        pasted(commands[2])
        shown.wait(r"refund\.succeeded .* succeeded  5087\.5 XOF  ✓ signature")
        shown.wait(r"payment\.refunded .* refunded  5000 XOF  ✓ signature")
        forged = subprocess.run(
            [
                "curl",
                "-s",
                "-w",
                "%{http_code}",
                "-d",
                '{"id":"x"}',
                "-H",
                f"X-Service-Signature: {_signature('no')}",
                address[0],
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        assert forged.stdout == "401"
        shown.wait("✗ refused: the signature is not ours")
        stopped_listener(listener)
        stopped(process)


def test_listen_accepts_any_secret_and_recognises_repeats(fresh: Cli) -> None:
    port = free_port()
    with fresh.start("listen", "--port", port, "--secret", "whsec_mine") as listener:
        shown = OutputLines(listener)
        shown.wait("Ctrl-C stops it")
        body = json.dumps({"id": "1", "event": "webhook.test", "data": {"message": "Bonjour"}})
        for _ in range(2):
            header = f"X-Service-Signature: {_signature('whsec_mine', body)}"
            subprocess.run(["curl", "-s", "-d", body, "-H", header, f"http://127.0.0.1:{port}/any"], check=True)
        assert "Bonjour  ✓ signature" in shown.wait("webhook.test")
        shown.wait(r"\(again\)")
        stopped_listener(listener)
    assert not (fresh.folder / "var").exists()


def _signature(secret: str, body: str = '{"id":"x"}') -> str:
    return sign(secret, SystemClock().now() // SECOND, body.encode())


def stopped_listener(process: Child) -> None:
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=PATIENCE) == 0


@pytest.mark.parametrize("host", ["nowhere.invalid", "203.0.113.1"])
def test_demo_refuses_to_listen_on_an_address_of_another_machine(fresh: Cli, host: str) -> None:
    assert f"Cannot listen on {host}" in fresh("demo", "--host", host, "--port", free_port()).refusal
