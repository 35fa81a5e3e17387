"""Traces, off until `GUICHET_OTLP_ENDPOINT` says where they go: then one `if` becomes a span, here and nowhere else.

A span says which route, operator, payment or delivery, what came of it and how long it took. It never holds a phone
number, a name, an amount, a secret, an address, a body or an exception's text. What the loops do about a payment is one
trace, and its id is the payment's reference without dashes; what is done during a request belongs to that request.
"""

import importlib
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any, Final, ParamSpec, Protocol, TypeVar

import msgspec

from guichet.domain.events import Delivery
from guichet.settings import Settings, SettingsError

P = ParamSpec("P")
R = TypeVar("R")

Work = Coroutine[Any, Any, R]
Attributes = Mapping[str, str | int]

PAYMENT: Final = "guichet.payment"


#: Ends a request's span: its name, what it says, whether it failed.
End = Callable[[str, Attributes, bool], None]


class Spans(Protocol):
    """What makes them (`otlp.py`). The attribute PAYMENT names the trace of what is done outside any request."""

    def request(self, traceparent: str | None) -> AbstractContextManager[End]:
        """A caller's request, current while it lasts. `traceparent`: what its parent is, if the caller said so."""

    def step(self, name: str, attributes: Attributes) -> AbstractContextManager[None]:
        """Something that we do about a payment, current while it lasts."""

    def call(self, name: str, seconds: float, attributes: Attributes, *, failed: bool) -> None:
        """A call to somebody else that ended just now."""

    def note(self, attributes: Attributes) -> None:
        """On the span that is current."""


_spans: Spans | None = None


@contextmanager
def exporting(settings: Settings) -> Iterator[None]:
    """Traces leave while the block lasts, if the settings want them. Raises SettingsError without the extra."""
    global _spans  # noqa: PLW0603 - one process has one way out for traces, as it has one for its log
    if settings.otlp_endpoint is None:
        yield
        return
    try:
        otlp = importlib.import_module("guichet.otlp")
    except ImportError:
        raise SettingsError(
            "GUICHET_OTLP_ENDPOINT needs OpenTelemetry, which is not installed: run `make tracing` "
            "or `pip install 'guichet[tracing]'`."
        ) from None
    with otlp.exported_to(settings.otlp_endpoint) as _spans:
        try:
            yield
        finally:
            _spans = None


def spans() -> Spans | None:
    """None while nobody wants traces."""
    return _spans


def traced(name: str, said: Callable[..., Attributes]) -> Callable[[Callable[P, Work[R]]], Callable[P, Work[R]]]:
    """Makes each call of an async function a span; `said` reads its attributes, PAYMENT too, off the arguments."""

    def decorate(function: Callable[P, Work[R]]) -> Callable[P, Work[R]]:
        async def inside(made_by: Spans, *args: P.args, **kw: P.kwargs) -> R:
            with made_by.step(name, said(*args, **kw)):
                return await function(*args, **kw)

        @wraps(function)
        def call(*args: P.args, **kw: P.kwargs) -> Work[R]:
            return function(*args, **kw) if _spans is None else inside(_spans, *args, **kw)

        return call

    return decorate


def about_payment(reference: str) -> None:
    """The request under way is about this payment."""
    if _spans is not None:
        _spans.note({PAYMENT: reference})


def provider_call(connection: str, kind: str, answer: str, seconds: float) -> None:
    """As `metrics.provider_call` counts it."""
    if _spans is not None:
        said = {"guichet.connection": connection, "guichet.answer": answer}
        _spans.call(f"operator {kind}", seconds, said, failed=answer == "unknown")


def webhook_attempt(delivery: Delivery, status: int | None, delivered: bool, seconds: float) -> None:
    """`status` None: the receiver did not answer."""
    if _spans is None:
        return
    said: dict[str, str | int] = {"guichet.delivery": delivery.reference, "guichet.attempt": delivery.attempts}
    if status is not None:
        said["http.response.status_code"] = status
    if payment := _payment_of(delivery):
        said[PAYMENT] = payment
    _spans.call(f"webhook {delivery.event}", seconds, said, failed=not delivered)


class _Data(msgspec.Struct):
    reference: str | None = None
    payment_reference: str | None = None


class _Body(msgspec.Struct):
    data: _Data


def _payment_of(delivery: Delivery) -> str | None:
    """Of a body only its payment's reference is read; `webhook.test` speaks of none."""
    data = msgspec.json.decode(delivery.body, type=_Body).data
    return data.payment_reference or data.reference
