"""`serve --grace --drain`, `worker --grace`: what was accepted or begun ends first, however slow it is."""

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import apsw
import asyncpg
import pytest

from guichet.settings import Settings
from tests.cli.conftest import Cli, RunningCommand, answers, until

ORDER = {"amount": 5000, "operator": "mtn", "phone_number": "2290197000002", "external_id": "order-1"}
#: How long the database does not answer, in seconds: more than the second that a stop gives by itself.
BUSY = 2.5


@contextmanager
def busy_database(settings: Settings, seconds: float) -> Iterator[None]:
    """Nothing can be written for so long."""
    held = threading.Event()

    def hold_sqlite() -> None:
        connection = apsw.Connection(str(settings.sqlite_path))
        connection.execute("BEGIN IMMEDIATE")
        held.set()
        time.sleep(seconds)
        connection.execute("ROLLBACK")
        connection.close()

    async def hold_postgresql() -> None:
        connection = await asyncpg.connect(settings.database_url)
        async with connection.transaction():
            await connection.execute("LOCK TABLE payments IN EXCLUSIVE MODE")
            held.set()
            await asyncio.sleep(seconds)
        await connection.close()

    holder = threading.Thread(target=hold_sqlite if settings.embedded else lambda: asyncio.run(hold_postgresql()))
    holder.start()
    assert held.wait(10)
    yield
    holder.join()


def stopped_during_a_payment(server: RunningCommand, settings: Settings, key: str) -> tuple[int, Any, float]:
    """Status and body of a POST that the stop found waiting, and the seconds between the stop and the end."""
    answers: list[tuple[int, Any]] = []
    with busy_database(settings, BUSY):
        paying = threading.Thread(target=lambda: answers.append(server.call("POST", "/v1/payments", key, ORDER)))
        paying.start()
        time.sleep(0.5)
        began = time.monotonic()
        server.stop(signal.SIGTERM)
        took = time.monotonic() - began
        paying.join(20)
    assert len(answers) == 1, "the connection was cut without an answer"
    return *answers[0], took


def test_accepted_requests_are_finished(cli: Cli, settings: Settings) -> None:
    key = cli("merchant", "create", "Awa", "--json").json["keys"]["test"]
    with cli.running("serve", "--grace", 20) as server:
        status, body, took = stopped_during_a_payment(server, settings, key)
    assert status == 201, body
    assert took < BUSY + 3
    with cli.running("serve") as server:
        status, listed = server.call("GET", "/v1/payments?external_id=order-1", key)
        assert [payment["reference"] for payment in listed["data"]] == [body["data"]["reference"]]
        server.stop()


def test_without_grace_the_stop_is_quick_and_the_request_fails(cli: Cli, settings: Settings) -> None:
    key = cli("merchant", "create", "Awa", "--json").json["keys"]["test"]
    with cli.running("serve") as server:
        status, body, _ = stopped_during_a_payment(server, settings, key)
    assert (status, body["error"]["code"]) == (500, "server_error")


def test_an_idle_server_does_not_wait_for_its_grace(sqlite_cli: Cli) -> None:
    with sqlite_cli.running("serve", "--grace", 60) as server:
        began = time.monotonic()
        server.stop(signal.SIGTERM)
        assert time.monotonic() - began < 5


def test_a_draining_server_is_unready_and_still_serves(sqlite_cli: Cli) -> None:
    key = sqlite_cli("merchant", "create", "Awa", "--json").json["keys"]["test"]
    with sqlite_cli.running("serve", "--drain", 3) as server:
        stopping = threading.Thread(target=server.stop, args=(signal.SIGTERM,))
        began = time.monotonic()
        stopping.start()
        until(lambda: not answers(server.address + "/readyz"), 2)
        while time.monotonic() - began < 2.5:
            assert server.call("POST", "/v1/payments", key, {**ORDER, "external_id": str(time.monotonic())})[0] == 201
            time.sleep(0.1)  # Nobody reads the log's pipe.
        assert server.process.poll() is None
        stopping.join(10)
        assert server.process.poll() == 0


@contextmanager
def slow_receiver(seconds: float) -> Iterator[tuple[str, list[str]]]:
    """A merchant's server that acknowledges each webhook so late; its address, and the ids it received."""
    received: list[str] = []
    over = threading.Event()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            received.append(self.headers["X-Service-Delivery"])
            over.wait(seconds)
            with suppress(OSError):  # Nobody waits for the answer any more.
                self.send_response(204)
                self.end_headers()

        def log_message(self, *said: Any) -> None:
            """Silence."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/hook", received
        over.set()
        server.shutdown()


def stopped_during_an_attempt(cli: Cli, received: list[str], *options: object) -> float:
    """How long a worker took to stop that the stop found waiting for a merchant's server."""
    with cli.start("worker", *options) as worker:
        try:
            until(lambda: received, 20)
            began = time.monotonic()
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(timeout=20) == 0
            return time.monotonic() - began
        finally:
            worker.kill()


def delivery(cli: Cli, key: str) -> Any:
    with cli.running("serve", "--no-worker") as server:
        (found,) = server.call("GET", "/v1/webhooks/deliveries", key)[1]["data"]
        server.stop()
    return found


@pytest.mark.parametrize(("options", "answers_after", "ends"), [(("--grace", 11), BUSY, "success"), ((), 9, "pending")])
def test_a_worker_that_stops_lets_an_attempt_end(
    cli: Cli, options: tuple[object, ...], answers_after: float, ends: str
) -> None:
    key = cli("merchant", "create", "Awa", "--json").json["keys"]["test"]
    with slow_receiver(answers_after) as (url, received):
        with cli.running("serve", "--no-worker") as server:
            assert server.call("PUT", "/v1/webhooks/endpoint", key, {"url": url})[0] == 200
            assert server.call("POST", "/v1/webhooks/test", key)[0] == 200
            server.stop()
        assert stopped_during_an_attempt(cli, received, *options) < 8
        found = delivery(cli, key)
        assert (found["status"], found["attempts"], len(received)) == (ends, 1, 1)


@pytest.mark.parametrize("grace", [0, 301, "soon"])
@pytest.mark.parametrize("command", ["serve", "worker"])
def test_an_invalid_grace_is_refused(sqlite_cli: Cli, command: str, grace: object) -> None:
    assert "--grace" in sqlite_cli(command, "--grace", grace).misuse
