"""What is known after a request.

Response           the peer answered, whatever its status
HttpClientError
├── NotSent        provably no byte of the request reached the peer: another route may be tried
│   └── Forbidden  refused on our side: the URL, a header, or every address behind the name (D38)
└── Lost           anything else: the request may have been read, acted upon and answered
"""

from typing import Final

from guichet.domain.messages import Message
from guichet.domain.records import Record

#: Bytes of a response body that are read unless the caller says otherwise; the rest is dropped with its connection.
MAX_BODY: Final = 64 * 1024


class HttpClientError(Exception):
    """A request without a usable response. The message names the host, never the path, the headers or the body.

    `timed_out`: the time limit passed.
    """

    def __init__(self, message: Message, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.timed_out = timed_out


class NotSent(HttpClientError):
    """Provably no byte of the request reached the peer. `stopped`: because this process stops."""

    def __init__(self, message: Message, *, timed_out: bool = False, stopped: bool = False) -> None:
        super().__init__(message, timed_out=timed_out)
        self.stopped = stopped


class Forbidden(NotSent):
    """Refused on our side, before connecting."""


class Lost(HttpClientError):
    """The request may have arrived.

    `status` is the HTTP status when the head of the response came but not all of its body.
    """

    def __init__(self, message: Message, status: int | None = None, *, timed_out: bool = False) -> None:
        super().__init__(message, timed_out=timed_out)
        self.status = status


class Response(Record, frozen=True):
    """What the peer answered; nobody needs its headers. `body` is raw (never decompressed); `complete` is False when it
    was cut at the limit."""

    status: int
    body: bytes
    complete: bool = True
