"""What this process counts, for Prometheus. docs/admin-guide.md, "Metrics and alerts", lists every metric.

No label takes a value that a client chooses: routes are templates, accounts come from the providers' file.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Protocol

from guichet import __version__

if TYPE_CHECKING:
    from prometheus_client import Metric

#: The label of a request that matched no route, and of a method that is not one of `_METHODS`.
UNMATCHED: Final = "unmatched"
OTHER: Final = "other"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: The status of a request whose response never began.
_NO_STATUS: Final = "none"

_REQUEST_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_PROVIDER_CALL_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0)


class Series:
    """One number. Only the event loop changes it, so it takes no lock."""

    __slots__ = ("_read", "_value")

    def __init__(self) -> None:
        self._value: float = 0
        self._read: Callable[[], float] | None = None

    def inc(self, by: float = 1) -> None:
        self._value += by

    def dec(self) -> None:
        self._value -= 1

    def set(self, value: float) -> None:
        self._value = value

    def set_function(self, read: Callable[[], float]) -> None:
        """Asked at each scrape, in a thread."""
        self._read = read

    @property
    def value(self) -> float:
        return self._value if self._read is None else self._read()


class _Collected(Protocol):
    def collect(self) -> "Iterator[Metric]": ...


#: All that is counted, in the order in which it is shown.
_METRICS: Final[list[_Collected]] = []


class Counter:
    """A series for each values of its labels. prometheus_client, 30 modules and a megabyte, is imported by the first
    scrape, here and below."""

    _is_gauge = False

    def __init__(self, name: str, help_text: str, labels: Sequence[str] = (), shown: Sequence[str] = ()) -> None:
        """`shown`: the values of the only label that are 0 from the start. A series that begins with its first event
        shows no increase, so no alert would fire."""
        self._name = name
        self._help = help_text
        self._labels = labels
        self._series: dict[tuple[str, ...], Series] = {(value,): Series() for value in shown}
        _METRICS.append(self)

    def labels(self, *values: str) -> Series:
        return self._series.get(values) or self._series.setdefault(values, Series())

    def collect(self) -> "Iterator[Metric]":
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415

        family: CounterMetricFamily | GaugeMetricFamily
        if self._is_gauge:
            family = GaugeMetricFamily(self._name, self._help, labels=self._labels)
        else:
            family = CounterMetricFamily(self._name, self._help, labels=self._labels)
        for values, series in [*self._series.items()]:
            family.add_metric(values, series.value)
        yield family


class Gauge(Counter):
    _is_gauge = True


def collect() -> "Iterator[Metric]":
    """What this process counts, as prometheus_client takes it."""
    for metric in _METRICS:
        yield from metric.collect()


Gauge("guichet_build_info", "Always 1; the label says which version runs.", ("version",)).labels(__version__).set(1)


class Sizes:
    """How many events had which size."""

    def __init__(self, name: str, help_text: str, bounds: Sequence[int]) -> None:
        self._name = name
        self._help = help_text
        self._bounds = bounds
        self._events = [0] * (len(bounds) + 1)
        self._sum = 0
        _METRICS.append(self)

    def observe(self, size: int) -> None:
        self._events[bisect_left(self._bounds, size)] += 1
        self._sum += size

    def collect(self) -> "Iterator[Metric]":
        from prometheus_client.core import HistogramMetricFamily  # noqa: PLC0415

        bounds = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        family = HistogramMetricFamily(self._name, self._help)
        family.add_metric((), list(zip(bounds, accumulate(self._events), strict=True)), self._sum)
        yield family


class Timings:
    """A counter and a histogram of the same events. The histogram has all labels of the counter but the last."""

    def __init__(
        self, counter: tuple[str, str], histogram: tuple[str, str], labels: tuple[str, ...], bounds: tuple[float, ...]
    ) -> None:
        """`counter` and `histogram` are (name, help text); `bounds` are upper bounds in seconds, ascending."""
        self._counter = counter
        self._histogram = histogram
        self._labels = labels
        self._bounds = bounds
        #: For each label: how many events each bucket has, and last their seconds.
        self._events: dict[tuple[str, ...], list[float]] = {}
        _METRICS.append(self)

    def add(self, labels: tuple[str, ...], seconds: float) -> None:
        events = self._events.get(labels)
        if events is None:
            events = self._events[labels] = [0] * (len(self._bounds) + 2)
        events[bisect_left(self._bounds, seconds)] += 1
        events[-1] += seconds

    def collect(self) -> "Iterator[Metric]":
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily  # noqa: PLC0415

        counter = CounterMetricFamily(*self._counter, labels=self._labels)
        histogram = HistogramMetricFamily(*self._histogram, labels=self._labels[:-1])
        merged: dict[tuple[str, ...], list[float]] = {}
        for labels, events in list(self._events.items()):
            counter.add_metric(labels, sum(events[:-1]))
            total = merged.get(labels[:-1], [0] * len(events))
            merged[labels[:-1]] = [sum(both) for both in zip(total, events, strict=True)]
        bounds = [*map(str, self._bounds), "+Inf"]
        for labels, (*counts, seconds) in merged.items():
            histogram.add_metric(labels, list(zip(bounds, accumulate(counts), strict=True)), seconds)
        yield counter
        yield histogram


_REQUESTS: Final = Timings(
    ("guichet_http_requests", "HTTP requests, by route template."),
    ("guichet_http_request_seconds", "Seconds from the head of a request to the end of its response."),
    ("method", "route", "status"),
    _REQUEST_BUCKETS,
)
_PROVIDER_CALLS: Final = Timings(
    (
        "guichet_provider_calls",
        "Calls to providers, by account, operation (initiate, status, refund, refund_status, send_code) and result.",
    ),
    ("guichet_provider_call_seconds", "Seconds until a provider responded or the time limit passed."),
    ("provider_account", "operation", "result"),
    _PROVIDER_CALL_BUCKETS,
)
RATE_LIMITED: Final = Counter(
    "guichet_rate_limited_requests",
    "Requests refused because their address sent too many, by interface (api, callbacks, checkout), or their merchant.",
    ("interface",),
    ("api", "callbacks", "checkout", "merchant"),
)
CLOSED_CONNECTIONS: Final = Counter(
    "guichet_closed_connections",
    "Connections that were closed because of a limit of the port, by reason (head_time, head_size, …).",
    ("reason",),
    (
        "address",
        "body_size",
        "body_time",
        "full",
        "head_size",
        "head_time",
        "malformed",
        "pipelined",
        "stalled",
        "target_size",
    ),
)
OPEN_CONNECTIONS: Final = Gauge("guichet_open_connections", "Connections of clients that are open.").labels()
UNMATCHED_CALLBACKS: Final = Counter(
    "guichet_unmatched_callbacks",
    "Callbacks that name no payment or refund, by account (unknown: no such account) and reason.",
    ("provider_account", "reason"),
)
UNMATCHED_CALLBACKS_SAMPLED: Final = Counter(
    "guichet_unmatched_callbacks_sampled",
    "What became of them: kept in the sample that `guichet incidents` shows, or dropped because it is full or was"
    " written too often.",
    ("provider_account", "result"),
)
for _result in ("kept", "dropped"):  # Shown from the start, too.
    UNMATCHED_CALLBACKS_SAMPLED.labels("unknown", _result)
LOOP_TURNS: Final = Counter("guichet_worker_turns", "Iterations of each loop.", ("loop",))
LOOP_FAILURES: Final = Counter(
    "guichet_worker_failures",
    "Failures of a loop: of a whole turn, or of one item. Either is tried again.",
    ("loop", "what"),
)
WEBHOOK_ATTEMPTS: Final = Counter(
    "guichet_webhook_attempts",
    "Attempts to deliver webhooks: delivered, refused (the receiver's status was not 2xx), unanswered; unsigned (the"
    " signing secret cannot be read) and own_fault (we lacked something), which do not count for a day.",
    ("result",),
    ("delivered", "refused", "unanswered", "unsigned", "own_fault"),
)
LOGGED_REQUESTS: Final = Counter(
    "guichet_logged_requests",
    "Requests of merchants' keys and the log that the console shows: written; sampled_out (more than 200 of one"
    " merchant in ten seconds); dropped (the database did not take them in time).",
    ("result",),
    ("written", "sampled_out", "dropped"),
)
WEBHOOK_SLOTS: Final = Gauge(
    "guichet_webhook_attempts_running",
    "Webhook attempts that run now, by what is known of their merchants: answering, unproven, in_timeout.",
    ("merchants",),
)
DATABASE_WRITABLE: Final = Gauge(
    "guichet_database_writable",
    "1 if the last small write to the database worked, else 0; tried at each scrape, as `/readyz` does.",
).labels()
COMMIT_GROUP: Final = Sizes(
    "guichet_commit_group_transactions",
    "Transactions that shared one commit of the embedded database.",
    (1, 2, 4, 8, 16, 32, 64, 128),
)


def request(method: str, route: str | None, status: int, seconds: float) -> None:
    """Counts a request. `route`: its template, None if none matched; `status`: 0 if the response never began."""
    known = method if method in _METHODS else OTHER
    _REQUESTS.add((known, route or UNMATCHED, str(status) if status else _NO_STATUS), seconds)


def provider_call(provider_account: str, operation: str, result: str, seconds: float) -> None:
    """Counts a call. `result`: the name of the type of the provider's result, in lower case with underscores."""
    _PROVIDER_CALLS.add((provider_account, operation, result), seconds)
