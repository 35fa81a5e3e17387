"""The only module that knows OpenTelemetry: spans, exported in batches over OTLP/HTTP by a thread of their own.

It is imported when `GUICHET_OTLP_ENDPOINT` is set (`tracing.py`). The collector is an address that the operator of the
service chose; the exporter reaches it by itself, beside `http_client`, which belongs to the event loop.
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
from guichet.tracing import PAYMENT, Attributes, End

#: What waits when the service stops is sent within this, in seconds, or not at all.
FLUSH: Final = 0.4

_FAILED: Final = Status(StatusCode.ERROR)
#: `tracestate` is other people's, and nobody here hands it on.
_CALLER: Final = TraceContextTextMapPropagator()


@contextmanager
def exported_to(endpoint: str) -> Iterator["OtlpSpans"]:
    """`endpoint`: the collector's base address; spans go to its /v1/traces."""
    ids = _Ids()
    # Always on: whether a caller samples its own traces decides nothing about ours.
    provider = TracerProvider(
        sampler=ALWAYS_ON,
        id_generator=ids,
        resource=Resource.create({"service.name": "guichet", "service.version": __version__}),
        shutdown_on_exit=False,
    )
    exporter = _OneLine(endpoint)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    try:
        yield OtlpSpans(provider.get_tracer("guichet"), ids)
    finally:
        leaving = Thread(target=provider.shutdown, name="traces-leaving", daemon=True)
        leaving.start()
        leaving.join(FLUSH)
        exporter.shutdown()  # Ends its patience with a collector that is away.


class OtlpSpans:
    """See `tracing.Spans`."""

    def __init__(self, tracer: trace.Tracer, ids: "_Ids") -> None:
        self._tracer = tracer
        self._ids = ids

    @contextmanager
    def request(self, traceparent: str | None) -> Iterator[End]:
        parent = _CALLER.extract({"traceparent": traceparent}) if traceparent else None

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
        span = self._begin(name, SpanKind.INTERNAL, attributes)
        with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield
            except BaseException:
                span.set_status(_FAILED)
                raise

    def call(self, name: str, seconds: float, attributes: Attributes, *, failed: bool) -> None:
        ended = time.time_ns()
        span = self._begin(name, SpanKind.CLIENT, attributes, ended - round(seconds * 1e9))
        if failed:
            span.set_status(_FAILED)
        span.end(ended)

    def note(self, attributes: Attributes) -> None:
        trace.get_current_span().set_attributes(attributes)

    def _begin(self, name: str, kind: SpanKind, attributes: Attributes, began: int | None = None) -> trace.Span:
        with self._ids.of_payment(attributes.get(PAYMENT)):
            return self._tracer.start_span(name, kind=kind, attributes=attributes, start_time=began)


class _Ids(RandomIdGenerator):
    """Random, but for what begins a trace about a payment: everything about it outside requests is then one trace."""

    def __init__(self) -> None:
        self._payment: str | int | None = None

    @contextmanager
    def of_payment(self, reference: str | int | None) -> Iterator[None]:
        """Nothing is awaited inside: there is one at a time."""
        self._payment = reference
        try:
            yield
        finally:
            self._payment = None

    def generate_trace_id(self) -> int:
        return super().generate_trace_id() if self._payment is None else UUID(str(self._payment)).int


class _OneLine(SpanExporter):
    """Says once that the collector is away and once that it is back, instead of what the library says of each batch."""

    def __init__(self, endpoint: str) -> None:
        session = requests.Session()
        session.trust_env = False  # As everything that leaves: no proxy that nobody chose for this.
        self._endpoint = endpoint
        self._inner = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces", session=session)
        self._away = False
        self._library = _Overheard()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._inner.export(spans)
        away = result is not SpanExportResult.SUCCESS
        if away and not self._away:
            log.warning("traces.collector_away", endpoint=self._endpoint, detail=self._library.said)
        elif self._away and not away:
            log.info("traces.collector_back", endpoint=self._endpoint)
        self._away = away
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return True


class _Overheard(logging.Handler):
    """Takes the library's lines out of the log and keeps the latest: why a batch did not leave."""

    def __init__(self) -> None:
        super().__init__()
        self.said = ""
        library = logging.getLogger("opentelemetry")
        library.handlers = [self]
        library.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        self.said = record.getMessage()
