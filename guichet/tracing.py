"""Traces, switched off until `GUICHET_OTLP_ENDPOINT` is set. While they are off, a call here costs one `if`.

A span says which route, provider account, payment or delivery it is about, what the result was and how long it took.
It never holds a phone number, a name, an amount, a secret, an address, a body or the text of an exception. What the
worker does about a payment is one trace, whose id is the payment's reference without dashes; what happens during a
request belongs to the trace of that request (docs/operations/traces.md).
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

#: Attribute: the reference of the payment that a span is about.
PAYMENT: Final = "guichet.payment"

#: Ends the span of a request: its name, its attributes, whether the request failed.
EndSpan = Callable[[str, Attributes, bool], None]


class Tracer(Protocol):
    """Makes spans (`otlp.py`). Outside a request, the attribute PAYMENT decides the trace that a span belongs to."""

    def request(self, traceparent: str | None) -> AbstractContextManager[EndSpan]:
        """The span of a request, current while the block lasts. `traceparent`: the caller's header, if it sent one."""

    def step(self, name: str, attributes: Attributes) -> AbstractContextManager[None]:
        """The span of something that we do about a payment, current while the block lasts."""

    def call(self, name: str, seconds: float, attributes: Attributes, *, failed: bool) -> None:
        """The span of a call to another server that ended just now and took `seconds`."""

    def set_attributes(self, attributes: Attributes) -> None:
        """Adds attributes to the current span."""


_tracer: Tracer | None = None


@contextmanager
def exporting(settings: Settings) -> Iterator[None]:
    """Exports spans while the block lasts, if the settings ask for it.

    Raises SettingsError if OpenTelemetry is not installed.
    """
    global _tracer  # noqa: PLW0603 - a process has one exporter of traces, as it has one log
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
    with otlp.exporter(settings.otlp_endpoint) as _tracer:
        try:
            yield
        finally:
            _tracer = None


def tracer() -> Tracer | None:
    """None while traces are switched off."""
    return _tracer


def traced(
    name: str, attributes_of: Callable[..., Attributes]
) -> Callable[[Callable[P, Work[R]]], Callable[P, Work[R]]]:
    """Makes a span of each call of an async function. `attributes_of` takes the call's arguments."""

    def decorate(function: Callable[P, Work[R]]) -> Callable[P, Work[R]]:
        async def in_span(tracer: Tracer, *args: P.args, **kw: P.kwargs) -> R:
            with tracer.step(name, attributes_of(*args, **kw)):
                return await function(*args, **kw)

        @wraps(function)
        def call(*args: P.args, **kw: P.kwargs) -> Work[R]:
            return function(*args, **kw) if _tracer is None else in_span(_tracer, *args, **kw)

        return call

    return decorate


def about_payment(reference: str) -> None:
    """Says on the span of the current request which payment the request is about."""
    if _tracer is not None:
        _tracer.set_attributes({PAYMENT: reference})


def provider_call(provider_account: str, operation: str, result: str, seconds: float) -> None:
    """The span of a call to a provider; the arguments are those of `metrics.provider_call`."""
    if _tracer is not None:
        attributes = {"guichet.provider_account": provider_account, "guichet.result": result}
        _tracer.call(f"provider {operation}", seconds, attributes, failed=result == "unknown")


def webhook_attempt(delivery: Delivery, body: bytes, status: int | None, delivered: bool, seconds: float) -> None:
    """The span of an attempt to deliver a webhook. `status` is None if the receiver did not answer."""
    if _tracer is None:
        return
    attributes: dict[str, str | int] = {"guichet.delivery": delivery.reference, "guichet.attempt": delivery.attempts}
    if status is not None:
        attributes["http.response.status_code"] = status
    if payment := _payment_of(body):
        attributes[PAYMENT] = payment
    _tracer.call(f"webhook {delivery.event}", seconds, attributes, failed=not delivered)


class _Data(msgspec.Struct):
    reference: str | None = None
    payment_reference: str | None = None


class _Body(msgspec.Struct):
    data: _Data


def _payment_of(body: bytes) -> str | None:
    """The reference of the payment that the event is about; None for `webhook.test`. Nothing else is read."""
    data = msgspec.json.decode(body, type=_Body).data
    return data.payment_reference or data.reference
