"""Traces as a collector receives them: a payment's life with its links, nothing personal, and what a collector that is
away costs."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from guichet import tracing
from guichet.http_client import HttpClient
from guichet.providers.base import Succeeded
from guichet.providers.shared.client import ProviderClient, ProviderResponse
from guichet.settings import Settings
from tests.cli.conftest import Cli, answers, until
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.http_server import ScriptedServer
from tests.fakes.scripted_provider import ScriptedProvider, done, taken
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.service_fixture import MerchantClient, ServiceFixture, open_service, serving

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
#: What a caller says that samples nothing of its own: ours is recorded all the same.
TRACEPARENT = f"00-{TRACE}-{CALLER}-00"
HANDED_ON = {"traceparent", "tracestate", "baggage", "b3"}
PHONE, OTP, NAME, EMAIL = "22997001234", "482913", "Adjovi Koffi", "adjovi@example.com"


@dataclass
class Seen:
    """A span, its ids in hexadecimal; `parent` is empty for one that begins its trace."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    said: dict[str, Any]
    failed: bool


@dataclass
class Collector:
    """Takes OTLP over HTTP."""

    status: int = 200
    raw: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    refused: int = 0

    async def take(self, request: Request) -> Response:
        body = await request.body()
        if self.status == 200:
            self.raw.append(body)
            self.headers.append(dict(request.headers))
        else:
            self.refused += 1
        return Response(status_code=self.status)

    @property
    def spans(self) -> list[Seen]:
        return [
            Seen(
                span.name,
                span.trace_id.hex(),
                span.span_id.hex(),
                span.parent_span_id.hex(),
                span.kind,
                {each.key: each.value.string_value or each.value.int_value for each in span.attributes},
                span.status.code == span.status.STATUS_CODE_ERROR,
            )
            for body in self.raw
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def named(self, name: str) -> Seen:
        (found,) = [span for span in self.spans if span.name == name]
        return found


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Batches leave ten times a second; the library's loggers are as they were afterwards."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    library = logging.getLogger("opentelemetry")
    before = library.handlers, library.propagate
    yield
    library.handlers, library.propagate = before


@pytest.fixture
async def collector() -> AsyncIterator[tuple[Collector, str]]:
    made = Collector()
    async with serving(Starlette(routes=[Route("/v1/traces", made.take, methods=["POST"])])) as address:
        yield made, address


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority.create(tmp_path_factory.mktemp("ca"))


@asynccontextmanager
async def traced_service(settings: Settings, address: str, operator: ScriptedProvider) -> AsyncIterator[ServiceFixture]:
    connections, routes = {"first": operator}, {"mtn": ["first"]}
    wanted = replace(settings, otlp_endpoint=address)
    async with open_service(wanted, accounts=connections, routes=routes) as service:
        yield service


async def received(collector: Collector, *names: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while not {*names} <= {span.name for span in collector.spans}:
            await asyncio.sleep(0.05)


async def test_a_payment_is_traced_from_request_to_webhook(
    settings: Settings, collector: tuple[Collector, str], authority: CertificateAuthority
) -> None:
    seen, address = collector
    operator = ScriptedProvider()
    operator.script("initiate", taken)
    operator.script("status", done)
    async with (
        traced_service(settings, address, operator) as service,
        ScriptedServer(tls=authority.server("localhost")) as merchant,
    ):
        merchant_client = (await service.merchant()).live
        await merchant_client.put("/webhooks/endpoint", {"url": merchant.url()})
        payment = await live_payment(merchant_client)
        await service.run_worker(60)
        await merchant_client.get("/balance")
        await received(seen, "webhook payment.succeeded", "GET /v1/balance")
    request = seen.named("POST /v1/payments")
    # The caller's trace goes on, whether or not the caller records its own part of it.
    assert (request.trace, request.parent, request.kind) == (TRACE, CALLER, 2)
    assert request.said == {
        "http.request.method": "POST", "http.route": "/v1/payments", "http.response.status_code": 201,
        "guichet.request_id": "caller-request-1", "guichet.payment": payment["reference"],
    }  # fmt: skip
    initiation = seen.named("provider initiate")
    assert (initiation.trace, initiation.parent, initiation.kind) == (TRACE, request.id, 3)
    assert initiation.said == {"guichet.provider_account": "first", "guichet.result": "accepted"}
    # What the loops do about it is one trace, found by the payment's reference.
    polling, status_call = seen.named("poll payment"), seen.named("provider status")
    settling, webhook = seen.named("settle payment"), seen.named("webhook payment.succeeded")
    own = payment["reference"].replace("-", "")
    assert {span.trace for span in (polling, status_call, settling, webhook)} == {own}
    assert (polling.parent, webhook.parent) == ("", "")
    assert status_call.parent == settling.parent == polling.id
    assert settling.said == {"guichet.payment": payment["reference"], "guichet.outcome": "succeeded"}
    (delivery,) = merchant.received
    assert webhook.said == {
        "guichet.delivery": delivery.headers["x-service-delivery"], "guichet.attempt": 1,
        "http.response.status_code": 200, "guichet.payment": payment["reference"],
    }  # fmt: skip
    # Another request without a caller's trace begins one of its own.
    other = seen.named("GET /v1/balance")
    assert other.parent == ""
    assert other.trace not in (TRACE, own)
    assert not any(span.failed for span in seen.spans)


async def live_payment(merchant_client: MerchantClient) -> Any:
    body = {
        "amount": 5000, "operator": "mtn", "phone_number": PHONE, "otp": OTP, "description": NAME,
        "external_id": EMAIL, "customer": {"firstname": NAME, "lastname": NAME, "email": EMAIL},
        "metadata": {"phone": PHONE},
    }  # fmt: skip
    headers = {"traceparent": TRACEPARENT, "tracestate": "vendor=1", "X-Request-Id": "caller-request-1"}
    answer = await merchant_client.post("/payments", body, headers=headers)
    assert answer.status == 201, answer.raw
    return answer.data


async def test_traces_contain_no_personal_data_and_are_not_propagated(
    settings: Settings, collector: tuple[Collector, str], authority: CertificateAuthority
) -> None:
    seen, address = collector
    operator = ScriptedProvider()
    operator.script("status", lambda charge: boom(charge.payment.phone_number))
    async with (
        traced_service(settings, address, operator) as service,
        ScriptedServer(tls=authority.server("localhost")) as merchant,
    ):
        merchant_client = (await service.merchant()).live
        await merchant_client.put("/webhooks/endpoint", {"url": merchant.url()})
        payment = await live_payment(merchant_client)
        await service.run_worker(60)
        operator.script("status", done)
        operator.script("refund", done)
        await service.run_worker(60)
        await merchant_client.get(f"/payments/{EMAIL.replace('@', '%40')}")
        await merchant_client.get(f"/nothing/{PHONE}?phone={PHONE}")
        await merchant_client.post(f"/payments/{payment['reference']}/refund", {"reason": NAME})
        await service.run_worker(60)
        await received(seen, "webhook refund.succeeded", "settle refund", "GET /v1/payments/{reference}", "GET")
    # The operator's fault, whose text names the customer, is a failed question without a word.
    assert [span.failed for span in seen.spans if span.name == "poll payment"] == [True, False]
    sent = b"".join(seen.raw)
    secrets = [*merchant_client.keys.values(), PHONE, OTP, NAME, EMAIL, EMAIL.replace("@", "%40"), "whsec_"]
    assert [secret for secret in secrets if secret.encode() in sent] == []
    assert not {5000, 5088, "5000", "5088"} & {value for span in seen.spans for value in span.said.values()}
    assert seen.named("process refund").said["guichet.payment"] == payment["reference"]
    assert len(merchant.received) == 3
    assert not any(HANDED_ON & each.headers.keys() for each in merchant.received)


def boom(phone_number: str) -> Succeeded:
    raise RuntimeError(f"no such customer: {phone_number}")


async def test_requests_to_providers_carry_no_trace_headers(
    sqlite_settings: Settings, collector: tuple[Collector, str], authority: CertificateAuthority
) -> None:
    """The client with which every provider class calls its API, while a span is current."""
    seen, address = collector
    with tracing.exporting(replace(sqlite_settings, otlp_endpoint=address)):
        spans = tracing.tracer()
        assert spans is not None
        async with ScriptedServer(tls=authority.server("localhost")) as operator:
            http_client = HttpClient(loopback=True)
            with spans.request(TRACEPARENT) as end:
                reply = await ProviderClient(http_client, operator.url()).send("POST", "", json={})
                end("POST /v1/payments", {}, False)
            await http_client.aclose()
        await received(seen, "POST /v1/payments")
    assert isinstance(reply, ProviderResponse)
    assert not HANDED_ON & operator.received[0].headers.keys()


async def test_an_absent_collector_is_logged_once_and_delays_nothing(
    sqlite_settings: Settings, collector: tuple[Collector, str], capfd: pytest.CaptureFixture[str]
) -> None:
    seen, address = collector
    seen.status = 401
    async with traced_service(sqlite_settings, address, ScriptedProvider()) as service:
        merchant_client = await service.merchant()
        for number in range(4):
            await merchant_client.pay("0000")
            async with asyncio.timeout(PATIENCE):
                while seen.refused <= number:
                    await asyncio.sleep(0.05)
        seen.status = 200
        await merchant_client.pay("0000")
        await received(seen, "POST /v1/payments")
    said = "".join(capfd.readouterr())
    assert said.count("traces.collector_away") == said.count("traces.collector_back") == 1
    (line,) = [line for line in said.splitlines() if "Failed to export" in line]
    assert "traces.collector_away" in line
    assert "401" in line


async def test_remaining_spans_are_exported_when_the_service_stops(
    sqlite_cli: Cli, collector: tuple[Collector, str]
) -> None:
    """The command itself, stopped long before its next batch is due."""
    seen, address = collector
    wanting = sqlite_cli.having(GUICHET_OTLP_ENDPOINT=address, OTEL_BSP_SCHEDULE_DELAY="60000")

    def life() -> None:
        key = sqlite_cli("merchant", "create", "Awa", "--json").json["keys"]["test"]
        with wanting.running("serve") as server:
            assert server.call("GET", "/v1/balance", key)[0] == 200
            server.stop()

    await asyncio.to_thread(life)
    assert seen.named("GET /v1/balance").said["http.response.status_code"] == 200


async def test_stopping_does_not_wait_for_an_absent_collector(sqlite_settings: Settings) -> None:
    """A stop does not wait for a collector, however many spans wait for one."""
    loop = asyncio.get_running_loop()
    async with traced_service(sqlite_settings, f"http://127.0.0.1:{free_port()}", ScriptedProvider()) as service:
        merchant_client = await service.merchant()
        for _ in range(20):
            await merchant_client.pay("0000")
        began = loop.time()
    assert loop.time() - began < 8, "the library itself tries for ten seconds"


async def test_without_settings_nothing_is_traced(sqlite_service: ServiceFixture) -> None:
    assert tracing.tracer() is None
    merchant_client = await sqlite_service.merchant()
    answer = await merchant_client.get("/balance", headers={"traceparent": TRACEPARENT})
    assert answer.status == 200


def test_a_missing_tracing_extra_is_reported(sqlite_cli: Cli) -> None:
    """Its absence is one sentence, and only when traces are wanted."""
    hidden = sqlite_cli.folder / "hidden" / "opentelemetry"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('not installed')")
    path = f"{hidden.parent}:{sqlite_cli.environ['PYTHONPATH']}"
    # Python itself starts these two: what is forked from the tests' process has imported OpenTelemetry already.
    without = sqlite_cli.having(PYTHONPATH=path)
    port = free_port()
    with _start(without, port) as process:
        until(lambda: answers(f"http://127.0.0.1:{port}/readyz"))
        process.terminate()
        process.communicate(timeout=PATIENCE)
    with _start(without.having(GUICHET_OTLP_ENDPOINT="http://127.0.0.1:4318"), free_port()) as process:
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert err.splitlines()[-1] == (
        "✗ GUICHET_OTLP_ENDPOINT needs OpenTelemetry, which is not installed: run `make tracing` "
        "or `pip install 'guichet[tracing]'`."
    )


def _start(cli: Cli, port: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "guichet", "serve", "--port", str(port)],
        env=cli.environ, cwd=cli.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
