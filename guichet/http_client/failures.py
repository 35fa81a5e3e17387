"""What kept a request from being answered: in one word that may be shown to whoever runs the other server, and in a
message for logs and for the staff. It names the host, never the path, the headers or the body.
"""

from typing import Literal

from guichet.domain.messages import Code
from guichet.http_client.outcomes import Forbidden, HttpClientError, Lost

FailureKind = Literal["timeout", "address_refused", "connection_failed", "tls_failed", "answer_lost"]


def failure_kind(error: HttpClientError) -> FailureKind:
    """For a request that was not our own fault (`own_faults.py`). A name that leads to an address of ours and one that
    leads nowhere are the same word: two would tell a merchant which of our internal names exist."""
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
