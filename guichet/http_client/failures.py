"""What the errors of a request mean: whether it was sent, and why there is no response."""

from aiohttp import ClientConnectorCertificateError, ClientConnectorError
from httptools import HttpParserError

from guichet.domain.messages import Message, verbatim
from guichet.http_client.address_guard import AddressRefused
from guichet.http_client.connector import Connection
from guichet.http_client.outcomes import CallFailure, Forbidden, HttpClientError, Lost, NotSent


def failure(host: str, connection: Connection | None, error: Exception, *, stopped: bool) -> HttpClientError:
    """What is known after `error`: Lost once there was a connection."""
    timed_out = isinstance(error, TimeoutError) and not stopped
    if connection is not None:
        return Lost(_lost(host, error), connection.status, timed_out=timed_out)
    if isinstance(error, ClientConnectorError) and isinstance(error.os_error, AddressRefused):
        return Forbidden(CallFailure.ADDRESS_REFUSED(host=host))
    return NotSent(_not_connected(host, error), timed_out=timed_out, stopped=stopped)


def _not_connected(host: str, error: Exception) -> Message:
    """Before there is a connection, aiohttp's messages name the host only."""
    if isinstance(error, TimeoutError):
        return CallFailure.NO_CONNECTION(host=host)
    if isinstance(error, ClientConnectorCertificateError):
        why = f"{type(error.certificate_error).__name__}: {error.certificate_error.args}"
    elif isinstance(error, ClientConnectorError):
        why = str(error.strerror)
    else:
        return verbatim(f"{host}: {error or type(error).__name__}")
    security = "default" if error.ssl is True else error.ssl
    return CallFailure.CANNOT_CONNECT(host=host, address=f"{error.host}:{error.port} ssl:{security}", error=why)


def _lost(host: str, error: Exception) -> Message:
    if isinstance(error, TimeoutError):
        return CallFailure.NO_RESPONSE(host=host)
    return verbatim(f"{host}: {error if isinstance(error, HttpParserError) else type(error).__name__}")
