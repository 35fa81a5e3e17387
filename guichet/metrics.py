"""What this process counts, for Prometheus. The operator's guide lists every name ("Metrics and alerts").

Children are bound once for each combination of labels, so a request pays two additions (about 2 µs). No label ever
takes a value that a stranger chooses: routes are templates, connections come from the operators' file.
"""

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

_REQUESTS: Final = Counter(
    "guichet_http_requests",
    "HTTP requests answered, by route template.",
    ("method", "route", "status"),
    registry=REGISTRY,
)
_SECONDS: Final = Histogram(
    "guichet_http_request_seconds",
    "Seconds from a request's head to the end of its answer.",
    ("method", "route"),
    buckets=_FAST,
    registry=REGISTRY,
)
_CALLS: Final = Counter(
    "guichet_operator_calls",
    "Calls to operators, by connection, kind (initiate, status, refund, refund_status) and answer.",
    ("connection", "kind", "answer"),
    registry=REGISTRY,
)
_CALL_SECONDS: Final = Histogram(
    "guichet_operator_call_seconds",
    "Seconds until an operator answered, or was given up.",
    ("connection", "kind"),
    buckets=_SLOW,
    registry=REGISTRY,
)
RATE_LIMITED: Final = Counter(
    "guichet_rate_limited_requests",
    "Requests refused because their address sent too many, by door (api, callbacks, pages).",
    ("door",),
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
for _door in ("api", "callbacks", "pages"):
    RATE_LIMITED.labels(_door)
for _outcome in ("delivered", "refused", "unanswered", "unsigned"):
    WEBHOOK_ATTEMPTS.labels(_outcome)
COMMIT_GROUP: Final = Histogram(
    "guichet_commit_group_transactions",
    "Transactions that shared one commit of the embedded database.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128),
    registry=REGISTRY,
)

_bound_requests: Final[dict[tuple[str, str, int], tuple[Counter, Histogram]]] = {}
_bound_calls: Final[dict[tuple[str, str, str], tuple[Counter, Histogram]]] = {}


def request(method: str, route: str | None, status: int, seconds: float) -> None:
    """`route`: its template, None when there was none; `status` 0 when no answer began."""
    key = (method, route or UNMATCHED, status)
    bound = _bound_requests.get(key)
    if bound is None:
        bound = _bind_request(*key)
        if method in _METHODS:
            _bound_requests[key] = bound
    bound[0].inc()
    bound[1].observe(seconds)


def _bind_request(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    known = method if method in _METHODS else OTHER
    return _REQUESTS.labels(known, route, str(status) if status else _NO_STATUS), _SECONDS.labels(known, route)


def operator_call(connection: str, kind: str, answer: str, seconds: float) -> None:
    """`answer`: the name of the type that the connector answered with, in lower case and with underscores."""
    key = (connection, kind, answer)
    bound = _bound_calls.get(key)
    if bound is None:
        bound = _bound_calls[key] = (_CALLS.labels(*key), _CALL_SECONDS.labels(connection, kind))
    bound[0].inc()
    bound[1].observe(seconds)
