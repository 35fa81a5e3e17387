"""The only way out to the network, for calls to providers and for merchants' webhooks.

`NotSent` and `Lost` are told apart by one event: a connection in hand (TCP and TLS done, or a kept connection reused).
Before it no byte of the request can have left. After it nothing is certain, so everything is `Lost`, a kept connection
that turns out to be dead included. Nothing is ever sent twice, whatever its method, and no redirect is followed.
"""

from guichet.http_client.address_guard import AddressGuard, is_loopback_host, is_public
from guichet.http_client.client import HttpClient
from guichet.http_client.outcomes import (
    MAX_BODY,
    FailureKind,
    Forbidden,
    HttpClientError,
    Lost,
    NotSent,
    Response,
    failure_kind,
)

__all__ = ["MAX_BODY", "AddressGuard", "Forbidden", "HttpClient", "HttpClientError", "Lost", "NotSent"]
__all__ += ["FailureKind", "Response", "failure_kind", "is_loopback_host", "is_public"]
