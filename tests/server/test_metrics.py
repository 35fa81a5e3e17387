"""`/metrics`: who may read it, what it counts, and that what it reads from the database is what is there."""

import asyncio
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from guichet.clock import DAY, HOUR, SECOND
from guichet.ledger.audit import audit
from guichet.payments import incidents
from guichet.providers.base import Accepted, NotProcessed, Unknown
from guichet.server import db_metrics
from guichet.server.db_metrics import FRESH_FOR
from guichet.server.metrics_port import metrics_port
from guichet.settings import Settings
from tests.cli.conftest import Cli, until
from tests.fakes.scripted_provider import ScriptedProvider, done, taken
from tests.ports import free_port
from tests.service_fixture import ServiceFixture, open_service

TOKEN = "a-token-of-sixteen-or-more"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parsed(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def scrape(service: ServiceFixture) -> Samples:
    answer = await service.call("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status == 200, answer.raw
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return parsed(answer.raw.decode())


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((name, frozenset(labels.items())), 0.0)


def change(before: Samples, after: Samples, name: str, **labels: str) -> float:
    return value(after, name, **labels) - value(before, name, **labels)


def measured(settings: Settings) -> Settings:
    return replace(settings, metrics_token=TOKEN)


async def test_without_settings_there_is_no_such_address(sqlite_service: ServiceFixture) -> None:
    answer = await sqlite_service.call("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (answer.status, answer.error["code"]) == (404, "not_found")


async def test_the_token_is_asked_for(sqlite_settings: Settings) -> None:
    async with open_service(measured(sqlite_settings)) as service:
        for headers in ({}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": f"Basic {TOKEN}"}):
            answer = await service.call("GET", "/metrics", headers=headers)
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
            assert answer.raw == b""
        assert value(await scrape(service), "guichet_database_up") == 1


async def test_a_port_of_its_own(sqlite_settings: Settings) -> None:
    """With a port the main one has none; each process of several has the next port."""
    port = free_port()
    for token, status in ((None, 200), (TOKEN, 401)):
        settings = replace(sqlite_settings, metrics_port=port - 1, metrics_token=token)
        async with open_service(settings) as service:
            assert (await service.call("GET", "/metrics")).status == 404
            async with metrics_port(service.ctx, number=2):
                url = f"http://127.0.0.1:{port}"
                async with service.client.get(f"{url}/metrics") as answer:
                    assert answer.status == status
                async with service.client.get(f"{url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}) as answer:
                    assert value(parsed(await answer.text()), "guichet_database_up") == 1
                for other in ("/v1/balance", "/healthz"):
                    async with service.client.get(url + other) as answer:
                        assert answer.status == 404
            with pytest.raises(OSError):
                await asyncio.open_connection("127.0.0.1", port)


async def test_requests_by_template(sqlite_settings: Settings) -> None:
    async with open_service(measured(sqlite_settings)) as service:
        merchant = await service.merchant()
        before = await scrape(service)
        payment = await merchant.pay()
        for _ in range(3):
            await merchant.get(f"/payments/{payment['reference']}")
        await merchant.get("/payments/00000000-0000-0000-0000-000000000000")
        await merchant.get("/nothing/of/the/kind")
        await service.call("GET", "/favicon.ico")
        await service.call("PROPFIND", "/v1/payments")
        after = await scrape(service)

    def requests(method: str, route: str, status: str) -> float:
        return change(before, after, "guichet_http_requests_total", method=method, route=route, status=status)

    assert requests("POST", "/v1/payments", "201") == 1
    assert requests("GET", "/v1/payments/{reference}", "200") == 3
    assert requests("GET", "/v1/payments/{reference}", "404") == 1
    assert requests("GET", "unmatched", "404") == 2
    assert requests("other", "/v1/payments", "405") == 1
    labels = {"method": "GET", "route": "/v1/payments/{reference}"}
    assert change(before, after, "guichet_http_request_seconds_count", **labels) == 4
    assert change(before, after, "guichet_http_request_seconds_bucket", le="+Inf", **labels) == 4
    assert 0 < change(before, after, "guichet_http_request_seconds_sum", **labels) < 4
    buckets = [
        (float(dict(pairs)["le"]), count)
        for (name, pairs), count in after.items()
        if name == "guichet_http_request_seconds_bucket" and labels.items() <= pairs
    ]
    assert len(buckets) == 15
    assert [count for _, count in sorted(buckets)] == sorted(count for _, count in buckets), "they accumulate"
    assert payment["reference"] not in str(after)


async def test_who_asks_too_often(sqlite_settings: Settings) -> None:
    limited = replace(measured(sqlite_settings), rate_limit=2, page_rate_limit=2)
    async with open_service(limited) as service:
        before = await scrape(service)
        for _ in range(5):
            await service.call("GET", "/v1/balance")
        for _ in range(4):
            await service.call("GET", "/pay/no/such")
        after = await scrape(service)
    assert change(before, after, "guichet_rate_limited_requests_total", interface="api") == 3
    assert change(before, after, "guichet_rate_limited_requests_total", interface="checkout") == 2


async def test_operator_calls(settings: Settings) -> None:
    op, spare = ScriptedProvider(), ScriptedProvider()
    op.script("initiate", NotProcessed("operator_unavailable"))
    spare.script("initiate", taken)
    spare.script("status", Unknown("?"), Accepted(), done)
    spare.script("refund", done)
    connected: dict[str, Any] = {"accounts": {"op": op, "spare": spare}, "routes": {"mtn": ["op", "spare"]}}
    async with open_service(measured(settings), **connected) as service:
        merchant = (await service.merchant()).live
        before = await scrape(service)
        payment = await merchant.pay()
        for _ in range(3):
            await merchant.get(f"/payments/{payment['reference']}")
        assert (await merchant.post(f"/payments/{payment['reference']}/refund")).status in (200, 201, 202)
        await service.run_worker(1)
        after = await scrape(service)

    def calls(account: str, operation: str, result: str) -> float:
        labels = {"provider_account": account, "operation": operation, "result": result}
        return change(before, after, "guichet_provider_calls_total", **labels)

    assert calls("op", "initiate", "not_processed") == 1
    assert calls("spare", "initiate", "accepted") == 1
    assert [calls("spare", "status", each) for each in ("unknown", "accepted", "succeeded")] == [1, 1, 1]
    assert calls("spare", "refund", "succeeded") == 1
    counted = change(before, after, "guichet_provider_call_seconds_count", provider_account="spare", operation="status")
    assert counted == 3


async def test_what_the_database_holds(settings: Settings) -> None:
    silent = ScriptedProvider()
    silent.script("initiate", taken)
    silent.script("status", Accepted())
    connected: dict[str, Any] = {"accounts": {"op": silent}, "routes": {"mtn": ["op"]}}
    async with open_service(measured(settings), **connected) as service:
        merchant = await service.merchant()
        await merchant.put("/webhooks/endpoint", {"url": "https://localhost:9/hook"})
        await merchant.live.pay()
        await merchant.live.pay()
        service.clock.advance(2 * HOUR / SECOND)
        await merchant.live.pay("0000")
        succeeded = await merchant.pay("0000")
        await merchant.get(f"/payments/{succeeded['reference']}")
        reference = (await merchant.live.get("/payments")).data[0]["reference"]
        ctx = service.ctx
        now = ctx.clock.now()
        await incidents.report(
            ctx.db,
            merchant_id=merchant.id,
            env="live",
            kind=incidents.MISMATCH,
            subject_type="payment",
            reference=reference,
            provider_account="op",
            detail="x",
            now=now,
        )
        await incidents.store_unmatched_callback(
            ctx.db, provider_account="op", path="/x", body="{}", reason="unknown", now=now
        )
        first = await scrape(service)
        pending = {"env": "live", "operator": "mtn"}
        assert value(first, "guichet_payments_pending", age="1d", **pending) == 2
        assert value(first, "guichet_payments_pending", age="1m", **pending) == 1
        assert value(first, "guichet_payments_pending", age="1m", env="test", operator="mtn") == 0
        assert value(first, "guichet_deliveries", state="waiting") == 1
        assert value(first, "guichet_queue_due", queue="deliveries") == 1
        assert 2 * HOUR / SECOND - 60 < value(first, "guichet_queue_lag_seconds", queue="polling") <= 2 * HOUR / SECOND
        assert value(first, "guichet_incidents_open", kind="mismatch") == 1
        assert ("guichet_incidents_open", frozenset({("kind", "stuck")})) in first
        assert value(first, "guichet_unmatched_callbacks") == 1
        assert value(first, "guichet_ledger_audit_state", state="never") == 1
        assert not [name for name, _ in first if name == "guichet_ledger_audit_age_seconds"]
        assert value(first, "guichet_ledger_hash_chain_lag_seconds") == 0
        if settings.embedded:
            assert value(first, "guichet_commit_group_transactions_count") > 0
        else:
            assert value(first, "guichet_database_connections_max") == 16
            assert 0 <= value(first, "guichet_database_connections_used") <= 16

        tried = await scrape(service)
        await service.run_worker()
        await audit(ctx.db, ctx.clock, lambda _: None)
        service.clock.advance(DAY / SECOND)
        again = await scrape(service)
        assert value(again, "guichet_deliveries", state="waiting") == 1, "read again too soon"
        assert change(tried, again, "guichet_webhook_attempts_total", result="unanswered") == 1

        await asyncio.sleep(FRESH_FOR + 20 * value(again, "guichet_database_read_seconds"))
        later = await scrape(service)
        assert value(later, "guichet_deliveries", state="waiting") == 0
        assert value(later, "guichet_deliveries", state="retrying") == 1
        assert value(later, "guichet_payments_pending", age="3d", **pending) == 3
        assert value(later, "guichet_ledger_audit_state", state="clean") == 1
        assert value(later, "guichet_ledger_audit_age_seconds") == DAY / SECOND
        assert value(later, "guichet_ledger_hash_chain_lag_seconds") == DAY / SECOND


async def test_a_refund_that_waits(sqlite_settings: Settings) -> None:
    op = ScriptedProvider()
    op.script("initiate", done)
    op.script("refund", Unknown("?"))
    op.script("refund_status", Unknown("?"))
    connected: dict[str, Any] = {"accounts": {"op": op}, "routes": {"mtn": ["op"]}}
    async with open_service(measured(sqlite_settings), **connected) as service:
        merchant = (await service.merchant()).live
        payment = await merchant.pay()
        await merchant.post(f"/payments/{payment['reference']}/refund")
        await service.run_worker(5 * 60)
        samples = await scrape(service)
    assert value(samples, "guichet_refunds_pending", env="live", age="10m") == 1


async def test_a_database_that_is_away_is_a_metric(
    sqlite_settings: Settings, postgres_server: str, postgres_template: str
) -> None:
    """What the process counted is still served."""
    import asyncpg

    connection = await asyncpg.connect(postgres_server)
    await connection.execute(f"CREATE DATABASE metrics_away TEMPLATE {postgres_template}")
    url = postgres_server.replace("/postgres?", "/metrics_away?")
    try:
        async with open_service(replace(measured(sqlite_settings), database_url=url)) as service:
            await connection.execute("ALTER DATABASE metrics_away ALLOW_CONNECTIONS false")
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'metrics_away'"
            )
            samples = await scrape(service)
            assert value(samples, "guichet_database_up") == 0
            assert not [name for name, _ in samples if name == "guichet_queue_due"]
            assert value(samples, "process_resident_memory_bytes") > 0
    finally:
        await connection.close()


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_a_database_that_is_back_is_seen_at_once(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed read takes as long as it waited; resting for twenty times that would be a false alarm."""
    import asyncpg

    monkeypatch.setattr(db_metrics, "_TIMEOUT", 0.5)
    async with open_service(measured(settings)) as service:
        connection = await asyncpg.connect(settings.database_url)
        async with connection.transaction():
            await connection.execute("LOCK TABLE payments")
            assert value(await scrape(service), "guichet_database_up") == 0
        await connection.close()
        await asyncio.sleep(FRESH_FOR)
        assert value(await scrape(service), "guichet_database_up") == 1


async def test_scrapers_that_come_together_share_one_read(settings: Settings) -> None:
    async with open_service(measured(settings)) as service:
        answers = await asyncio.gather(*(scrape(service) for _ in range(8)))
    took = {value(samples, "guichet_database_read_seconds") for samples in answers}
    assert len(took) == 1


def test_every_process_of_a_fleet(cli: Cli) -> None:
    """`serve --workers 2`: one port each, from GUICHET_METRICS_PORT on; a token alone is refused there."""
    refusal = cli.having(GUICHET_METRICS_TOKEN=TOKEN)("serve", "--workers", 2, "--port", free_port()).refusal
    assert "GUICHET_METRICS_PORT" in refusal
    port = free_port()
    with cli.having(GUICHET_METRICS_PORT=str(port)).running("serve", "--workers", "2") as server:
        addresses = [f"http://127.0.0.1:{port + each}/metrics" for each in (0, 1)]
        until(lambda: all(_answers(address) for address in addresses), 20)
        for address in addresses:
            assert value(_fetch(address), "guichet_worker_turns_total", loop="housekeeping") >= 0
        with urllib.request.urlopen(f"{server.address}/healthz", timeout=5):
            """Served by one of the two."""
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{server.address}/metrics", timeout=5)
        server.stop()


def test_a_worker_has_metrics_too(cli: Cli, settings: Settings) -> None:
    port = free_port()
    address = f"http://127.0.0.1:{port}/metrics"
    with cli.having(GUICHET_METRICS_PORT=str(port)).start("worker") as worker:
        until(lambda: worker.poll() is not None or _answers(address), 20)

        def turns() -> float:
            return value(_fetch(address), "guichet_worker_turns_total", loop="housekeeping")

        began = turns()
        until(lambda: turns() > began, 5)
        assert value(_fetch(address), "guichet_worker_failures_total", loop="housekeeping", what="turn") == 0
        worker.terminate()
        assert worker.wait(10) == 0


def test_a_port_that_is_taken(sqlite_cli: Cli) -> None:
    port = free_port()
    squatting = (
        f"import socket, time; s = socket.create_server(('127.0.0.1', {port})); print(flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", squatting], stdout=subprocess.PIPE) as squatter:
        assert squatter.stdout is not None
        squatter.stdout.readline()
        refusal = sqlite_cli.having(GUICHET_METRICS_PORT=str(port))("serve", "--port", free_port()).refusal
        assert refusal == f"GUICHET_METRICS_PORT: cannot listen on 127.0.0.1, port {port}: it is already in use."
        squatter.kill()


def _fetch(address: str) -> Samples:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return parsed(answer.read().decode())


def _answers(address: str) -> bool:
    try:
        return bool(_fetch(address))
    except OSError:
        return False
