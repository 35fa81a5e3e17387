"""`guichet trigger`, `replay`, `clock` and `listen --forward-to`, in processes of their own."""

import asyncio
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from guichet.clock import SECOND, SystemClock
from guichet.settings import Settings
from guichet.webhooks.sender import sign, verify
from tests.cli.conftest import Cli
from tests.cli.demonstration import demo, stopped
from tests.cli.test_demo import OutputLines, facts, pasted, stopped_listener
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.clock import clock_of_the_machine
from tests.ports import free_port
from tests.service_fixture import open_service
from tests.webhooks.receivers import event, is_genuine, merchant_with_endpoint, receiver, status

PAID = "payment.succeeded"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority.create(tmp_path_factory.mktemp("ca"))


@dataclass
class DeveloperServer:
    """A developer's own server: it answers each request with the next of `statuses`, the last one again and again."""

    url: str = ""
    statuses: list[int] = field(default_factory=lambda: [200])
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def developer_server(*statuses: int) -> Iterator[DeveloperServer]:
    found = DeveloperServer(statuses=list(statuses))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.received.append(({name.lower(): value for name, value in self.headers.items()}, body))
            answer = found.statuses.pop(0) if len(found.statuses) > 1 else found.statuses[0]
            self.send_response(answer)
            self.send_header("Content-Length", "10")
            self.end_headers()
            self.wfile.write(b"bien \x1brecu")

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found.url = f"http://localhost:{server.server_port}/hook?a=1"
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (PAID, [PAID]),
        ("payment.failed", ["payment.failed"]),
        ("payment.refunded", [PAID, "refund.succeeded", "payment.refunded"]),
        ("refund.succeeded", [PAID, "refund.succeeded", "payment.refunded"]),
        ("refund.failed", [PAID, "refund.failed"]),
        ("webhook.test", ["webhook.test"]),
        ("dispute.opened", [PAID, "dispute.opened"]),
        ("dispute.won", [PAID, "dispute.opened", "dispute.won"]),
        ("dispute.lost", [PAID, "dispute.opened", "dispute.lost"]),
    ],
)
async def test_trigger_causes_signed_webhooks(
    settings: Settings, cli: Cli, authority: CertificateAuthority, wanted: str, told: list[str]
) -> None:
    async with receiver(authority, status(200)) as server:
        async with open_service(settings, clock_of_the_machine()) as service:
            merchant, secret = await merchant_with_endpoint(service, server)
        made = cli("trigger", wanted, "--merchant", merchant.id, "--json").json
        assert (made["event"], made["url"], len(made["references"])) == (wanted, server.url(), 1)
        async with open_service(settings, clock_of_the_machine()) as service:
            await service.run_worker()
            now = service.clock.now() // SECOND
        assert [event(each) for each in server.received] == told
        assert all(is_genuine(each, secret, now) for each in server.received)
        bodies = [json.loads(each.body) for each in server.received]
        assert {body["livemode"] for body in bodies} == {False}
        if wanted != "webhook.test":
            assert made["references"][0] in [
                name for body in bodies for name in (body["data"]["reference"], body["data"].get("payment_reference"))
            ]


async def test_trigger_many_times(settings: Settings, cli: Cli) -> None:
    async with open_service(settings, clock_of_the_machine()) as service:
        merchant = await service.merchant()
    done = cli("trigger", PAID, "--count", 5, "--merchant", merchant.id)
    assert "5 × payment.succeeded" in done.out
    assert "nowhere yet" in done.out
    async with open_service(settings, clock_of_the_machine()) as service:
        keys = type(merchant)(service, merchant.id, merchant.keys)
        listed = (await keys.get("/payments")).data
        assert [each["status"] for each in listed] == ["succeeded"] * 5
        assert (await keys.live.get("/payments")).data == []


def test_what_trigger_refuses(sqlite_cli: Cli) -> None:
    cli = sqlite_cli
    assert cli("trigger", PAID, "--merchant", 7).refusal == "There is no merchant with the id 7."
    assert "payment.succeeded" in cli("trigger", "payment.lost").misuse
    assert "greater than or equal to 1" in cli("trigger", PAID, "--count", 0).misuse
    made = cli("merchant", "create", "Awa", "--json").json
    refusal = cli("trigger", "webhook.test", "--merchant", made["id"]).refusal
    assert refusal == f"Merchant {made['id']} has no webhook address in the test environment."
    production = cli.having(GUICHET_PROFILE="production", GUICHET_PUBLIC_URL="https://pay.example.com")
    for command in (("trigger", PAID), ("clock", "advance", "1h"), ("clock", "show"), ("clock", "reset")):
        refusal = production(*command).refusal
        assert refusal == "--merchant is expected: there is no demo merchant in production."
    assert production("trigger", PAID, "--merchant", made["id"], "--json").json["event"] == PAID


async def test_replay_sends_a_test_webhook_again(settings: Settings, cli: Cli, authority: CertificateAuthority) -> None:
    clock = clock_of_the_machine()
    async with receiver(authority, status(200)) as server:
        async with open_service(settings, clock) as service:
            merchant, secret = await merchant_with_endpoint(service, server)
            await merchant.live.put("/webhooks/endpoint", {"url": server.url()})
            paid = (await merchant.pay("0000"))["reference"]
            unheard = (await merchant.pay("0002"))["reference"]
            await merchant.live.post("/webhooks/test")
            await service.run_worker()
        log = {each["env"]: each for each in cli("delivery", "list", "--json").json["deliveries"]}
        refusal = cli("replay", log["live"]["id"]).refusal
        assert refusal == "This is a live webhook: `guichet delivery resend` sends those again."
        assert cli("replay", log["test"]["id"], "--json").json["status"] == "pending"
        assert cli("replay", log["test"]["id"]).refusal == "This delivery is still being tried."
        async with open_service(settings, clock) as service:
            await service.run_worker(3600)  # This clock stood still while the commands ran.
        first, again = [each for each in server.received if each.headers["x-service-delivery"] == log["test"]["id"]]
        assert again.body == first.body
        with developer_server(418) as mine:
            done = await asyncio.to_thread(cli, "replay", log["test"]["id"], "--forward-to", mine.url)
            assert "→ 418" in done.out
            assert r"bien \x1brec" in done.out
        [(headers, body)] = mine.received
        assert body == first.body
        assert verify(secret, headers["x-service-signature"], body, SystemClock().now() // SECOND)
        with developer_server(204) as mine:
            await asyncio.to_thread(cli, "replay", paid, "--forward-to", mine.url)
        assert [received[1] for received in mine.received] == [first.body], "a payment's reference will do"
        assert cli("replay", unheard).refusal == f"There is no webhook about the payment {unheard}."
        assert cli("delivery", "show", log["test"]["id"], "--json").json["status"] == "success", "the log is as before"
        down = cli("replay", log["test"]["id"], "--forward-to", f"http://127.0.0.1:{free_port()}/")
        assert (down.code, "→ no answer" in down.out) == (0, True)
    assert "http or https address" in cli("replay", log["test"]["id"], "--forward-to", "ftp://x").misuse


async def test_the_clock_of_a_merchant(settings: Settings, cli: Cli) -> None:
    clock = clock_of_the_machine()
    async with open_service(settings, clock) as service:
        merchant = await service.merchant()
        await merchant.pay()
        await merchant.pay(test_scenario="expired")
        now = service.clock.now()
    of = ("--merchant", str(merchant.id))
    moved = cli("clock", "advance", "1h30m", *of, "--by", "Awa", "--json").json
    assert (moved["advanced_seconds"], moved["payments"], moved["deliveries"]) == (5400, 2, 0)
    shown = cli("clock", "show", *of, "--json").json
    assert shown["ahead_seconds"] == 5400
    assert "is 1:30:00 ahead" in cli("clock", "show", *of).out
    async with open_service(settings, clock_of_the_machine()) as service:
        await service.run_worker()
        keys = type(merchant)(service, merchant.id, merchant.keys)
        assert [each["status"] for each in (await keys.get("/payments")).data] == ["failed", "succeeded"]
        assert service.clock.now() - now < 60 * SECOND
    assert cli("clock", "reset", *of, "--json").json["ahead_seconds"] == 0
    assert cli("clock", "show", *of, "--json").json["ahead_seconds"] == 0
    acts = cli("audit-log", "list", "--about", str(merchant.id), "--json").json["entries"]
    assert [act["action"] for act in acts] == ["test_clock.reset", "test_clock.advanced"]
    assert acts[1]["actor"] == "Awa"
    assert acts[1]["after"] == {"seconds": 5400, "payments": 2, "refunds": 0, "deliveries": 0}
    assert "a duration is expected" in cli("clock", "advance", "soon", *of).misuse
    assert "366 days" in cli("clock", "advance", "367d", *of).refusal


def test_listen_passes_events_on(fresh: Cli) -> None:
    port = free_port()
    with (
        developer_server(200, 500, 200) as mine,
        fresh.start("listen", "--port", port, "--secret", "whsec_mine", "--forward-to", mine.url) as listener,
    ):
        shown = OutputLines(listener)
        assert mine.url in shown.wait("Ctrl-C stops it")
        body = '{"id": "1", "event": "webhook.test",  "data": {"message": "Bonjour é"}}'
        assert _post(port, body) == 200
        assert r"bien \x1brec" in shown.wait("→ 200")
        assert _post(port, body) == 500
        shown.wait("→ 500")
        assert _post(port, body, secret="whsec_other") == 401
        stopped_listener(listener)
    assert len(mine.received) == 2, "what is not ours is not passed on"
    for headers, received in mine.received:
        assert received == body.encode()
        assert headers["user-agent"] == "Guichet-Webhooks/1.0"
        assert headers["x-service-event"] == "webhook.test"
        assert headers["content-type"] == "application/json"
        assert verify("whsec_mine", headers["x-service-signature"], received, SystemClock().now() // SECOND)


def test_a_server_that_is_down_ends_nothing(fresh: Cli) -> None:
    port, nobody = free_port(), free_port()
    with fresh.start(
        "listen", "--port", port, "--secret", "whsec_mine", "--forward-to", f"http://localhost:{nobody}/hook"
    ) as listener:
        shown = OutputLines(listener)
        shown.wait("Ctrl-C stops it")
        for _ in range(2):
            assert _post(port, '{"id": "1", "event": "webhook.test", "data": {}}') == 502
        shown.wait("→ no answer")
        stopped_listener(listener)


def test_the_demo_merchant_from_trigger_to_ones_own_server(fresh: Cli) -> None:
    with (
        developer_server(200) as mine,
        demo(fresh) as (text, commands, process),
        fresh.start("listen", "--configure", "--port", free_port(), "--forward-to", mine.url) as listener,
    ):
        shown = OutputLines(listener)
        shown.wait("Ctrl-C stops it")
        assert facts(text)["Test key"]
        done = fresh("trigger", "payment.refunded", "--json").json
        assert done["references"][0] in shown.wait(r"payment\.refunded")
        pasted(commands[0])
        stopped_listener(listener)
        stopped(process)
    assert {headers["x-service-event"] for headers, _ in mine.received} >= {
        PAID,
        "refund.succeeded",
        "payment.refunded",
    }


def _post(port: int, body: str, secret: str = "whsec_mine") -> int:
    signature = sign(secret, SystemClock().now() // SECOND, body.encode())
    headers = (
        f"X-Service-Signature: {signature}",
        "X-Service-Event: webhook.test",
        "X-Service-Delivery: 1",
        "User-Agent: Guichet-Webhooks/1.0",
        "Content-Type: application/json",
    )
    options = [option for header in headers for option in ("-H", header)]
    url = f"http://127.0.0.1:{port}/any"
    done = subprocess.run(
        ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-d", body, *options, url],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)
