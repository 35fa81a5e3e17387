"""`serve --grace --drain`, `worker --grace`: what was accepted or begun ends first, however slow it is."""

import asyncio
import http.client
import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from guichet.settings import Settings
from tests.cli.conftest import Cli, RunningCommand, answers, until
from tests.patience import PATIENCE
from tests.sqlite_file import open_sqlite

ORDER = {"amount": 5000, "operator": "mtn", "phone_number": "2290197000002", "external_id": "order-1"}
#: Seconds: more than the one that a stop gives by itself.
BUSY = 1.6
#: Seconds of grace: more than a test waits for a command to end.
LONG_GRACE = int(2 * PATIENCE)


@contextmanager
def busy_database(settings: Settings) -> Iterator[threading.Event]:
    """Nothing can be written until the event is set, at the latest when the block ends."""
    held, over = threading.Event(), threading.Event()

    def hold_sqlite() -> None:
        connection = open_sqlite(settings.sqlite_path)
        connection.execute("BEGIN IMMEDIATE")
        held.set()
        over.wait()
        connection.execute("ROLLBACK")
        connection.close()

    async def hold_postgresql() -> None:
        connection = await asyncpg.connect(settings.database_url)
        async with connection.transaction():
            await connection.execute("LOCK TABLE payments IN EXCLUSIVE MODE")
            held.set()
            await asyncio.to_thread(over.wait)
        await connection.close()

    holder = threading.Thread(target=hold_sqlite if settings.embedded else lambda: asyncio.run(hold_postgresql()))
    holder.start()
    try:
        assert held.wait(PATIENCE)
        yield over
    finally:
        over.set()
        holder.join()


def stopped_during_a_payment(
    server: RunningCommand, settings: Settings, key: str, busy_for: float | None
) -> tuple[int, Any]:
    """Status and body of a POST that the stop found waiting for the database, which does not answer for so long after
    the stop, or until the POST has its answer."""
    connection = http.client.HTTPConnection(urlsplit(server.address).netloc, timeout=PATIENCE)
    with busy_database(settings) as over, closing(connection):
        connection.request("POST", "/v1/payments", json.dumps(ORDER), {"Authorization": f"Bearer {key}"})
        for _ in range(3):  # What is answered came later: the server has the order too.
            assert answers(server.address + "/healthz")
        server.process.send_signal(signal.SIGTERM)
        if busy_for is not None:
            time.sleep(busy_for)
            over.set()
        answer = connection.getresponse()
        status, body = answer.status, json.load(answer)
    server.ends()
    return status, body


def test_accepted_requests_are_finished(cli: Cli, settings: Settings) -> None:
    key = cli("merchant", "create", "Awa", "--json").json["keys"]["test"]
    with cli.running("serve", "--grace", LONG_GRACE) as server:
        status, body = stopped_during_a_payment(server, settings, key, BUSY)
    assert status == 201, body
    with cli.running("serve") as server:
        status, listed = server.call("GET", "/v1/payments?external_id=order-1", key)
        assert [payment["reference"] for payment in listed["data"]] == [body["data"]["reference"]]
        server.stop()


def test_without_grace_the_stop_is_quick_and_the_request_fails(cli: Cli, settings: Settings) -> None:
    key = cli("merchant", "create", "Awa", "--json").json["keys"]["test"]
    with cli.running("serve") as server:
        status, body = stopped_during_a_payment(server, settings, key, busy_for=None)
    assert (status, body["error"]["code"]) == (500, "server_error")


def test_an_idle_server_does_not_wait_for_its_grace(sqlite_cli: Cli) -> None:
    with sqlite_cli.running("serve", "--grace", LONG_GRACE, "--drain", 1) as server:
        server.stop(signal.SIGTERM)


def test_a_draining_server_is_unready_and_still_serves(sqlite_cli: Cli) -> None:
    key = sqlite_cli("merchant", "create", "Awa", "--json").json["keys"]["test"]
    with sqlite_cli.running("serve", "--drain", LONG_GRACE) as server:
        server.process.send_signal(signal.SIGTERM)
        until(lambda: not answers(server.address + "/readyz"))
        for number in range(10):
            assert server.call("POST", "/v1/payments", key, {**ORDER, "external_id": str(number)})[0] == 201
        assert server.process.poll() is None
        server.stop(signal.SIGINT)  # A second signal ends the wait.


@contextmanager
def slow_receiver(seconds: float | None) -> Iterator[tuple[str, list[str]]]:
    """A merchant's server that acknowledges each webhook so late, or never; its address, and the ids it received."""
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


def stop_during_an_attempt(cli: Cli, received: list[str], *options: object) -> None:
    """Of a worker that waits for a merchant's server."""
    with cli.start("worker", *options) as worker:
        try:
            until(lambda: received)
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(timeout=PATIENCE) == 0
        finally:
            worker.kill()


def delivery(cli: Cli, key: str) -> Any:
    with cli.running("serve", "--no-worker") as server:
        (found,) = server.call("GET", "/v1/webhooks/deliveries", key)[1]["data"]
        server.stop()
    return found


@pytest.mark.parametrize(
    ("options", "answers_after", "ends"), [(("--grace", LONG_GRACE), BUSY, "success"), ((), None, "pending")]
)
def test_a_worker_that_stops_lets_an_attempt_end(
    cli: Cli, options: tuple[object, ...], answers_after: float | None, ends: str
) -> None:
    key = cli("merchant", "create", "Awa", "--json").json["keys"]["test"]
    with slow_receiver(answers_after) as (url, received):
        with cli.running("serve", "--no-worker") as server:
            assert server.call("PUT", "/v1/webhooks/endpoint", key, {"url": url})[0] == 200
            assert server.call("POST", "/v1/webhooks/test", key)[0] == 200
            server.stop()
        stop_during_an_attempt(cli, received, *options)
        found = delivery(cli, key)
        assert (found["status"], found["attempts"], len(received)) == (ends, 1, 1)


@pytest.mark.parametrize("grace", [0, 301, "soon"])
@pytest.mark.parametrize("command", ["serve", "worker"])
def test_an_invalid_grace_is_refused(sqlite_cli: Cli, command: str, grace: object) -> None:
    assert "--grace" in sqlite_cli(command, "--grace", grace).misuse
