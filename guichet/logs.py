"""Structured logs on standard error: one line per event, with the id of the request it belongs to.

A line never holds a key, a secret, an OTP or a full phone number: fields with such names are masked in one place,
whoever logs them. People are named by their ids; an e-mail address that a server, a database or a library quotes is
taken out of whatever field or traceback it stands in.
"""

import asyncio
import atexit
import logging
import re
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final, Literal

import msgspec

from guichet.clock import SystemClock, iso
from guichet.printable import printable, printable_json

#: The id of the request that is being served, which is put on every line written meanwhile; None outside requests.
request_id_of_line: Final[ContextVar[str | None]] = ContextVar("request_id_of_line", default=None)

Event = dict[str, Any]

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


#: In any spelling that a mail server takes, and as an address (URL) holds it. Not the user of a database
#: (`postgresql://guichet@db.example`). A run of characters is looked at once, so the time grows with the text's length.
_EMAIL: Final = re.compile(
    r"(?<![^\s\"'<>()\[\],;:\\/=@%])(?<!//)"
    r"[^\s\"'<>()\[\],;:\\/=@%]+(?:@|%40)"
    r"[^\s\"'<>()\[\],;:\\/=@%.]+(?:\.[^\s\"'<>()\[\],;:\\/=@%.]+)+"
)


def without_emails(text: str) -> str:
    """Few texts hold an @, and the pattern takes half of what a line costs."""
    return _EMAIL.sub("[e-mail]", text) if "@" in text or "%40" in text else text


def _value_without_emails(value: Any) -> Any:
    text = value if isinstance(value, str) else str(value)
    cleaned = without_emails(text)
    return value if cleaned == text else cleaned


def redact(event: Event) -> Event:
    for name in event:
        if name in _MASKED_FIELDS:
            event[name] = _MASKED_FIELDS[name](str(event[name]))
    return event


_ENCODE: Final = msgspec.json.Encoder(enc_hook=str).encode


def _json_line(level: str, event: Event, exception: str | None) -> bytes:
    """For a machine: one JSON object."""
    event["level"] = level
    if exception is not None:
        event["exception"] = exception
    event["timestamp"] = iso(SystemClock().now())
    line = _ENCODE(event)
    if b"@" in line or b"%40" in line:  # Seldom; in the values, since a line that is cut anywhere is no JSON.
        line = _ENCODE({name: _value_without_emails(value) for name, value in event.items()})
    return line if line.isascii() and b"\x7f" not in line else printable_json(line.decode()).encode()


def _console_line(level: str, event: Event, exception: str | None) -> bytes:
    """For a person: `10:15:30 [warning] mail.failed  mail=7`."""
    name = event.pop("event")
    if "request_id" in event:
        event["request_id"] = event["request_id"][:8]
    fields = " ".join(f"{field}={_printable(value)}" for field, value in event.items())
    line = printable(f"{time.strftime('%H:%M:%S')} [{level:<7}] {name:<32} {fields}".rstrip())
    return without_emails(line if exception is None else line + "\n" + printable(exception, keep="\n")).encode()


def _printable(value: object) -> str:
    """Quoted where a space or a control character would make it look like several fields or lines."""
    text = str(value)
    return text if text.isprintable() and " " not in text else repr(text)


class RequestLine(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="request"):
    """That of a request, the most frequent one: as an event whose fields are looked at one by one it would take a
    twentieth of a POST. Nothing in it is a client's own text but `path`, where no route serves it."""

    method: str
    path: str
    status: int
    ms: float
    request_id: str
    merchant: int | None = None
    env: str | None = None

    def json(self) -> bytes:
        return b'%b,"level":"info","timestamp":"%b"}' % (_ENCODE(self)[:-1], iso(SystemClock().now()).encode())

    def console(self) -> bytes:
        """`10:15:30 [info   ] POST /v1/payments → 201  ms=3.1`."""
        name = f"{self.method} {self.path} → {self.status}"
        caller = "" if self.merchant is None else f" merchant={self.merchant} env={self.env}"
        start = f"{time.strftime('%H:%M:%S')} [info   ] {name:<32} ms={self.ms}"
        return f"{start}{caller} request_id={self.request_id[:8]}".encode()


class _LineWriter:
    """Writes lines to standard error, those of one iteration of the event loop together: a `write` for each costs a
    system call in every request (bench/README.md). A warning or an error is written at once, with what waits.

    `kill -9` loses the lines of the last milliseconds. `rendered`: makes the line of an event, of its level and its
    traceback.
    """

    def __init__(self) -> None:
        self.rendered: Callable[[str, Event, str | None], bytes] = _console_line
        self.rendered_request = RequestLine.console
        self._lines: list[bytes] = []

    def write(self, level: str, name: str, event: Event) -> None:
        event["event"] = name
        error = event.pop("exc_info", None)
        if (request_id := request_id_of_line.get()) is not None:
            event["request_id"] = request_id
        self.add(self.rendered(level, redact(event), _traceback(error) if error else None))
        if level not in ("debug", "info"):
            self.flush()

    def add(self, line: bytes) -> None:
        self._lines.append(line)
        if len(self._lines) == 1:
            try:
                asyncio.get_running_loop().call_soon(self.flush)
            except RuntimeError:  # A command, or a thread: there is no iteration to wait for.
                self.flush()

    def flush(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            file = sys.stderr.buffer
            file.write(b"\n".join([*lines, b""]))
            file.flush()


def _traceback(error: BaseException | tuple[Any, BaseException, Any] | Literal[True]) -> str:
    """Without local variables: they would show keys and phone numbers."""
    raised = sys.exception() if error is True else error[1] if isinstance(error, tuple) else error
    return "".join(traceback.format_exception(raised)).rstrip("\n")


_WRITER: Final = _LineWriter()


class Log:
    """Takes events: a name such as `delivery.success`, and its facts; those of a level below `least` are dropped.

    `exc_info`: adds the traceback of this exception, or of the one that is being handled.
    """

    def __init__(self) -> None:
        self.least = logging.INFO

    @property
    def takes_info(self) -> bool:
        """Whether a line of that level is written: for one whose facts take longer to find than to write."""
        return self.least <= logging.INFO

    def debug(self, event: str, **facts: Any) -> None:
        if self.least <= logging.DEBUG:
            _WRITER.write("debug", event, facts)

    def info(self, event: str, **facts: Any) -> None:
        if self.least <= logging.INFO:
            _WRITER.write("info", event, facts)

    def request(self, line: RequestLine) -> None:
        if self.takes_info:
            _WRITER.add(_WRITER.rendered_request(line))

    def warning(self, event: str, **facts: Any) -> None:
        if self.least <= logging.WARNING:
            _WRITER.write("warning", event, facts)

    def error(self, event: str, **facts: Any) -> None:
        if self.least <= logging.ERROR:
            _WRITER.write("error", event, facts)


log: Final = Log()
#: For the lines that are written whatever `GUICHET_LOG_LEVEL` says.
unfiltered_log: Final = Log()


class _LibraryHandler(logging.Handler):
    """Turns what libraries log through `logging` into lines of our log, masked like the others."""

    def emit(self, record: logging.LogRecord) -> None:
        write = log.error if record.levelno >= logging.ERROR else log.warning
        write("library", logger=record.name, detail=record.getMessage(), exc_info=record.exc_info or None)


def configure_logs(level: str, *, machine_readable: bool) -> None:
    """JSON lines for a machine, short lines for a person. Called once per process, before the first line."""
    log.least = logging.getLevelNamesMapping()[level.upper()]
    _WRITER.rendered = _json_line if machine_readable else _console_line
    _WRITER.rendered_request = RequestLine.json if machine_readable else RequestLine.console
    atexit.register(_WRITER.flush)
    logging.basicConfig(level=logging.WARNING, handlers=[_LibraryHandler()])
