"""What this process counts, for Prometheus. The operator's guide lists every name ("Metrics and alerts").

No label ever takes a value that a stranger chooses: routes are templates, connections come from the operators' file.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from guichet import __version__

disable_created_metrics()  # type: ignore[no-untyped-call]
REGISTRY: Final = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

#: The route of a request that matched none, and the method of one that HTTP does not know well.
UNMATCHED: Final = "unmatched"
OTHER: Final = "other"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: A request whose answer never began.
_NO_STATUS: Final = "none"

_FAST: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SLOW: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0)

_BUILD: Final = Gauge("guichet_build_info", "Always 1; the label is what matters.", ("version",), registry=REGISTRY)
_BUILD.labels(__version__).set(1)


class Timings(Collector):
    """A counter and a histogram of the same events; the histogram has all labels but the last.

    Only the event loop adds, so nothing is locked: an event costs a look-up and two additions.
    """

    def __init__(
        self, counter: tuple[str, str], histogram: tuple[str, str], labels: tuple[str, ...], bounds: tuple[float, ...]
    ) -> None:
        """`counter` and `histogram` are names and meanings; `bounds` are seconds, ascending."""
        self._counter = counter
        self._histogram = histogram
        self._labels = labels
        self._bounds = bounds
        self._sums: dict[tuple[str, ...], float] = {}
        self._tallies: dict[tuple[str, ...], list[int]] = {}
        REGISTRY.register(self)

    def add(self, labels: tuple[str, ...], seconds: float) -> None:
        tally = self._tallies.get(labels)
        if tally is None:
            self._sums[labels] = 0.0
            tally = self._tallies[labels] = [0] * (len(self._bounds) + 1)
        self._sums[labels] += seconds
        tally[bisect_left(self._bounds, seconds)] += 1

    def collect(self) -> Iterator[CounterMetricFamily | HistogramMetricFamily]:
        counter = CounterMetricFamily(*self._counter, labels=self._labels)
        histogram = HistogramMetricFamily(*self._histogram, labels=self._labels[:-1])
        merged: dict[tuple[str, ...], tuple[float, list[int]]] = {}
        for labels, tally in list(self._tallies.items()):
            counter.add_metric(labels, sum(tally))
            seconds, counts = merged.get(labels[:-1], (0.0, [0] * len(tally)))
            merged[labels[:-1]] = seconds + self._sums[labels], [sum(both) for both in zip(counts, tally, strict=True)]
        names = [*map(str, self._bounds), "+Inf"]
        for labels, (seconds, counts) in merged.items():
            histogram.add_metric(labels, list(zip(names, accumulate(counts), strict=True)), seconds)
        yield counter
        yield histogram


_REQUESTS: Final = Timings(
    ("guichet_http_requests", "HTTP requests answered, by route template."),
    ("guichet_http_request_seconds", "Seconds from a request's head to the end of its answer."),
    ("method", "route", "status"),
    _FAST,
)
_CALLS: Final = Timings(
    (
        "guichet_operator_calls",
        "Calls to operators, by connection, kind (initiate, status, refund, refund_status, send_code) and answer.",
    ),
    ("guichet_operator_call_seconds", "Seconds until an operator answered, or was given up."),
    ("connection", "kind", "answer"),
    _SLOW,
)
RATE_LIMITED: Final = Counter(
    "guichet_rate_limited_requests",
    "Requests refused because their address sent too many, by interface (api, callbacks, checkout).",
    ("interface",),
    registry=REGISTRY,
)
LOOP_TURNS: Final = Counter("guichet_worker_turns", "Turns of each loop.", ("loop",), registry=REGISTRY)
LOOP_FAILURES: Final = Counter(
    "guichet_worker_failures",
    "What a loop could not do: a whole turn, or one item of it; both come due again.",
    ("loop", "what"),
    registry=REGISTRY,
)
WEBHOOK_ATTEMPTS: Final = Counter(
    "guichet_webhook_attempts",
    "Attempts at webhooks: delivered, refused (the receiver's status was not 2xx), unanswered, unsigned (a fault of"
    " ours: its secret cannot be read).",
    ("outcome",),
    registry=REGISTRY,
)
#: Shown as 0 from the start: a series that appears with its first event has not risen yet, and alerts nobody.
for _interface in ("api", "callbacks", "checkout"):
    RATE_LIMITED.labels(_interface)
for _outcome in ("delivered", "refused", "unanswered", "unsigned"):
    WEBHOOK_ATTEMPTS.labels(_outcome)
COMMIT_GROUP: Final = Histogram(
    "guichet_commit_group_transactions",
    "Transactions that shared one commit of the embedded database.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128),
    registry=REGISTRY,
)


def request(method: str, route: str | None, status: int, seconds: float) -> None:
    """`route`: its template, None when there was none; `status` 0 when no answer began."""
    known = method if method in _METHODS else OTHER
    _REQUESTS.add((known, route or UNMATCHED, str(status) if status else _NO_STATUS), seconds)


def provider_call(connection: str, kind: str, answer: str, seconds: float) -> None:
    """`answer`: the name of the type that the connector answered with, in lower case and with underscores."""
    _CALLS.add((connection, kind, answer), seconds)
