"""`/metrics`: who may read it, on which port, and what one process counts."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from guichet.providers.base import Accepted, NotProcessed, Unknown
from guichet.server.metrics_port import metrics_port
from guichet.settings import Settings
from tests.fakes.scripted_provider import ScriptedProvider, done, taken
from tests.ports import free_port
from tests.server.metrics_reader import TOKEN, change, measured, parsed, scrape, value
from tests.service_fixture import ServiceFixture, open_service


async def test_without_settings_metrics_are_not_served(sqlite_service: ServiceFixture) -> None:
    answer = await sqlite_service.call("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (answer.status, answer.error["code"]) == (404, "not_found")


async def test_metrics_require_the_token(sqlite_settings: Settings) -> None:
    async with open_service(measured(sqlite_settings)) as service:
        for headers in ({}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": f"Basic {TOKEN}"}):
            answer = await service.call("GET", "/metrics", headers=headers)
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
            assert answer.raw == b""
        scraped = await scrape(service)
        assert value(scraped, "guichet_database_up") == value(scraped, "guichet_database_writable") == 1


async def test_metrics_are_served_on_their_own_port(sqlite_settings: Settings) -> None:
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


async def test_requests_are_counted_by_route_template(sqlite_settings: Settings) -> None:
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
    assert change(before, after, "guichet_http_request_seconds_sum", **labels) > 0
    buckets = [
        (float(dict(pairs)["le"]), count)
        for (name, pairs), count in after.items()
        if name == "guichet_http_request_seconds_bucket" and labels.items() <= pairs
    ]
    assert len(buckets) == 15
    assert [count for _, count in sorted(buckets)] == sorted(count for _, count in buckets), "they accumulate"
    assert payment["reference"] not in str(after)


async def test_rate_limited_requests_are_counted(sqlite_settings: Settings) -> None:
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


async def test_provider_calls_are_counted_by_result(settings: Settings) -> None:
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
