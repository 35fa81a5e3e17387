"""What is known after a request.

Response           the peer answered, whatever its status
HttpClientError
├── NotSent        provably no byte of the request reached the peer: another route may be tried
│   └── Forbidden  refused on our side: the URL, a header, or every address behind the name (D38)
└── Lost           anything else: the request may have been read, acted upon and answered

What kept it from being answered is said in a message for logs and for the staff, and in one word that may be shown to
whoever runs the other server. Both name the host, never the path, the headers or the body.
"""

from typing import Final, Literal

from guichet.domain.messages import Code, Message
from guichet.domain.records import Record

FailureKind = Literal["timeout", "address_refused", "connection_failed", "tls_failed", "answer_lost"]

#: Bytes of a response body that are read unless the caller says otherwise; the rest is dropped with its connection.
MAX_BODY: Final = 64 * 1024


class HttpClientError(Exception):
    """A request without a usable response. `timed_out`: the time limit passed."""

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


class CallFailure(Code):
    CLOSED = "call_failure.closed"
    URL_UNREADABLE = "call_failure.url_unreadable"
    NOT_HTTP = "call_failure.not_http"
    LINE_BREAK = "call_failure.line_break"
    USER_IN_URL = "call_failure.user_in_url", "host"
    HTTPS_ONLY = "call_failure.https_only", "host"
    ADDRESS_REFUSED = "call_failure.address_refused", "host"
    NO_RESPONSE = "call_failure.no_response", "host"
    #: Without a connection: the name of the exception, since the time limit's has no message.
    NO_CONNECTION = "call_failure.no_connection", "host"
    #: In aiohttp's words; what it says otherwise is shown as it is.
    CANNOT_CONNECT = "call_failure.cannot_connect", "host", "address", "error"


def failure_kind(error: HttpClientError) -> FailureKind:
    """For a request that was not our own fault (`failures.py`). A name that leads to an address of ours and one
    that leads nowhere are the same word: two would tell a merchant which of our internal names exist."""
    if error.timed_out:
        return "timeout"
    if isinstance(error, Forbidden):
        return "address_refused"
    if isinstance(error, Lost):
        return "answer_lost"
    from aiohttp import ClientConnectorDNSError, ClientSSLError  # noqa: PLC0415 - the failure has imported it

    if isinstance(error.__cause__, ClientConnectorDNSError):
        return "address_refused"
    return "tls_failed" if isinstance(error.__cause__, ClientSSLError) else "connection_failed"
