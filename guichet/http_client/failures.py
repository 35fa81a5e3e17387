"""What kept a request from being answered, in one word that may be shown to whoever runs the other server."""

from typing import Literal

from aiohttp import ClientConnectorDNSError, ClientSSLError

from guichet.http_client.outcomes import Forbidden, HttpClientError, Lost

FailureKind = Literal["timeout", "address_refused", "name_not_found", "connection_failed", "tls_failed", "answer_lost"]


def failure_kind(error: HttpClientError) -> FailureKind:
    """For a request that was not our own fault (`own_faults.py`)."""
    if error.timed_out:
        return "timeout"
    if isinstance(error, Forbidden):
        return "address_refused"
    if isinstance(error, Lost):
        return "answer_lost"
    if isinstance(error.__cause__, ClientConnectorDNSError):
        return "name_not_found"
    return "tls_failed" if isinstance(error.__cause__, ClientSSLError) else "connection_failed"
