"""Structured logs with the request's id on every line, and nothing secret on any.

Logs never carry a key, a secret, an OTP or a full phone number: fields with such names are masked whoever logs them.
"""

import logging
import re
import sys
from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import Any, Final

import msgspec
import structlog

log: Final[structlog.typing.FilteringBoundLogger] = structlog.get_logger("guichet")

#: The id of the request that is being served, put on every line written meanwhile; None outside requests.
request_id_of_line: Final[ContextVar[str | None]] = ContextVar("request_id_of_line", default=None)

_SECRET: Final = frozenset(
    {"key", "secret", "otp", "password", "token", "authorization", "signature", "body", "api_key", "pin"}
)
#: What a provider said, in its own words: it may repeat the customer's number.
_FOREIGN: Final = frozenset({"raw", "answer", "error", "detail"})
_NUMBER: Final = re.compile(r"(?<![0-9a-f-])[0-9]{8,15}(?![0-9a-f-])")
_PHONE: Final = frozenset({"phone", "phone_number", "msisdn"})
_MASKED: Final = _SECRET | _FOREIGN | _PHONE


def mask_phone(number: str) -> str:
    """`22997000000` → `229*****000`: enough to recognise a report, not enough to call."""
    return number[:3] + "*" * max(0, len(number) - 6) + number[-3:]


def redact(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """structlog processor: masks secrets, phone numbers, and numbers within what a provider said."""
    if _MASKED.isdisjoint(event):
        return event
    for name in event.keys() & _SECRET:
        event[name] = "[masked]"
    for name in event.keys() & _PHONE:
        event[name] = mask_phone(str(event[name]))
    for name in event.keys() & _FOREIGN:
        event[name] = _NUMBER.sub(lambda number: mask_phone(number[0]), str(event[name]))
    return event


def _one_liner(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """structlog processor for a person's eyes: a request reads `POST /v1/payments → 201` and its id is abbreviated."""
    if event["event"] == "request":
        event["event"] = f"{event.pop('method')} {event.pop('path')} → {event.pop('status')}"
    if "request_id" in event:
        event["request_id"] = event["request_id"][:8]
    return event


def _add_request_id(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """structlog processor."""
    if (request_id := request_id_of_line.get()) is not None:
        event["request_id"] = request_id
    return event


_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)


def _json_line(_: Any, __: str, event: MutableMapping[str, Any]) -> bytes:
    """structlog processor, the last one: one line of JSON."""
    return _ENCODER.encode(event)


class _Library(logging.Handler):
    """What libraries say through `logging` becomes a line like any other, masked like any other."""

    def emit(self, record: logging.LogRecord) -> None:
        say = log.error if record.levelno >= logging.ERROR else log.warning
        say("library", logger=record.name, detail=record.getMessage(), exc_info=record.exc_info or None)


def configure_logs(level: str, *, machine_readable: bool) -> None:
    """JSON lines on stderr for a machine, short coloured lines for a person."""
    processors: list[Any] = [_add_request_id, structlog.processors.add_log_level, redact]
    logger_factory: Any
    if machine_readable:
        # Writing a line is a tenth of a request: bytes all the way, and nothing that is not needed.
        processors += [
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _json_line,
        ]
        logger_factory = structlog.BytesLoggerFactory(sys.stderr.buffer)
    else:
        # A plain traceback: one that shows local variables would show the caller's key.
        renderer = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), pad_event_to=32, exception_formatter=structlog.dev.plain_traceback
        )
        processors += [structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False), _one_liner, renderer]
        logger_factory = structlog.PrintLoggerFactory(sys.stderr)
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=logger_factory,
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.WARNING, handlers=[_Library()])
