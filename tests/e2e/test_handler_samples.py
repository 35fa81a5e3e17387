"""The whole receivers that merchants copy keep each event once, answer at once, and never set a payment back."""

import http.client
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from guichet.clock import SECOND, SystemClock
from guichet.webhooks.sender import sign
from tests.patience import PATIENCE
from tests.ports import free_port

SAMPLES = Path(__file__).parents[2] / "docs" / "samples"
SECRET = "whsec_" + "Ab3" * 13 + "x"
#: What begins each one, in its folder; {port} is the one to listen to.
COMMANDS: dict[str, list[str]] = {
    "python": [sys.executable, str(SAMPLES / "handler.py")],
    "php": ["php", "-S", "127.0.0.1:{port}", str(SAMPLES / "handler.php")],
    "node": ["node", str(SAMPLES / "handler.mjs")],
    "go": ["go", "run", str(SAMPLES / "handler.go")],
    "ruby": ["ruby", str(Path(__file__).parent / "rack_server.rb"), str(SAMPLES / "handler.rb")],
    "java": ["java", str(SAMPLES / "Handler.java")],
}
PAYMENT = "5f0c4a52-6d0e-4c8f-9a55-0d7f6c1b2e34"


@dataclass
class Shop:
    """A merchant's server that runs a sample."""

    command: list[str]
    inbox: Path
    process: subprocess.Popen[bytes] | None = None
    port: int = 0

    def start(self) -> None:
        self.port = free_port()
        self.process = subprocess.Popen(
            [part.format(port=self.port) for part in self.command],
            env={**os.environ, "WEBHOOK_SECRET": SECRET, "INBOX": str(self.inbox), "PORT": str(self.port)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # `go run` has a child, which is to end with it.
        )
        self._wait(self._listens)

    def stop(self) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, 9)
            self.process.wait()

    def _listens(self) -> bool:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
            connection.connect()
        except OSError:
            return False
        connection.close()
        return True

    def receive(self, body: bytes, header: str | None = None, *, signed: bool = True) -> int:
        """The status of its answer."""
        if header is None and signed:
            header = sign(SECRET, SystemClock().now() // SECOND, body)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("POST", "/", body, {} if header is None else {"X-Service-Signature": header})
        status = connection.getresponse().status
        connection.close()
        return status

    def _wait(self, happened: object) -> None:
        assert callable(happened)
        for _ in range(600):
            if happened():
                return
            assert self.process is None or self.process.poll() is None, "the sample ended"
            time.sleep(0.1)
        raise AssertionError("the sample did nothing for a minute")

    def actions(self, done: int) -> list[str]:
        """What it did, once it worked on `done` events."""
        self._wait(lambda: len(list(self.inbox.glob("*.done"))) >= done)
        log = self.inbox / "actions.log"
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


def event(name: str, event_id: str | None = None) -> bytes:
    body = {"id": event_id or str(uuid4()), "event": name, "livemode": False, "created_at": "2026-11-20T10:15:41Z"}
    return json.dumps({**body, "data": {"reference": PAYMENT, "description": "Café à Thiès ☕"}}).encode()


@pytest.fixture(params=COMMANDS)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    language: str = request.param
    command = COMMANDS[language]
    if shutil.which("javac" if language == "java" else command[0]) is None:
        pytest.skip(f"{language} is not installed: the {language} receiver was NOT run")
    running = Shop(command, tmp_path)
    running.start()
    yield running
    running.stop()


def test_a_receiver_keeps_each_event_once_and_never_sets_a_payment_back(shop: Shop) -> None:
    paid, refunded, unknown = event("payment.succeeded"), event("payment.refunded"), event("payment.dreamt")

    # What we did not sign is refused, and so is what has no signature.
    assert shop.receive(paid, signed=False) == 400
    assert shop.receive(paid, sign("whsec_other", SystemClock().now() // SECOND, paid)) == 400
    assert shop.receive(paid, sign(SECRET, 1, paid)) == 400
    assert shop.receive(paid + b" ", sign(SECRET, SystemClock().now() // SECOND, paid)) == 400
    assert not list(shop.inbox.glob("*.event"))

    assert shop.receive(unknown) == 200
    assert shop.actions(1) == []
    assert [shop.receive(paid) for _ in range(3)] == [200] * 3
    assert shop.actions(2) == [f"{PAYMENT} payment.succeeded"]
    assert shop.receive(refunded) == 200
    # Another event of the same change, and an older one, come late.
    assert shop.receive(event("payment.succeeded")) == 200
    assert shop.actions(4) == [f"{PAYMENT} payment.succeeded", f"{PAYMENT} payment.refunded"]
    assert len(list(shop.inbox.glob("*.event"))) == 4
    assert not list(shop.inbox.glob("*.part"))

    # What was received and not worked on when it stopped is worked on afterwards.
    shop.stop()
    (shop.inbox / f"{PAYMENT}.order").write_text("payment.succeeded")
    waiting = event("payment.refunded")
    (shop.inbox / f"{json.loads(waiting)['id']}.event").write_bytes(waiting)
    shop.start()
    assert shop.receive(b"", signed=False) == 400  # PHP has no beginning of its own: any request does it.
    assert shop.actions(5)[2:] == [f"{PAYMENT} payment.refunded"]
