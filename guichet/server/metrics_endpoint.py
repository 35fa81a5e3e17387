"""`GET /metrics`: the counters of this process and what the database holds, in Prometheus' text format."""

import asyncio
import secrets
from collections.abc import Iterator
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    Metric,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from guichet import metrics
from guichet.context import AppContext
from guichet.server.db_metrics import DatabaseMetrics

PATH: Final = "/metrics"


def routes(ctx: AppContext) -> list[Route]:
    """The route of `/metrics`; it asks for `GUICHET_METRICS_TOKEN`, if that is set, as a bearer token."""
    expected = ctx.settings.metrics_token
    database_metrics = DatabaseMetrics(ctx.monitoring_db or ctx.db, ctx.clock, serving=ctx.db)
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    registry.register(_OfProcess())
    registry.register(database_metrics)

    async def scrape(request: Request) -> Response:
        if expected is not None and not _authorized(request, expected):
            return Response(status_code=401, headers={"WWW-Authenticate": "Bearer"})
        _, fault = await asyncio.gather(database_metrics.refresh(), ctx.write_probe.fault())
        metrics.DATABASE_WRITABLE.set(fault is None)
        text = await asyncio.to_thread(generate_latest, registry)  # Thousands of lines: not on the event loop.
        return Response(text, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    return [Route(PATH, scrape, methods=["GET"])]


class _OfProcess(Collector):
    def collect(self) -> Iterator[Metric]:
        return metrics.collect()


def _authorized(request: Request, expected: str) -> bool:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and secrets.compare_digest(token.strip().encode(), expected.encode())
