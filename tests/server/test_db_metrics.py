"""What `/metrics` reads from the database, and what it says while the database is away."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from guichet.clock import DAY, HOUR, SECOND
from guichet.ledger.audit import audit
from guichet.provider_callbacks import unmatched as unmatched_callbacks
from guichet.providers.base import Accepted, Unknown
from guichet.server import db_metrics
from guichet.server.db_metrics import DatabaseMetrics
from guichet.settings import Settings
from tests.fakes.scripted_provider import ScriptedProvider, done, taken
from tests.server.metrics_reader import change, measured, scrape, value
from tests.service_fixture import open_service


async def test_metrics_show_the_state_of_the_database(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(db_metrics, "FRESH_FOR", 0.0)
    monkeypatch.setattr(db_metrics, "_REUSE_FACTOR", 0)
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
        await merchant.report_mismatch(reference)
        await unmatched_callbacks.keep_sample(
            ctx.db, provider_account="op", path="/x", body=b"{}", reason="no_match", now=now
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
        replicated = {name for name, _ in first if "standby" in name or "slot" in name or "wal_archive" in name}
        if settings.embedded:
            assert not replicated
            assert value(first, "guichet_commit_group_transactions_count") > 0
        else:
            pools = {pool: value(first, "guichet_database_connections_max", pool=pool) for pool in ("read", "write")}
            assert sum(pools.values()) == 16
            for pool, most in pools.items():
                assert 0 <= value(first, "guichet_database_connections_used", pool=pool) <= most
            assert {"guichet_synchronous_standbys_missing", "guichet_wal_archive_on"} <= replicated

        tried = await scrape(service)
        await service.run_worker()
        await audit(ctx.db, ctx.clock, lambda _: None)
        service.clock.advance(DAY / SECOND)
        later = await scrape(service)
        assert change(tried, later, "guichet_webhook_attempts_total", result="unanswered") == 1
        assert value(later, "guichet_deliveries", state="waiting") == 0
        assert value(later, "guichet_deliveries", state="retrying") == 1
        assert value(later, "guichet_payments_pending", age="3d", **pending) == 3
        assert value(later, "guichet_ledger_audit_state", state="clean") == 1
        assert value(later, "guichet_ledger_audit_age_seconds") == DAY / SECOND
        assert value(later, "guichet_ledger_hash_chain_lag_seconds") == DAY / SECOND


async def test_a_read_of_the_database_is_reused(sqlite_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(db_metrics, "FRESH_FOR", 300.0)
    async with open_service(measured(sqlite_settings)) as service:
        merchant = await service.merchant()
        await merchant.put("/webhooks/endpoint", {"url": "https://localhost:9/hook"})
        before = await scrape(service)
        await merchant.pay("0000")
        await service.run_worker()
        again = await scrape(service)
    assert value(again, "guichet_deliveries", state="retrying") == 0, "read again too soon"
    assert change(before, again, "guichet_webhook_attempts_total", result="unanswered") == 1, (
        "what costs nothing is new"
    )


async def test_a_pending_refund_is_counted_by_age(sqlite_settings: Settings) -> None:
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


async def test_an_unreachable_database_is_shown_as_down(
    sqlite_settings: Settings, postgres_server: str, postgres_template: str
) -> None:
    """The counters of the process are still served."""
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
async def test_a_database_that_is_back_is_shown_as_up_at_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed read takes as long as it waited; waiting twenty times that would show a false outage."""
    import asyncpg

    monkeypatch.setattr(db_metrics, "FRESH_FOR", 0.5)
    async with open_service(measured(settings)) as service:
        metrics = DatabaseMetrics(service.ctx.db, service.ctx.clock, timeout=2.0)
        registry = CollectorRegistry()
        registry.register(metrics)

        async def database_up() -> float | None:
            await metrics.refresh()
            return registry.get_sample_value("guichet_database_up")

        connection = await asyncpg.connect(settings.database_url)
        async with connection.transaction():
            await connection.execute("LOCK TABLE payments")
            assert await database_up() == 0
        await connection.close()
        await asyncio.sleep(db_metrics.FRESH_FOR)
        assert await database_up() == 1


async def test_simultaneous_scrapes_share_one_read(settings: Settings) -> None:
    async with open_service(measured(settings)) as service:
        answers = await asyncio.gather(*(scrape(service) for _ in range(8)))
    took = {value(samples, "guichet_database_read_seconds") for samples in answers}
    assert len(took) == 1
