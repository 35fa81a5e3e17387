"""Structured logs on standard error: one line per event, with the id of the request it belongs to.

A line never holds a key, a secret, an OTP or a full phone number: fields with such names are masked in one place,
whoever logs them.
"""

import asyncio
import atexit
import logging
import re
import sys
import time
from collections.abc import Callable, Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any, BinaryIO, Final

import msgspec
import structlog
from structlog.processors import TimeStamper, format_exc_info

from guichet.printable import printable, printable_json

log: Final[structlog.typing.FilteringBoundLogger] = structlog.get_logger("guichet")

#: For the lines that are written whatever `GUICHET_LOG_LEVEL` says.
unfiltered_log: Final[structlog.typing.FilteringBoundLogger] = structlog.wrap_logger(
    None, wrapper_class=structlog.make_filtering_bound_logger(logging.INFO)
)

#: The id of the request that is being served, which is put on every line written meanwhile; None outside requests.
request_id_of_line: Final[ContextVar[str | None]] = ContextVar("request_id_of_line", default=None)

Event = MutableMapping[str, Any]

_NUMBER: Final = re.compile(r"(?<![0-9a-f-])[0-9]{8,15}(?![0-9a-f-])")


def mask_phone(number: str) -> str:
    """`22997000000` → `229*****000`: enough to recognise the customer in a report, not enough to call."""
    return number[:3] + "*" * max(0, len(number) - 6) + number[-3:]


def _mask_numbers(text: str) -> str:
    return _NUMBER.sub(lambda number: mask_phone(number[0]), text)


#: What is done to a field, by its name. `raw`, `response`, `error` and `detail` may quote a provider's response, which
#: may repeat the customer's phone number.
_MASKED_FIELDS: Final[Mapping[str, Callable[[str], str]]] = {
    **dict.fromkeys(
        ("key", "secret", "otp", "password", "token", "authorization", "signature", "body", "api_key", "pin"),
        lambda _: "[masked]",
    ),
    **dict.fromkeys(("phone", "phone_number", "msisdn"), mask_phone),
    **dict.fromkeys(("raw", "answer", "response", "error", "detail"), _mask_numbers),
}


def redact(_: Any, __: str, event: Event) -> Event:
    """structlog processor that masks what must not be logged."""
    for name in _MASKED_FIELDS.keys() & event.keys():
        event[name] = _MASKED_FIELDS[name](str(event[name]))
    return event


def _add_request_id(_: Any, __: str, event: Event) -> Event:
    """structlog processor."""
    if (request_id := request_id_of_line.get()) is not None:
        event["request_id"] = request_id
    return event


_ENCODE: Final = msgspec.json.Encoder(enc_hook=str).encode
_ADD_TIMESTAMP: Final = TimeStamper(fmt="iso", utc=True)


def _json_line(logger: Any, level: str, event: Event) -> bytes:
    """structlog's last processor in production: one JSON object."""
    event["level"] = level
    if "exc_info" in event:  # The traceback has no local variables: they would show keys and phone numbers.
        event = format_exc_info(logger, level, event)
    line = _ENCODE(_ADD_TIMESTAMP(logger, level, event))
    return line if line.isascii() and b"\x7f" not in line else printable_json(line.decode()).encode()


def _console_line(logger: Any, level: str, event: Event) -> bytes:
    """structlog's last processor in development: `10:15:30 [info   ] POST /v1/payments → 201  ms=3.1`.

    structlog's own `ConsoleRenderer` takes four times as long, a tenth of a request.
    """
    if "exc_info" in event:
        event = format_exc_info(logger, level, event)
    traceback = event.pop("exception", None)
    name = event.pop("event")
    if name == "request":
        name = f"{event.pop('method')} {event.pop('path')} → {event.pop('status')}"
    if "request_id" in event:
        event["request_id"] = event["request_id"][:8]
    fields = " ".join(f"{field}={_printable(value)}" for field, value in event.items())
    line = printable(f"{time.strftime('%H:%M:%S')} [{level:<7}] {name:<32} {fields}".rstrip())
    return (line + "\n" + printable(traceback, keep="\n") if traceback else line).encode()


def _printable(value: object) -> str:
    """Quoted where a space or a control character would make it look like several fields or lines."""
    text = str(value)
    return text if text.isprintable() and " " not in text else repr(text)


class _LineWriter:
    """Writes lines to a file, those of one iteration of the event loop together: a `write` for each costs a system call
    in every request (bench/README.md).

    A warning or an error is written at once, with what waits. `kill -9` loses the lines of the last milliseconds.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lines: list[bytes] = []

    def info(self, line: bytes) -> None:
        self._lines.append(line)
        if len(self._lines) == 1:
            try:
                asyncio.get_running_loop().call_soon(self.flush)
            except RuntimeError:  # A command, or a thread: there is no iteration to wait for.
                self.flush()

    def warning(self, line: bytes) -> None:
        self._lines.append(line)
        self.flush()

    debug = info
    error = critical = warning

    def flush(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            self._file.write(b"\n".join([*lines, b""]))
            self._file.flush()


class _LibraryHandler(logging.Handler):
    """Turns what libraries log through `logging` into lines of our log, masked like the others."""

    def emit(self, record: logging.LogRecord) -> None:
        write = log.error if record.levelno >= logging.ERROR else log.warning
        write("library", logger=record.name, detail=record.getMessage(), exc_info=record.exc_info or None)


def configure_logs(level: str, *, machine_readable: bool) -> None:
    """JSON lines for a machine, short lines for a person. Called once per process, before the first line."""
    writer = _LineWriter(sys.stderr.buffer)
    atexit.register(writer.flush)
    structlog.configure(
        processors=[
            _add_request_id,
            redact,
            _json_line if machine_readable else _console_line,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=lambda *_: writer,
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.WARNING, handlers=[_LibraryHandler()])
