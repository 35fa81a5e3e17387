"""Exports spans to an OpenTelemetry collector, in batches over OTLP/HTTP, from a thread of its own.

Only this module imports OpenTelemetry; `tracing.py` imports it when `GUICHET_OTLP_ENDPOINT` is set. The staff chose the
collector's address, so the exporter calls it directly and not through `http_client`, whose address guard would refuse
private networks and which belongs to the event loop.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import Final
from uuid import UUID

import requests
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from guichet import __version__
from guichet.logs import log
from guichet.tracing import PAYMENT, Attributes, EndSpan

#: Seconds that the spans still in memory have to leave when the service stops; later they are lost.
FLUSH_TIMEOUT: Final = 0.4

_FAILED: Final = Status(StatusCode.ERROR)
#: Reads the caller's `traceparent`; `tracestate` is not read, and nothing is passed on.
_PROPAGATOR: Final = TraceContextTextMapPropagator()


@contextmanager
def exporter(endpoint: str) -> Iterator["OtlpTracer"]:
    """Exports while the block lasts. `endpoint`: the collector's base address; spans go to its /v1/traces."""
    ids = _TraceIds()
    # Always on: whether a caller samples its own traces does not decide about ours.
    provider = TracerProvider(
        sampler=ALWAYS_ON,
        id_generator=ids,
        resource=Resource.create({"service.name": "guichet", "service.version": __version__}),
        shutdown_on_exit=False,
    )
    spans = _QuietExporter(endpoint)
    provider.add_span_processor(BatchSpanProcessor(spans))
    try:
        yield OtlpTracer(provider.get_tracer("guichet"), ids)
    finally:
        flushing = Thread(target=provider.shutdown, name="traces-flush", daemon=True)
        flushing.start()
        flushing.join(FLUSH_TIMEOUT)
        spans.shutdown()  # Ends its retries if the collector is away.


class OtlpTracer:
    """Implements `tracing.Tracer`."""

    def __init__(self, tracer: trace.Tracer, ids: "_TraceIds") -> None:
        self._tracer = tracer
        self._ids = ids

    @contextmanager
    def request(self, traceparent: str | None) -> Iterator[EndSpan]:
        parent = _PROPAGATOR.extract({"traceparent": traceparent}) if traceparent else None

        def end(name: str, attributes: Attributes, failed: bool) -> None:
            span.update_name(name)
            span.set_attributes(attributes)
            if failed:
                span.set_status(_FAILED)

        with self._tracer.start_as_current_span(
            "request", parent, SpanKind.SERVER, record_exception=False, set_status_on_exception=False
        ) as span:
            yield end

    @contextmanager
    def step(self, name: str, attributes: Attributes) -> Iterator[None]:
        span = self._start(name, SpanKind.INTERNAL, attributes)
        with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield
            except BaseException:
                span.set_status(_FAILED)
                raise

    def call(self, name: str, seconds: float, attributes: Attributes, *, failed: bool) -> None:
        ended = time.time_ns()
        span = self._start(name, SpanKind.CLIENT, attributes, ended - round(seconds * 1e9))
        if failed:
            span.set_status(_FAILED)
        span.end(ended)

    def set_attributes(self, attributes: Attributes) -> None:
        trace.get_current_span().set_attributes(attributes)

    def _start(self, name: str, kind: SpanKind, attributes: Attributes, started_at: int | None = None) -> trace.Span:
        with self._ids.of_payment(attributes.get(PAYMENT)):
            return self._tracer.start_span(name, kind=kind, attributes=attributes, start_time=started_at)


class _TraceIds(RandomIdGenerator):
    """Random ids, except for a trace that begins with a payment: its id is the payment's reference, so that everything
    done about the payment outside requests is one trace.
    """

    def __init__(self) -> None:
        self._payment: str | int | None = None

    @contextmanager
    def of_payment(self, reference: str | int | None) -> Iterator[None]:
        """The block must not await: there is one value for the whole process."""
        self._payment = reference
        try:
            yield
        finally:
            self._payment = None

    def generate_trace_id(self) -> int:
        return super().generate_trace_id() if self._payment is None else UUID(str(self._payment)).int


class _QuietExporter(SpanExporter):
    """Logs once that the collector is away and once that it is back, where the library would log every batch."""

    def __init__(self, endpoint: str) -> None:
        session = requests.Session()
        session.trust_env = False  # No proxy from the environment, as for all our calls.
        self._endpoint = endpoint
        self._exporter = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces", session=session)
        self._away = False
        self._library_log = _LibraryLog()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        away = result is not SpanExportResult.SUCCESS
        if away and not self._away:
            log.warning("traces.collector_away", endpoint=self._endpoint, detail=self._library_log.last)
        elif self._away and not away:
            log.info("traces.collector_back", endpoint=self._endpoint)
        self._away = away
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return True


class _LibraryLog(logging.Handler):
    """Keeps the library's lines out of the log and remembers the last one: why a batch was not taken."""

    def __init__(self) -> None:
        super().__init__()
        self.last = ""
        library = logging.getLogger("opentelemetry")
        library.handlers = [self]
        library.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()
